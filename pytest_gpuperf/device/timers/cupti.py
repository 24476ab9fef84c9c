"""CUPTI activity records: the GPU's own time stamps at the start and the end of every kernel.

The most accurate of the timers: within 1 % from 2 us on, cold or warm, for callables of any number of launches on
any stream and from any thread.  The time of a sample is the sum of the durations of all kernels, copies and memsets
that its run launched: its API calls are tagged with the number of the sample (external correlation ids), and so are
those that prepare it.

Tracing is on only inside ``measure``.  Needs the extra ``cupti``; under another profiler (ncu, nsys) CUPTI is taken.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_gpuperf.device.device_errors import TimerError
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.timers.cupti_records import Activity, Records, records_of
from pytest_gpuperf.device.timers.loaded_code import LoadedCode, watch_code
from pytest_gpuperf.device.timers.resolution import tick_of
from pytest_gpuperf.device.timers.stream import (
    TICK_READINGS,
    CudaStream,
    QueuedPairs,
    measure_empty_kernel,
    varied_lengths,
)
from pytest_gpuperf.model.limits import TimerName
from pytest_gpuperf.model.result import TracedLaunch
from pytest_gpuperf.model.time_record import CacheMode

_RELEASE = "end other profilers of this process (ncu, nsys, torch.profiler), or use --gpuperf-timer=graph"
_CALIBRATION_SAMPLES = 20


def open_cupti(stream: CudaStream) -> CuptiTimer:
    """The timer on ``stream``, tried out and calibrated.

    Raises ``TimerError`` if the binding or the library is missing, CUPTI is taken by another profiler, or a trial
    kernel leaves no valid record.
    """
    try:
        from cupti import cupti  # noqa: PLC0415 an extra
    except (ImportError, OSError) as error:
        raise TimerError(
            f"cupti-python cannot be imported ({error}); pip install 'pytest-gpuperf[cupti]', or use "
            "--gpuperf-timer=graph"
        ) from error
    try:
        return CuptiTimer(stream, cupti, records_of(cupti))
    except (cupti.cuptiError, RuntimeError, OSError, AttributeError, KeyError) as error:
        raise TimerError(
            f"CUPTI does not start, or is not the one that its binding expects ({error}); {_RELEASE}"
        ) from error


Sample = list[Activity]
"""The GPU work of one sample, without the reset and the flush of the L2 before it."""


class CuptiTimer:
    """``Timer`` by activity records."""

    name: TimerName = "cupti"
    kernel_breakdown: tuple[dict[str, float], ...] = ()
    elapsed_ns: tuple[list[float], ...] = ()
    _numbers = itertools.count(1)
    """Of samples, shared by all timers of the process: records of a failed measurement never count for another one.
    The calls of sample n are tagged 2 n + 1, those that prepare it 2 n."""

    def __init__(self, stream: CudaStream, cupti: Any, records: Records) -> None:
        self._stream, self._cupti, self._records = stream, cupti, records
        kinds = cupti.ActivityKind
        self._kinds = (  # tags hang on API records; kernels launched through cuLaunchKernel need the driver's
            *(kinds.CONCURRENT_KERNEL, kinds.MEMCPY, kinds.MEMSET),
            *(kinds.EXTERNAL_CORRELATION, kinds.DRIVER, kinds.RUNTIME),
        )
        pairs = QueuedPairs(stream)  # first, because it wakes the GPU
        lengths = varied_lengths()
        empty = Slot(stream.empty, _CALIBRATION_SAMPLES)
        self.measure([empty], "warm")  # the first tracing loads CUPTI's own code
        varied = Slot(lambda: stream.spin(next(lengths)), TICK_READINGS)
        readings, lengths_read = self.measure([empty, varied], "warm")
        self.tick_ns = tick_of(lengths_read)
        self.overhead_ns = statistics.median(readings) - measure_empty_kernel(stream, pairs)[0]

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        try:
            with self._tracing():
                by_slot = [self._enqueue(slot, cold=cache == "cold") for slot in slots]
                self._stream.synchronize()
                samples = self._collect(itertools.chain.from_iterable(by_slot))
        except self._cupti.cuptiError as error:
            raise TimerError(f"CUPTI failed while measuring ({error}); {_RELEASE}") from error
        counted = [
            [samples[number] for number in numbers[slot.dropped :]]
            for slot, numbers in zip(slots, by_slot, strict=True)
        ]
        self.kernel_breakdown = tuple(map(_breakdown, counted))
        self.elapsed_ns = tuple(list(map(_elapsed_ns, of_slot)) for of_slot in counted)
        return [list(map(_duration_ns, of_slot)) for of_slot in counted]

    def trace(self, slot: Slot) -> list[TracedLaunch]:
        code = watch_code()
        self._records.with_launches = True
        try:
            with self._tracing(), contextlib.nullcontext() if code is None else code.tracing():
                (number,) = self._enqueue(slot._replace(samples=1, dropped=0), cold=False)
                self._stream.synchronize()
                ran = sorted(self._collect([number])[number], key=lambda one: one.correlation)
        except self._cupti.cuptiError as error:
            raise TimerError(f"CUPTI failed while tracing ({error}); {_RELEASE}") from error
        finally:
            self._records.with_launches = False
        return [_traced(one, code) for one in ran if one.launch]

    def _enqueue(self, slot: Slot, *, cold: bool) -> list[int]:
        """Enqueue the samples, those to be dropped first; their numbers."""
        numbers = list(itertools.islice(self._numbers, slot.dropped + slot.samples))
        for number in numbers:
            if cold or slot.reset is not None:
                with self._tagged(2 * number):
                    if slot.reset is not None:
                        slot.reset()
                    if cold:
                        self._stream.flush_l2()
            with self._tagged(2 * number + 1):
                slot.run()
        return numbers

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
        with contextlib.ExitStack() as enabled:
            for kind in self._kinds:
                self._cupti.activity_enable(kind)
                enabled.callback(self._cupti.activity_disable, kind)
            yield

    def _collect(self, numbers: Iterable[int]) -> dict[int, Sample]:
        """The samples of these numbers.  Raises ``TimerError`` if records were dropped or a sample has none."""
        samples: dict[int, Sample] = {number: [] for number in numbers}
        for forced in (0, 1):
            self._records.flush(forced)
            _sort_out(self._records.activities, self._records.tags, samples)
            missing = sum(not work for work in samples.values())
            if not missing:
                break
        dropped = ctypes.c_size_t(0)
        self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(dropped))
        if dropped.value:
            raise TimerError(f"CUPTI dropped {dropped.value} activity records; measure fewer launches at once")
        if missing:
            raise TimerError(
                f"CUPTI recorded no GPU work for {missing} of {len(samples)} samples; have the workload launch "
                f"something, or {_RELEASE}"
            )
        return samples


def _sort_out(activities: Iterable[Activity], tags: Mapping[int, int], samples: Mapping[int, Sample]) -> None:
    """Give each piece of work to its sample, which forgets what it had; ``tags`` are by the calls' correlation ids.

    A call without a tag was made by another thread, as PyTorch's backward pass is.  Calls are numbered in their order
    over all threads, so it belongs to the sample whose tagged call came before it, or before any to the first one.
    """
    for work in samples.values():
        work.clear()
    calls = sorted(call for call, tag in tags.items() if tag >> 1 in samples)
    for activity in activities:
        tag = tags.get(activity.correlation, 0)
        if not tag and calls:
            tag = tags[calls[max(bisect.bisect(calls, activity.correlation) - 1, 0)]] | 1
        if tag & 1 and tag >> 1 in samples:
            samples[tag >> 1].append(activity)


def _traced(kernel: Activity, code: LoadedCode | None) -> TracedLaunch:
    x, y, z, width, height, depth, dynamic, registers, static, cluster = kernel.launch
    return TracedLaunch(
        kernel.name, (x, y, z), (width, height, depth), dynamic, registers, clustered=cluster > 1,
        cubin=b"" if code is None else code.of(kernel.name, kernel.correlation, registers, static),
    )  # fmt: skip


def _duration_ns(sample: Sample) -> float:
    """The sum of its kernels, copies and memsets.  Raises ``TimerError`` if one has no valid time."""
    for one in sample:
        if one.end_ns <= one.start_ns:
            raise TimerError(
                f"CUPTI gave no valid time for {one.name!r} (start {one.start_ns}, end {one.end_ns}); measure again; "
                "if it stays so, use --gpuperf-timer=graph"
            )
    return float(sum(one.end_ns - one.start_ns for one in sample))


def _elapsed_ns(sample: Sample) -> float:
    return float(max(one.end_ns for one in sample) - min(one.start_ns for one in sample))


def _breakdown(samples: Sequence[Sample]) -> dict[str, float]:
    """Mean nanoseconds per sample of each kernel."""
    sums = Counter[str]()
    for one in itertools.chain.from_iterable(samples):
        sums[one.name] += one.end_ns - one.start_ns
    return {name: total / len(samples) for name, total in sums.items()}
