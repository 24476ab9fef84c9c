"""Exceptions of timers: one class per kind that a caller treats differently, and why work was enqueued too late."""

from __future__ import annotations

from typing import NamedTuple

from pytest_gpuperf.model.timer_names import TimerName

EARLY = 2.0
"""A delay that lasted less than its length over this ended early; work that took the host less was not slow."""

_NO_SYNCHRONISATION = (
    "Take synchronisation out of the measured function, or install the CUPTI timer (pip install "
    "'pytest-gpuperf[cupti]')"
)
_NO_COMPANY = "End other processes on this GPU and its host, and try again"
_NO_BLOCKING = "Unset CUDA_LAUNCH_BLOCKING, end debuggers and other processes on this GPU and its host, and try again"


class TimerUnavailable(Exception):
    """This timer does not work here; ``remedy`` would make it work.  ``name`` is None if every kind was tried."""

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


class LateTry(NamedTuple):
    """One try; all in nanoseconds."""

    meant_ns: float
    """Intended duration of the delay on the GPU."""
    lasted_ns: float
    """Actual duration of the delay, by the GPU's clock."""
    work_ns: float
    """Host time to enqueue the work."""
    host_ns: float
    """Host time from launching the delay to finding it over."""


def never_in_time(late: LateTry) -> NeverInTime:
    """The error that says what was seen, and what to do about it."""
    work, meant = _ms(late.work_ns), _ms(late.meant_ns)
    if EARLY * late.work_ns >= late.meant_ns:
        return NeverInTime(
            f"the work takes the host {work} to enqueue, or waits for the GPU, and the longest delay to hide that "
            f"behind is {meant}: event pairs would time the host",
            _NO_SYNCHRONISATION,
        )
    if EARLY * late.lasted_ns < late.meant_ns:
        return NeverInTime(
            f"the work took the host no more than {work} to enqueue, but the delay ahead of it, meant to last {meant}, "
            f"was over after {_ms(late.lasted_ns)}: the GPU is shared, or its clock moved after the delay was gauged",
            _NO_COMPANY,
        )
    return NeverInTime(
        f"the work took the host no more than {work} to enqueue, but from launching the delay of {meant} ahead of it "
        f"to finding it over the host took {_ms(late.host_ns)}: launches wait for the GPU, or the host is held up",
        _NO_BLOCKING,
    )


def _ms(time_ns: float) -> str:
    return f"{round(time_ns / 1e6, 3):g} ms"
