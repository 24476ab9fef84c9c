"""Timers: the device time of short pieces of work.

**cupti** reads the GPU's own time stamps of every kernel; **graph** times many launches unrolled into one CUDA graph.
A new timer is one module with an ``open_timer(stream) -> Timer`` that raises ``TimerUnavailable``, and its name among
``model.timer_names.TIMERS``, best first.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

from pytest_gpuperf.device.interface import Timer
from pytest_gpuperf.device.timers import stream
from pytest_gpuperf.device.timers.timer_errors import TimerError, TimerUnavailable
from pytest_gpuperf.model.timer_names import TIMERS, TimerName

__all__ = ["TimerError", "TimerUnavailable", "open_timer"]


def open_timer(device: Any, name: TimerName | None = None) -> Timer:
    """The best timer that works on ``device``, or the one called ``name``.

    ``device`` has a CuPy ``stream`` that is current, ``flush_l2()`` which enqueues on it, ``synchronize()``,
    ``has_persisting_lines`` and ``end_persistence()``.  Raises ``TimerUnavailable`` if the named timer, or every timer,
    does not work.
    """
    work_stream = stream.CudaStream(device)
    refused = []
    for candidate in TIMERS if name is None else (name,):
        module = importlib.import_module(f"{__name__}.{candidate}")  # numpy and CuPy stay out until something is timed
        try:
            return cast(Timer, module.open_timer(work_stream))
        except TimerUnavailable as error:
            refused.append(error)
    last = refused[-1]
    if len(refused) == 1:
        raise last
    raise TimerUnavailable(None, "; ".join(f"{one.name}: {one.reason}" for one in refused), last.remedy) from last
