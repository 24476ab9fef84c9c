"""GPU work by sample, out of CUPTI's records: what is a sample's time, and when the GPU paused.  Pure."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_gpuperf.device.timers.cupti_records import Activity
from pytest_gpuperf.device.timers.timer_errors import TimerError

LEAST_PAUSE_NS = 200_000.0
"""Beside three kinds of busy processes, pauses on an H200 lasted 346 us and more.  On an idle one the longest gap of
all, those included in which the host was late, lasted 106 us (docs/results/recordings.md)."""


@dataclass
class Sample:
    """The GPU work of one sample."""

    number: int
    enqueued_ns: float
    """When all of it was in the queue, by CUPTI's clock."""
    work: list[Activity] = field(default_factory=list)
    before: list[Activity] = field(default_factory=list)
    """Work that prepares it: the reset and the flush of the L2."""

    def duration_ns(self) -> float:
        """The sum of its kernels, copies and memsets.  Raises ``TimerError`` if one has no valid time."""
        for one in self.work:
            if one.end_ns <= one.start_ns:
                raise TimerError(
                    f"CUPTI gave no valid time for {one.name!r} (start {one.start_ns}, end {one.end_ns})",
                    "measure again; if it stays so, use --gpuperf-timer=graph",
                )
        return float(sum(one.end_ns - one.start_ns for one in self.work))


def sort_out(activities: Iterable[Activity], tags: Mapping[int, int], samples: Sequence[Sample]) -> None:
    """Give each piece of work to its sample, which forgets what it had.

    ``tags`` has, by correlation id, 2 n + 1 for calls of sample n and 2 n for those that prepare it.  A call without a
    tag was made by another thread, as PyTorch's backward pass is: tags are of the thread that pushed them.  Calls are
    numbered in their order over all threads, so it belongs to the sample whose tagged call came before it, or before
    any to the first one.
    """
    by_number = {sample.number: sample for sample in samples}
    for sample in samples:
        sample.work, sample.before = [], []
    calls = sorted(call for call, tag in tags.items() if tag >> 1 in by_number)
    for activity in activities:
        tag = tags.get(activity.correlation, 0)
        if not tag and calls:
            tag = tags[calls[max(bisect.bisect(calls, activity.correlation) - 1, 0)]] | 1
        if tag >> 1 in by_number:
            sample = by_number[tag >> 1]
            (sample.work if tag & 1 else sample.before).append(activity)


def pauses(samples: Sequence[Sample]) -> Iterator[float]:
    """Nanoseconds of each pause of the GPU before work that was in its queue: it was another process's turn.

    Processes on one GPU take turns of 0.3 to 2.4 ms on an H200.  A kernel within a turn takes as long as ever, so its
    time tells nothing of the neighbour.  Where a sample was enqueued later, the GPU may have waited for the host.
    """
    timeline = sorted(
        (one.start_ns, one.end_ns, sample.enqueued_ns) for sample in samples for one in (*sample.before, *sample.work)
    )
    busy_until = timeline[0][1]
    for start_ns, end_ns, enqueued_ns in timeline:
        if start_ns - busy_until > LEAST_PAUSE_NS and enqueued_ns <= busy_until:
            yield float(start_ns - busy_until)
        busy_until = max(busy_until, end_ns)


def breakdown(samples: Sequence[Sample]) -> dict[str, float]:
    """Mean nanoseconds per sample of each kernel."""
    sums = Counter[str]()
    for one in itertools.chain.from_iterable(sample.work for sample in samples):
        sums[one.name] += one.end_ns - one.start_ns
    return {name: total / len(samples) for name, total in sums.items()}
