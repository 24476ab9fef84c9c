"""Check that cold samples were cold: work that overlapped with a flush of the L2 found the caches full.

Calls are numbered in their order, so the last memset of ours before a sample's first call is its flush.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

from pytest_gpuperf.device.timers.cupti_activities import MEMSET, Activity, ActivitySource
from pytest_gpuperf.device.timers.cupti_foreign import OURS
from pytest_gpuperf.device.timers.timer_errors import TimerError

_BESIDE_A_FLUSH = (
    "{name!r} ran while the L2 was being flushed: it was launched on a stream that does not wait for the current "
    "one, or that the current one does not wait for. Launch on gpu.stream, which CuPy and PyTorch do by themselves, "
    "or have the streams wait for each other by events"
)
_TOUCH_NS = 1000
"""A hundredth of a flush: what follows it closely is behind it."""


def refuse_work_beside_flushes(by_sample: Mapping[int, Sequence[Activity]], source: ActivitySource) -> None:
    """Raise ``TimerError`` if a sample began before its flush had ended, or went on after the next one had begun.

    ``by_sample``: the work of every sample by its tag; ``source`` has read all other work of the measurement too.
    A sample whose flush left no record is let pass.
    """
    memsets = sorted(
        one for one in source.activities if one.name == MEMSET and source.tags.get(one.correlation) == OURS
    )
    calls = [memset.correlation for memset in memsets]
    last_call, last = 0, None
    for _, activities in sorted(by_sample.items()):
        before = bisect.bisect(calls, min(one.correlation for one in activities))
        if before and calls[before - 1] > last_call:
            flush = memsets[before - 1]
            first = min(activities, key=lambda one: one.start_ns)
            if first.start_ns < flush.end_ns - _TOUCH_NS:
                raise TimerError(_BESIDE_A_FLUSH.format(name=first.name))
            if last is not None and flush.start_ns < last.end_ns - _TOUCH_NS:
                raise TimerError(_BESIDE_A_FLUSH.format(name=last.name))
        last_call = max(one.correlation for one in activities)
        last = max(activities, key=lambda one: one.end_ns)
