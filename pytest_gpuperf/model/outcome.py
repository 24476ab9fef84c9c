"""What the end of a run has to tell its summary."""

from __future__ import annotations

from pytest_gpuperf.model.result import Recorded


class Outcome:
    """What the end of the run has to tell the summary."""

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.replaced: tuple[str, ...] = ()
        """Recording processes that left no rounds and were replaced."""
        self.updated = False
        """An update came to its end."""
        self.problem = ""
        self.not_kept = ""
        """Why ``gpuperf explain`` will not know of this run; empty if it will."""
        self.nothing = ""
        self.environment = ""
        """Why the run's times prove nothing; empty if they do."""
        self.shifts: tuple[str, ...] = ()
        """Signs that the machine changed as a whole."""
        self.counter_notes: tuple[str, ...] = ()
        """What collecting the counters had to say beside them."""
        self.reports: tuple[str, ...] = ()
        """Files that reports were written to."""
        self.unwritten: tuple[str, ...] = ()
        """What kept others from being written."""

    @property
    def errors(self) -> list[str]:
        """What speaks against the run as a whole."""
        return [text for text in (self.problem, self.environment, self.nothing) if text]
