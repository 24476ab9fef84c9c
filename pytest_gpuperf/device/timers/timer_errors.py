"""Exceptions of timers: one class per kind that a caller treats differently."""

from __future__ import annotations

from pytest_gpuperf.model.timer_names import TimerName


class TimerUnavailable(Exception):
    """This timer does not work here; ``remedy`` would make it work.  ``name`` is None if every kind was tried."""

    def __init__(self, name: TimerName | None, reason: str, remedy: str) -> None:
        refused = "no timer is" if name is None else f"the {name} timer is not"
        super().__init__(f"{refused} available: {reason}; {remedy}")
        self.name = name
        self.reason = reason
        self.remedy = remedy


class TimerError(Exception):
    """A measurement failed: a sample was lost, has no valid time, or the workload cannot be timed this way.

    ``reason`` is what happened, ``remedy`` what to do about it; empty where the reason says that, too.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}; {remedy}" if remedy else reason)
        self.reason = reason
        self.remedy = remedy
