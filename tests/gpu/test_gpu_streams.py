"""Workloads of other libraries on a real GPU: behind the flush, in the graph, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.device_errors import TimerError, TimerUnavailable
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.model.limits import TimerName

pytestmark = pytest.mark.gpu

ELEMENTS = 1 << 24


@pytest.fixture
def cupti(cuda_device: CudaDevice) -> Timer:
    try:
        return cuda_device.timer("cupti")
    except TimerUnavailable as problem:
        pytest.skip(str(problem))


def median(timer: Timer, run: Callable[[], Any]) -> float:
    run()
    return float(np.median(timer.measure([Slot(run, 20)], "cold")[0]))


@pytest.fixture
def scaling(gpu: Gpu) -> Callable[[], Any]:
    """A CuPy call on the stream that is current when it is called."""
    import cupy

    source, target = gpu.random(ELEMENTS, seed=1), gpu.empty(ELEMENTS)
    return lambda: cupy.multiply(source, 2.0, out=target)


@pytest.mark.parametrize("name", ["cupti", "graph"])
def test_pytorch_and_cupy_are_timed_alike_for_the_same_copy(cuda_device: CudaDevice, name: TimerName) -> None:
    import cupy

    torch = pytest.importorskip("torch")
    source = torch.rand(ELEMENTS, device="cuda")
    target = torch.empty_like(source)
    by_cupy, from_cupy = cupy.asarray(target).data, cupy.asarray(source).data
    with cuda_device.current():
        try:
            timer = cuda_device.timer(name)
        except TimerUnavailable as problem:
            pytest.skip(str(problem))
        times = [median(timer, lambda: target.copy_(source)),
                 median(timer, lambda: by_cupy.copy_from_device_async(from_cupy, source.nbytes))]  # fmt: skip
    assert times[0] == pytest.approx(times[1], rel=0.05)


def test_a_backward_pass_of_pytorch_is_timed_whole(cuda_device: CudaDevice, cupti: Timer) -> None:
    """Threads of its own launch it, and CUPTI's tags are of the thread that pushed them."""
    torch = pytest.importorskip("torch")
    x = torch.rand(ELEMENTS, device="cuda", requires_grad=True)

    def step() -> None:
        torch.autograd.grad((x * x).sin().sum(), x)

    def in_this_thread() -> None:
        with torch.autograd.set_multithreading_enabled(False):
            step()

    with cuda_device.current():
        assert median(cupti, step) == pytest.approx(median(cupti, in_this_thread), rel=0.05)


def spinning(cycles: int) -> Callable[[], None]:
    """A kernel of so many cycles, on a stream that waits for no other."""
    import cupy

    spin = cupy.RawModule(
        code='extern "C" __global__ void spin(int n) { long long t = clock64(); while (clock64() - t < n) {} }'
    ).get_function("spin")
    loose = cupy.cuda.Stream(non_blocking=True)

    def unordered() -> None:
        with loose:
            spin((1,), (1,), (np.int32(cycles),))

    return unordered


def test_part_on_a_loose_stream_is_refused_without_cupti(cuda_device: CudaDevice, scaling: Callable[[], Any]) -> None:
    elsewhere, timer = spinning(3_000_000), cuda_device.timer("graph")

    def in_parts() -> None:
        scaling()
        elsewhere()

    with cuda_device.current(), pytest.raises(TimerError, match="still runs after the timed stream is done"):
        timer.measure([Slot(in_parts, 5)], "cold")
    with cuda_device.current():
        assert median(timer, scaling) > 0
