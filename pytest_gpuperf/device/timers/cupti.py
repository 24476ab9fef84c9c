"""CUPTI activity records: the GPU's own time stamps at the start and the end of every kernel.

The most accurate of the timers: within 1 % from 2 us on, cold or warm, for callables of any number of launches on
any stream and from any thread.  The time of a sample is the sum of the durations of all kernels, copies and memsets
that its run launched: its API calls are tagged with the number of the sample (external correlation ids), and those that
prepare it as ours.  What carries no tag was launched by another thread, as PyTorch's backward pass is, and belongs to
the sample that it was launched in.  A cold sample that ran beside a flush, on a stream that waits for no other, is
refused.

Tracing is on only inside ``measure``.  Needs the extra ``cupti``; under another profiler (ncu, nsys) CUPTI is taken.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers.cupti_activities import Activity, ActivitySource, BoundActivities, RecordKinds
from pytest_gpuperf.device.timers.cupti_buffers import buffered_activities
from pytest_gpuperf.device.timers.cupti_flushes import refuse_work_beside_flushes
from pytest_gpuperf.device.timers.cupti_foreign import OURS, refuse_work_of_others, samples_of
from pytest_gpuperf.device.timers.cupti_layouts import BuffersUnreadable
from pytest_gpuperf.device.timers.cupti_pauses import pauses
from pytest_gpuperf.device.timers.queued import QueuedPairs, measure_empty_kernel, varied_lengths
from pytest_gpuperf.device.timers.resolution import tick_of
from pytest_gpuperf.device.timers.stream import WorkStream
from pytest_gpuperf.device.timers.timer_errors import TimerError, TimerUnavailable
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timer_names import TimerName

_INSTALL = "pip install 'pytest-gpuperf[cupti]', or use --gpuperf-timer=graph"
_RELEASE = "end other profilers (ncu, nsys) of this process, or use --gpuperf-timer=graph"
_CALIBRATION_SAMPLES = 20
_TICK_SAMPLES = 64


def open_timer(stream: WorkStream) -> Timer:
    """The CUPTI timer on ``stream``, tried out and calibrated.

    Raises ``TimerUnavailable`` if the binding or the library is missing, CUPTI is taken by another
    profiler, or a trial kernel leaves no valid record.
    """
    try:
        from cupti import cupti  # noqa: PLC0415 an extra
    except (ImportError, OSError) as error:
        raise TimerUnavailable("cupti", f"cupti-python cannot be imported ({error})", _INSTALL) from error
    try:
        return _tried_out(stream, cupti)
    except (cupti.cuptiError, RuntimeError, OSError) as error:
        raise TimerUnavailable("cupti", f"CUPTI does not start ({error})", _RELEASE) from error
    except TimerError as error:
        raise TimerUnavailable("cupti", str(error), _RELEASE) from error


def _tried_out(stream: WorkStream, cupti: Any) -> CuptiTimer:
    with contextlib.suppress(BuffersUnreadable, TimerError, cupti.cuptiError):
        return CuptiTimer(stream, cupti, buffered_activities(cupti))
    # Slower, and the same in every other way. If nothing can be traced at all, this one says why.
    return CuptiTimer(stream, cupti, BoundActivities(cupti))


class CuptiTimer:
    """``Timer`` by activity records."""

    name: TimerName = "cupti"
    kernel_breakdown: tuple[dict[str, float], ...]
    pauses_ns: tuple[float, ...]
    source: ActivitySource
    """Source of records: CUPTI's own buffers, or cupti-python's objects."""
    _next_tag = itertools.count(1)
    """Shared by all timers of the process: records left from a failed measurement never count for another timer."""

    def __init__(self, stream: WorkStream, cupti: Any, source: ActivitySource) -> None:
        self._stream = stream
        self._cupti = cupti
        self.source = source
        self._external_kind = RecordKinds.of(cupti).external
        kinds = cupti.ActivityKind
        self._kinds = (  # tags hang on API records; kernels launched through cuLaunchKernel need the driver's
            *(kinds.CONCURRENT_KERNEL, kinds.MEMCPY, kinds.MEMSET),
            *(kinds.EXTERNAL_CORRELATION, kinds.DRIVER, kinds.RUNTIME),
        )
        self.kernel_breakdown = self.pauses_ns = ()
        self._enqueued_ns: dict[int, float] = {}
        self._calibrate()

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        self._enqueued_ns.clear()
        try:
            with self._tracing():
                tags = [self._enqueue(slot, cold=cache == "cold") for slot in slots]
                self._stream.synchronize()
                by_sample = self._collect({tag for of_slot in tags for tag in of_slot})
                if all(slot.guard for slot in slots):
                    refuse_work_of_others(self.source)
                if cache == "cold":
                    refuse_work_beside_flushes(by_sample, self.source)
        except self._cupti.cuptiError as error:
            raise TimerError(f"CUPTI failed while measuring ({error}): {_RELEASE}") from error
        counted = [of_slot[slot.dropped :] for slot, of_slot in zip(slots, tags, strict=True)]
        self.pauses_ns = pauses(self.source.activities, self.source.tags, self._enqueued_ns)
        self.kernel_breakdown = tuple(_breakdown([by_sample[tag] for tag in of_slot]) for of_slot in counted)
        return [[_duration(by_sample[tag]) for tag in of_slot] for of_slot in counted]

    def _enqueue(self, slot: Slot, *, cold: bool) -> list[int]:
        """Enqueue the samples, those to be dropped first; returns the tag of each."""
        tags = list(itertools.islice(self._next_tag, slot.dropped + slot.samples))
        external, guard = self._external_kind, slot.guard
        persisting = cold and self._stream.has_persisting_lines
        for tag in tags:
            self._as_ours(
                slot.reset, guard.arm if guard is not None else None,
                self._stream.end_persistence if persisting else None, self._stream.flush_l2 if cold else None,
            )  # fmt: skip
            self._cupti.activity_push_external_correlation_id(external, tag)
            try:
                returned = slot.run()
            finally:
                self._cupti.activity_pop_external_correlation_id(external)
            self._note_enqueued(tag)
            if guard is not None:
                self._as_ours(functools.partial(guard.after, returned))
        return tags

    def _as_ours(self, *calls: Callable[[], Any] | None) -> None:
        """Make calls that go with a sample and are not it."""
        given = [call for call in calls if call is not None]
        if not given:
            return
        self._cupti.activity_push_external_correlation_id(self._external_kind, OURS)
        try:
            for call in given:
                call()
        finally:
            self._cupti.activity_pop_external_correlation_id(self._external_kind)

    def _note_enqueued(self, tag: int) -> None:
        """From now on all work of the sample is in the queue; without CUPTI's clock, pauses are not seen."""
        try:
            self._enqueued_ns[tag] = self._cupti.get_timestamp()
        except self._cupti.cuptiError:
            self._enqueued_ns.pop(tag, None)

    @contextlib.contextmanager
    def _tracing(self) -> Iterator[None]:
        self.source.start()
        enabled = []
        try:
            for kind in self._kinds:
                self._cupti.activity_enable(kind)
                enabled.append(kind)
            yield
        finally:
            for kind in enabled:
                self._cupti.activity_disable(kind)

    def _collect(self, tags: set[int]) -> dict[int, list[Activity]]:
        """The work of each tagged sample.  Raises ``TimerError`` if records were dropped or a sample has none."""
        for forced in (0, 1):
            self.source.flush(forced)
            by_sample = samples_of(self.source, tags)
            if len(by_sample) == len(tags):
                break
        dropped = self._dropped()
        if dropped:
            raise TimerError(f"CUPTI dropped {dropped} activity records: measure fewer samples or launches at once")
        missing = len(tags) - len(by_sample)
        if missing:
            raise TimerError(
                f"CUPTI recorded no GPU work for {missing} of {len(tags)} samples: the workload launches nothing, "
                f"launches from another thread, or another profiler has taken CUPTI"
            )
        return by_sample

    def _dropped(self) -> int:
        count = ctypes.c_size_t(0)
        self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(count))
        return count.value

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


def _duration(activities: Sequence[Activity]) -> float:
    for activity in activities:
        if activity.end_ns <= activity.start_ns:
            raise TimerError(
                f"CUPTI gave no valid time for {activity.name!r} (start {activity.start_ns}, end {activity.end_ns}): "
                f"measure again; if it stays so, use --gpuperf-timer=graph"
            )
    return float(sum(activity.end_ns - activity.start_ns for activity in activities))


def _breakdown(samples: Sequence[Sequence[Activity]]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for activities in samples:
        for activity in activities:
            sums[activity.name] += (activity.end_ns - activity.start_ns) / len(samples)
    return dict(sums)
