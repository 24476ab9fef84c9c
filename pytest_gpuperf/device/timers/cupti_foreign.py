"""Work that carries no tag: other threads of the process launched it.

A sample's calls carry its tag, and those that prepare it, the flush of the L2 among them, carry ``OURS``.  CUPTI's tags
are those of the thread that pushed them, and its calls are numbered in their order over all threads: so a call without
a tag belongs to the sample whose call came before it.  Of guarded samples such work is refused.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Collection

from pytest_gpuperf.device.timers.cupti_activities import Activity, ActivitySource
from pytest_gpuperf.device.timers.timer_errors import TimerError

OURS = 0
"""Tag of what prepares a sample or looks at its result; samples are numbered from 1."""


def samples_of(source: ActivitySource, tags: Collection[int]) -> dict[int, list[Activity]]:
    """The work of each of the samples ``tags``, with what other threads launched meanwhile."""
    by_sample: dict[int, list[Activity]] = defaultdict(list)
    untagged: list[Activity] = []
    for activity in source.activities:
        tag = source.tags.get(activity.correlation)
        if tag is None:
            untagged.append(activity)
        elif tag in tags:
            by_sample[tag].append(activity)
    if untagged:
        calls = sorted((call, tag) for call, tag in source.tags.items() if tag == OURS or tag in tags)
        for activity in untagged:
            sample = _launched_in(calls, activity.correlation)
            if sample is not None:
                by_sample[sample].append(activity)
    return by_sample


def _launched_in(calls: list[tuple[int, int]], call: int) -> int | None:
    """The sample of the call before; behind what prepares a sample, and before any, that of the next one."""
    place = bisect.bisect(calls, (call, OURS))
    if place and calls[place - 1][1] != OURS:
        return calls[place - 1][1]
    return next((tag for _, tag in calls[place:] if tag != OURS), None)


def refuse_work_of_others(source: ActivitySource) -> None:
    """Raise ``TimerError`` if there is work without a tag."""
    others = [one.name for one in source.activities if one.correlation not in source.tags]
    if others:
        raise TimerError(
            f"{others[0]!r} ran on the GPU during the measurement, and this thread did not launch it: with inputs= "
            "or outputs= nothing but the function itself may launch. Launch all of the workload from there (PyTorch's "
            "backward pass by torch.autograd.set_multithreading_enabled(False)), and end threads that use the GPU"
        )
