"""CUPTI activity records: the GPU's own time stamps at the start and the end of every kernel.

The most accurate of the timers: within 1 % from 2 us on, cold or warm, for callables of any number of launches on
any stream and from any thread.  The time of a sample is the sum of the durations of all kernels, copies and memsets
that its run launched: its API calls are tagged with the number of the sample (external correlation ids), and so are
those that prepare it.

Tracing is on only inside ``measure``.  Needs the extra ``cupti``; under another profiler (ncu, nsys) CUPTI is taken.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers.cupti_records import Records, records_of
from pytest_gpuperf.device.timers.cupti_samples import Sample, breakdown, pauses, sort_out
from pytest_gpuperf.device.timers.queued import QueuedPairs, measure_empty_kernel, varied_lengths
from pytest_gpuperf.device.timers.resolution import tick_of
from pytest_gpuperf.device.timers.stream import CudaStream
from pytest_gpuperf.device.timers.timer_errors import TimerError, TimerUnavailable
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timer_names import TimerName

_INSTALL = "pip install 'pytest-gpuperf[cupti]', or use --gpuperf-timer=graph"
_RELEASE = "end other profilers of this process (ncu, nsys, torch.profiler), or use --gpuperf-timer=graph"
_LAUNCH_OR_RELEASE = f"have the workload launch something, or {_RELEASE}"
_CALIBRATION_SAMPLES = 20
_TICK_SAMPLES = 64


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
        self._calibrate()

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        try:
            with self._tracing():
                by_slot = [self._enqueue(slot, cold=cache == "cold") for slot in slots]
                self._stream.synchronize()
                samples = list(itertools.chain.from_iterable(by_slot))
                self._collect(samples)
        except self._cupti.cuptiError as error:
            raise TimerError(f"CUPTI failed while measuring ({error})", _RELEASE) from error
        self.pauses_ns = tuple(pauses(samples))
        counted = [of_slot[slot.dropped :] for slot, of_slot in zip(slots, by_slot, strict=True)]
        self.kernel_breakdown = tuple(map(breakdown, counted))
        return [[sample.duration_ns() for sample in of_slot] for of_slot in counted]

    def _enqueue(self, slot: Slot, *, cold: bool) -> list[Sample]:
        """Enqueue the samples, those to be dropped first."""
        samples = []
        for number in itertools.islice(self._numbers, slot.dropped + slot.samples):
            if cold or slot.reset is not None:
                with self._tagged(2 * number):
                    if slot.reset is not None:
                        slot.reset()
                    if cold:
                        self._stream.flush_l2()
            with self._tagged(2 * number + 1):
                slot.run()
            samples.append(Sample(number, self._cupti.get_timestamp()))
        return samples

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

    def _collect(self, samples: Sequence[Sample]) -> None:
        """Give the samples their work.  Raises ``TimerError`` if records were dropped or a sample has none."""
        for forced in (0, 1):
            self._records.flush(forced)
            sort_out(self._records.activities, self._records.tags, samples)
            missing = sum(not sample.work for sample in samples)
            if not missing:
                break
        dropped = ctypes.c_size_t(0)
        self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(dropped))
        if dropped.value:
            raise TimerError(f"CUPTI dropped {dropped.value} activity records", "measure fewer launches at once")
        if missing:
            raise TimerError(f"CUPTI recorded no GPU work for {missing} of {len(samples)} samples", _LAUNCH_OR_RELEASE)

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
