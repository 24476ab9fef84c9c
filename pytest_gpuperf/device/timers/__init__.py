"""Timers: the device time of short pieces of work.

Three kinds, best first: **cupti** reads the GPU's own time stamps of every kernel, **graph** times many launches
unrolled into one CUDA graph, **events** times launches queued behind a delay.  A new timer is one module with an
``open_timer(stream) -> Timer`` that raises ``TimerUnavailable``, and its name among ``model.timer_names.TIMERS``.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, cast

from pytest_gpuperf.device.interface import Timer
from pytest_gpuperf.device.timers import stream
from pytest_gpuperf.device.timers.timer_errors import NeverInTime, TimerError, TimerUnavailable
from pytest_gpuperf.model.timer_names import TIMERS, TimerName

__all__ = ["TimerError", "TimerUnavailable", "open_timer", "open_timer_on"]

_TRY_AGAIN = "end other processes on this GPU and its host, and try again"
"""Remedy if not even a timer's own trial kernels are enqueued in time: no other kind of timer helps."""


def open_timer(device: Any, name: TimerName | None = None) -> Timer:
    """The best timer that works on ``device``, or the one called ``name``.

    ``device`` has a CuPy ``stream`` that is current, ``flush_l2()`` which enqueues on it, and
    ``synchronize()``.  Raises ``TimerUnavailable`` if the named timer, or every timer, does not work.
    """
    return open_timer_on(stream.CudaStream(device), name)


def open_timer_on(work_stream: stream.WorkStream, name: TimerName | None = None) -> Timer:
    """As ``open_timer``, on a ``stream.WorkStream``."""
    names = TIMERS if name is None else (name,)
    refused = []
    for candidate in names:
        module = importlib.import_module(f"{__name__}.{candidate}")  # numpy and CuPy stay out until something is timed
        try:
            return cast(Timer, module.open_timer(work_stream))
        except TimerUnavailable as error:
            refused.append(error)
    last = refused[-1]
    late = [one.__cause__ for one in refused if isinstance(one.__cause__, NeverInTime)]
    remedy = _TRY_AGAIN if late else last.remedy
    if len(refused) > 1:
        raise TimerUnavailable(None, _reasons(refused, late), remedy) from last
    if late:
        raise TimerUnavailable(last.name, late[-1].seen, remedy) from last
    raise last


def _reasons(refused: Sequence[TimerUnavailable], late: Sequence[NeverInTime]) -> str:
    """All that was said against the timers, each thing once; of several figures those that were seen last."""
    names: dict[str, list[str]] = {}
    for one in refused:
        failed = one.__cause__
        if isinstance(failed, NeverInTime):
            reason = late[-1].seen
        else:
            reason = str(failed) if isinstance(failed, TimerError) else one.reason
        names.setdefault(reason, []).append(str(one.name))
    return "; ".join(f"{_listed(those)}: {reason}" for reason, those in names.items())


def _listed(names: Sequence[str]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)
