"""Exceptions of timers: one class per kind that a caller treats differently."""

from __future__ import annotations

from pytest_gpuperf.model.evidence import TimerName


class TimerUnavailable(Exception):
    """This timer does not work here; another one may.  ``remedy`` says what would make it work.

    ``name`` is None if every kind was tried.
    """

    def __init__(self, name: TimerName | None, reason: str, remedy: str) -> None:
        refused = "no timer is" if name is None else f"the {name} timer is not"
        super().__init__(f"{refused} available: {reason}; {remedy}")
        self.name = name
        self.reason = reason
        self.remedy = remedy


class TimerError(Exception):
    """A measurement failed: a sample was lost, has no valid time, or the workload cannot be timed this way."""


class NeverInTime(TimerError):
    """Work was never enqueued before the delay ahead of it was over; ``seen`` is what was measured."""

    def __init__(self, seen: str, remedy: str) -> None:
        super().__init__(f"{seen}. {remedy}")
        self.seen = seen
