"""Timers: the device time of short pieces of work.

Three kinds, best first.  **cupti** reads the GPU's own time stamps of every kernel; **graph** times many
launches unrolled into one CUDA graph; **events** times launches queued behind a delay.  Times of two
kinds are never compared with each other.

A new timer is one module with an ``open_timer(stream) -> Timer`` that raises ``TimerUnavailable``, and
one row in ``_MODULES``.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

from pytest_gpuperf.device.interface import Timer
from pytest_gpuperf.device.timers.errors import TimerError, TimerUnavailable
from pytest_gpuperf.evidence import TimerName

__all__ = ["TimerError", "TimerUnavailable", "open_timer", "open_timer_on"]

_MODULES: dict[TimerName, str] = {
    "cupti": "pytest_gpuperf.device.timers.cupti",
    "graph": "pytest_gpuperf.device.timers.graph",
    "events": "pytest_gpuperf.device.timers.events",
}
"""In order of preference.  Imported when asked for: numpy and CuPy stay out until something is timed."""


def open_timer(device: Any, name: TimerName | None = None) -> Timer:
    """The best timer that works on ``device``, or the one called ``name``.

    ``device`` has a CuPy ``stream`` that is current, ``flush_l2()`` which enqueues on it, and
    ``synchronize()``.  Raises ``TimerUnavailable`` if the named timer, or every timer, does not work.
    """
    from pytest_gpuperf.device.timers.stream import CudaStream

    return open_timer_on(CudaStream(device), name)


def open_timer_on(stream: Any, name: TimerName | None = None) -> Timer:
    """As ``open_timer``, on a ``stream.WorkStream``."""
    names = tuple(_MODULES) if name is None else (name,)
    reasons = []
    for candidate in names:
        module = importlib.import_module(_MODULES[candidate])
        try:
            return cast(Timer, module.open_timer(stream))
        except TimerUnavailable as error:
            reasons.append(error)
    if len(reasons) == 1:
        raise reasons[0]
    last = reasons[-1]
    raise TimerUnavailable(
        last.name, "; ".join(f"{error.name}: {error.reason}" for error in reasons), last.remedy
    ) from last
