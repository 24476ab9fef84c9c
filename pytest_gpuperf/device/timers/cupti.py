"""CUPTI activity records: the GPU's own time stamps at the start and the end of every kernel.

The most accurate of the timers: within 1 % from 2 us on, cold or warm, for callables of any number of launches on
any stream and from any thread.  The time of a sample is the sum of the durations of all kernels, copies and memsets
that its run launched: its API calls are tagged with the number of the sample (external correlation ids), and so are
those that prepare it.  A cold sample that ran beside a flush, on a stream that waits for no other, is refused.

Tracing is on only inside ``measure``.  Needs the extra ``cupti``; under another profiler (ncu, nsys) CUPTI is taken.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import itertools
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers.cupti_records import MEMSET, Activity, Records, records_of
from pytest_gpuperf.device.timers.queued import QueuedPairs, measure_empty_kernel, varied_lengths
from pytest_gpuperf.device.timers.resolution import tick_of
from pytest_gpuperf.device.timers.stream import CudaStream
from pytest_gpuperf.device.timers.timer_errors import TimerError, TimerUnavailable
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timer_names import TimerName

_INSTALL = "pip install 'pytest-gpuperf[cupti]', or use --gpuperf-timer=graph"
_RELEASE = "end other profilers of this process (ncu, nsys, torch.profiler), or use --gpuperf-timer=graph"
_CALIBRATION_SAMPLES = 20
_TICK_SAMPLES = 64
_TOUCH_NS = 1000
"""A hundredth of a flush: what follows it closely is behind it."""
LEAST_PAUSE_NS = 200_000.0
"""Beside three kinds of busy processes, pauses on an H200 lasted 346 us and more.  On an idle one the longest gap of
all, those included in which the host was late, lasted 106 us (docs/results/recordings.md)."""


def open_timer(stream: CudaStream) -> Timer:
    """The CUPTI timer on ``stream``, tried out and calibrated.

    Raises ``TimerUnavailable`` if the binding or the library is missing, CUPTI is taken by another
    profiler, or a trial kernel leaves no valid record.
    """
    try:
        from cupti import cupti  # noqa: PLC0415 an extra
    except (ImportError, OSError) as error:
        raise TimerUnavailable("cupti", f"cupti-python cannot be imported ({error})", _INSTALL) from error
    try:
        return CuptiTimer(stream, cupti, records_of(cupti))
    except (cupti.cuptiError, RuntimeError, OSError) as error:
        raise TimerUnavailable("cupti", f"CUPTI does not start ({error})", _RELEASE) from error
    except TimerError as error:
        raise TimerUnavailable("cupti", error.reason, error.remedy or _RELEASE) from error


@dataclass
class _Sample:
    """The GPU work of one sample."""

    work: list[Activity] = field(default_factory=list)
    before: list[Activity] = field(default_factory=list)
    """Work that prepares it: the reset and the flush of the L2."""


class CuptiTimer:
    """``Timer`` by activity records."""

    name: TimerName = "cupti"
    kernel_breakdown: tuple[dict[str, float], ...] = ()
    pauses_ns: tuple[float, ...] = ()
    _numbers = itertools.count(1)
    """Of samples, shared by all timers of the process: records of a failed measurement never count for another one.
    The calls of sample n are tagged 2 n + 1, those that prepare it 2 n."""

    def __init__(self, stream: CudaStream, cupti: Any, records: Records) -> None:
        self._stream = stream
        self._cupti = cupti
        self._records = records
        kinds = cupti.ActivityKind
        self._kinds = (  # tags hang on API records; kernels launched through cuLaunchKernel need the driver's
            *(kinds.CONCURRENT_KERNEL, kinds.MEMCPY, kinds.MEMSET),
            *(kinds.EXTERNAL_CORRELATION, kinds.DRIVER, kinds.RUNTIME),
        )
        self._enqueued_ns: dict[int, float] = {}
        self._calibrate()

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        self._enqueued_ns.clear()
        try:
            with self._tracing():
                for slot in slots:
                    self._enqueue(slot, cold=cache == "cold")
                self._stream.synchronize()
                samples = self._collect()
        except self._cupti.cuptiError as error:
            raise TimerError(f"CUPTI failed while measuring ({error})", _RELEASE) from error
        if cache == "cold":
            _refuse_work_beside_flushes(samples)
        self.pauses_ns = tuple(_pauses(samples, list(self._enqueued_ns.values())))
        taken = iter(samples)
        by_slot = [list(itertools.islice(taken, slot.dropped + slot.samples))[slot.dropped :] for slot in slots]
        self.kernel_breakdown = tuple(map(_breakdown, by_slot))
        return [[_duration(sample.work) for sample in of_slot] for of_slot in by_slot]

    def _enqueue(self, slot: Slot, *, cold: bool) -> None:
        """Enqueue the samples, those to be dropped first; note when each was all in the queue, by CUPTI's clock."""
        for number in itertools.islice(self._numbers, slot.dropped + slot.samples):
            if slot.reset is not None or cold:
                with self._tagged(2 * number):
                    if slot.reset is not None:
                        slot.reset()
                    if cold:
                        self._stream.flush_l2()
            with self._tagged(2 * number + 1):
                slot.run()
            self._enqueued_ns[number] = self._cupti.get_timestamp()

    @contextlib.contextmanager
    def _tagged(self, tag: int) -> Iterator[None]:
        """Tag the calls that this thread makes inside."""
        kind = self._cupti.ExternalCorrelationKind.CUSTOM2  # PyTorch has 0 and 1
        self._cupti.activity_push_external_correlation_id(kind, tag)
        try:
            yield
        finally:
            self._cupti.activity_pop_external_correlation_id(kind)

    @contextlib.contextmanager
    def _tracing(self) -> Iterator[None]:
        self._records.start()
        enabled = []
        try:
            for kind in self._kinds:
                self._cupti.activity_enable(kind)
                enabled.append(kind)
            yield
        finally:
            for kind in enabled:
                self._cupti.activity_disable(kind)

    def _collect(self) -> list[_Sample]:
        """The samples that were enqueued.  Raises ``TimerError`` if records were dropped or a sample has none."""
        for forced in (0, 1):
            self._records.flush(forced)
            samples = self._by_sample()
            missing = sum(not sample.work for sample in samples)
            if not missing:
                break
        dropped = ctypes.c_size_t(0)
        self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(dropped))
        if dropped.value:
            raise TimerError(
                f"CUPTI dropped {dropped.value} activity records: measure fewer samples or launches at once"
            )
        if missing:
            raise TimerError(
                f"CUPTI recorded no GPU work for {missing} of {len(samples)} samples: the workload launches nothing, "
                f"or another profiler (torch.profiler) has taken CUPTI"
            )
        return samples

    def _by_sample(self) -> list[_Sample]:
        """The GPU work by sample.

        A call without a tag was made by another thread, as PyTorch's backward pass is: tags are of the thread that
        pushed them.  Calls are numbered in their order over all threads, so it belongs to the sample whose tagged call
        came before it, or before any to the first one.
        """
        samples = {number: _Sample() for number in self._enqueued_ns}
        tags = self._records.tags
        calls = sorted(call for call, tag in tags.items() if tag >> 1 in samples)
        for activity in self._records.activities:
            tag = tags.get(activity.correlation)
            if tag is None and calls:
                tag = tags[calls[max(bisect.bisect(calls, activity.correlation) - 1, 0)]] | 1
            sample = samples.get(tag >> 1) if tag is not None else None
            if sample is not None and tag is not None:
                (sample.work if tag & 1 else sample.before).append(activity)
        return list(samples.values())

    def _calibrate(self) -> None:
        stream = self._stream
        pairs = QueuedPairs(stream)  # first, because it wakes the GPU
        lengths = iter(varied_lengths(_TICK_SAMPLES + 1))
        empty = Slot(stream.empty, _CALIBRATION_SAMPLES)
        varied = Slot(lambda: stream.spin(next(lengths)), _TICK_SAMPLES)
        self.measure([empty], "warm")  # the first tracing loads CUPTI's own code
        readings, lengths_read = self.measure([empty, varied], "warm")
        self.tick_ns = tick_of(lengths_read)
        self.overhead_ns = statistics.median(readings) - measure_empty_kernel(stream, pairs).own_ns


def _refuse_work_beside_flushes(samples: Sequence[_Sample]) -> None:
    """Raise ``TimerError`` if a sample began before its flush had ended, or went on after the next one had begun.

    What overlaps with a flush of the L2 finds the caches full.  A sample whose flush left no record is let pass.
    """
    last: Activity | None = None
    for sample in samples:
        flush = max((one for one in sample.before if one.name == MEMSET), default=None)  # its last memset, by its call
        beside = None
        if flush is not None and last is not None and flush.start_ns < last.end_ns - _TOUCH_NS:
            beside = last
        last = max(sample.work, key=attrgetter("end_ns"))
        first = min(sample.work, key=attrgetter("start_ns"))
        if flush is not None and first.start_ns < flush.end_ns - _TOUCH_NS:
            beside = first
        if beside is not None:
            raise TimerError(
                f"{beside.name!r} ran while the L2 was being flushed: it was launched on a stream that does not wait "
                f"for the current one, or that the current one does not wait for. Launch on gpu.stream, which CuPy and "
                f"PyTorch do by themselves, or have the streams wait for each other by events"
            )


def _pauses(samples: Sequence[_Sample], enqueued_ns: Sequence[float]) -> Iterator[float]:
    """Nanoseconds of each pause of the GPU before work that was in its queue: it was another process's turn.

    Processes on one GPU take turns of 0.3 to 2.4 ms on an H200.  A kernel within a turn takes as long as ever, so its
    time tells nothing of the neighbour.  Where a sample was enqueued later, the GPU may have waited for the host.
    """
    timeline = sorted(
        (one.start_ns, one.end_ns, queued_ns)
        for sample, queued_ns in zip(samples, enqueued_ns, strict=True)
        for one in (*sample.before, *sample.work)
    )
    busy_until = timeline[0][1]
    for start_ns, end_ns, queued_ns in timeline:
        if start_ns - busy_until > LEAST_PAUSE_NS and queued_ns <= busy_until:
            yield float(start_ns - busy_until)
        busy_until = max(busy_until, end_ns)


def _duration(activities: Sequence[Activity]) -> float:
    for activity in activities:
        if activity.end_ns <= activity.start_ns:
            raise TimerError(
                f"CUPTI gave no valid time for {activity.name!r} (start {activity.start_ns}, end {activity.end_ns}): "
                f"measure again; if it stays so, use --gpuperf-timer=graph"
            )
    return float(sum(activity.end_ns - activity.start_ns for activity in activities))


def _breakdown(samples: Sequence[_Sample]) -> dict[str, float]:
    """Mean nanoseconds per sample of each kernel."""
    sums = Counter[str]()
    for activity in itertools.chain.from_iterable(sample.work for sample in samples):
        sums[activity.name] += activity.end_ns - activity.start_ns
    return {name: total / len(samples) for name, total in sums.items()}
