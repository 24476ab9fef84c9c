"""Timers: the device time of short pieces of work.

**cupti** reads the GPU's own time stamps of every kernel; **graph** times many launches unrolled into one CUDA graph.
A new timer is one module, and its name among ``model.limits.TIMERS``, best first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_gpuperf.device.device_errors import TimerError, TimerUnavailable
from pytest_gpuperf.device.interface import Timer
from pytest_gpuperf.device.timers.cupti import open_cupti
from pytest_gpuperf.device.timers.graph import GraphTimer
from pytest_gpuperf.device.timers.stream import CudaStream
from pytest_gpuperf.model.limits import TIMERS, TimerName

_OPENERS: dict[TimerName, Callable[[CudaStream], Timer]] = {"cupti": open_cupti, "graph": GraphTimer}


def open_timer(device: Any, name: TimerName | None = None) -> Timer:
    """The best timer that works on ``device``, or the one called ``name``, calibrated.

    ``device`` has a CuPy ``stream`` that is current, ``flush_l2()`` which enqueues on it, and ``synchronize()``.
    Raises ``TimerUnavailable`` if the named timer, or every timer, does not work.
    """
    stream = CudaStream(device)
    refused = []
    for candidate in TIMERS if name is None else (name,):
        try:
            return _OPENERS[candidate](stream)
        except TimerError as error:
            refused.append(f"the {candidate} timer is not available: {error}")
    raise TimerUnavailable("; ".join(refused))
