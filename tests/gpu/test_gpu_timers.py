"""The timers on a real GPU: they agree, they attribute, they refuse, and they leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.device.device_errors import TimerError, TimerUnavailable
from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers import open_timer
from pytest_gpuperf.device.timers.stream import CudaStream
from pytest_gpuperf.model.limits import TIGHT, TimerName
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.timing.rounds import Workload
from pytest_gpuperf.timing.samples import midmean

pytestmark = pytest.mark.gpu

NAMES: tuple[TimerName, ...] = ("cupti", "graph")


@pytest.fixture(params=NAMES)
def timer(request: pytest.FixtureRequest, cuda_device: Any) -> Timer:
    return opened(cuda_device, request.param)


@pytest.fixture
def cupti(cuda_device: Any) -> Any:
    return opened(cuda_device, "cupti")


@pytest.fixture
def stream(cuda_device: Any) -> CudaStream:
    return CudaStream(cuda_device)


def opened(device: Any, name: TimerName) -> Timer:
    try:
        return open_timer(device, name)
    except TimerUnavailable as error:
        if "cannot be imported" in str(error):
            pytest.skip(str(error))
        raise


def spinning(stream: CudaStream, cycles: int) -> Callable[[], None]:
    return lambda: stream.spin(cycles)


def centre(timer: Timer, run: Callable[[], None], cache: Any = "warm", samples: int = 40) -> float:
    (times,) = timer.measure([Slot(run, samples)], cache)
    assert len(times) == samples
    return midmean(np.asarray(times))


def test_tick_and_overhead_are_plausible(timer: Timer) -> None:
    """CUPTI's is what it reads of an empty kernel beyond one's share of a graph: -110 to 160 ns on ten H200s, on any of
    them in steps of 96 ns from call to call."""
    assert 1 <= timer.tick_ns <= 1100
    assert -200 <= timer.overhead_ns <= 6000


@pytest.mark.parametrize(("cycles", "allowed"), [(20_000, 0.02), (200_000, 0.01)])
def test_warm_times_agree_with_cupti(timer: Timer, cupti: Any, stream: CudaStream, cycles: int, allowed: float) -> None:
    run = spinning(stream, cycles)
    assert centre(timer, run) == pytest.approx(centre(cupti, run), rel=allowed)


def test_cold_times_agree_with_cupti_within_a_microsecond(timer: Timer, cupti: Any, stream: CudaStream) -> None:
    run = spinning(stream, 20_000)
    assert centre(timer, run, "cold") == pytest.approx(centre(cupti, run, "cold"), abs=1000)


def test_a_cold_read_is_slower_than_a_warm_one(timer: Timer) -> None:
    import cupy

    data = cupy.ones(1 << 18, cupy.float32)  # short enough that latency shows, not bandwidth
    out = cupy.empty_like(data)
    run = lambda: cupy.multiply(data, 2, out=out)  # noqa: E731
    # a read that misses the L2 takes some 300 ns longer than one that hits it
    assert centre(timer, run, "cold") > centre(timer, run, "warm") + 100


def test_cupti_adds_up_a_callables_kernels_and_names_them(cupti: Any, stream: CudaStream) -> None:
    def both() -> None:
        stream.spin(20_000)
        stream.empty()
        stream.spin(20_000)

    total = centre(cupti, both)
    (parts,) = cupti.kernel_breakdown
    assert set(parts) == {"gpuperf_spin", "gpuperf_empty"}
    assert sum(parts.values()) == pytest.approx(total, rel=0.02)
    assert total == pytest.approx(2 * centre(cupti, spinning(stream, 20_000)) + centre(cupti, stream.empty), rel=0.02)


def test_cupti_sees_other_streams_and_work_that_waits(cupti: Any, cuda_device: Any, stream: CudaStream) -> None:
    import cupy

    other = cupy.cuda.Stream(non_blocking=True)

    def elsewhere() -> None:
        with other:
            stream.spin(20_000)

    def waits() -> None:
        stream.spin(20_000)
        cuda_device.stream.synchronize()

    assert centre(cupti, elsewhere) == pytest.approx(centre(cupti, spinning(stream, 20_000)), rel=0.05)
    assert centre(cupti, waits) == pytest.approx(centre(cupti, spinning(stream, 20_000)), rel=0.02)


def test_a_workload_that_waits_is_refused_by_graphs_and_harms_nothing(cuda_device: Any, stream: CudaStream) -> None:
    def waits() -> None:
        stream.spin(1000)
        cuda_device.stream.synchronize()

    timer = open_timer(cuda_device, "graph")
    with pytest.raises(TimerError, match=r"pytest-gpuperf\[cupti\]"):
        timer.measure([Slot(waits, 3)], "warm")
    assert centre(timer, spinning(stream, 20_000)) > 1000


def test_cupti_traces_only_while_it_measures(cupti: Any, stream: CudaStream) -> None:
    centre(cupti, stream.empty)
    before = len(cupti._records.activities)
    for _ in range(10):
        stream.empty()
    stream.synchronize()
    cupti._records.flush(1)
    assert len(cupti._records.activities) == before


def test_ten_thousand_samples_of_one_slot_are_all_returned(cupti: Any, stream: CudaStream) -> None:
    """Their records fill several buffers."""
    (times,) = cupti.measure([Slot(spinning(stream, 4000), 10_000)], "warm")
    assert len(times) == 10_000


class _Spinning:
    """Two sides that stay where they are."""

    remarks: tuple[str, ...] = ()

    def __init__(self, timer: Timer, stream: CudaStream, cycles: int) -> None:
        self.timer = timer
        self.sides = Workload(spinning(stream, 100_000)), Workload(spinning(stream, cycles))

    def place(self, call: int, coin: object) -> None: ...

    def finish(self) -> None: ...


@pytest.mark.parametrize(("cycles", "ratio"), [(100_000, 1.0), (101_000, 1.01)])
def test_blocks_see_one_percent(cupti: Any, cuda_device: Any, stream: CudaStream, cycles: int, ratio: float) -> None:
    found = compare(cuda_device, _Spinning(cupti, stream, cycles), TIGHT, 1e-4, seed=1, duration_ns=5e4, budget_s=5.0)
    assert found.comparison.ratio == pytest.approx(ratio, abs=0.002)
