"""Pauses of a GPU that had work in its queue: it was somebody else's turn.  Pure.

Processes on one GPU take turns, in slices of 0.3 to 2.4 ms on an H200.  A kernel within a slice takes as long as ever,
so its times tell nothing of the neighbour, and in a container its process id may not be seen either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_gpuperf.device.timers.cupti_activities import Activity

LEAST_PAUSE_NS = 200_000.0
"""Beside three kinds of busy processes, pauses on an H200 lasted 346 us and more.  On an idle one the longest gap of
all, those included in which the host was late, lasted 106 us (docs/results/recordings.md)."""


def pauses(
    activities: Sequence[Activity], tags: Mapping[int, int], enqueued_ns: Mapping[int, float]
) -> tuple[float, ...]:
    """Nanoseconds of each pause, in order.

    ``tags`` has the sample of each correlation id, ``enqueued_ns`` the time from which on all work of a sample was in
    the queue, by the records' clock.  A gap counts only if the sample that it delays was in the queue before it began:
    for others the GPU may have waited for the host.
    """
    return tuple(_pauses(sorted(activities, key=lambda one: one.start_ns), tags, enqueued_ns))


def _pauses(ordered: Sequence[Activity], tags: Mapping[int, int], enqueued_ns: Mapping[int, float]) -> Iterator[float]:
    delayed = [enqueued_ns.get(tags.get(one.correlation, -1)) for one in ordered]
    for place in range(len(delayed) - 2, -1, -1):  # a flush belongs to the sample behind it
        if delayed[place] is None:
            delayed[place] = delayed[place + 1]
    busy_until = ordered[0].end_ns if ordered else 0
    for activity, queued_ns in zip(ordered, delayed, strict=True):
        gap = activity.start_ns - busy_until
        if gap > LEAST_PAUSE_NS and queued_ns is not None and queued_ns <= busy_until:
            yield float(gap)
        busy_until = max(busy_until, activity.end_ns)
