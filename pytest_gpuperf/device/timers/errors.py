"""What can go wrong with a timer, as two kinds that a caller treats differently."""

from __future__ import annotations

from pytest_gpuperf.evidence import TimerName


class TimerUnavailable(Exception):
    """This timer does not work here; another one may.  ``remedy`` says what would make it work."""

    def __init__(self, name: TimerName, reason: str, remedy: str) -> None:
        super().__init__(f"the {name} timer is not available: {reason}; {remedy}")
        self.name = name
        self.reason = reason
        self.remedy = remedy


class TimerError(Exception):
    """A measurement failed: a sample was lost, has no valid time, or the workload cannot be timed this way."""
