"""Fresh inputs and poisoned outputs in the memory of a GPU: launches and callables, of CuPy and of PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf.compile.compiler import compile_for
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.device_errors import TimerUnavailable
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.model.limits import TIMERS, TimerName
from pytest_gpuperf.options import Options
from pytest_gpuperf.workload.check import FreshInputs, WrongResult, check_again, run_and_check
from pytest_gpuperf.workload.request import Request

pytestmark = pytest.mark.gpu

N = 1 << 20
SAMPLES = 20
KERNELS = """
extern "C" __global__ void twice(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = 2.0f * a[i];
}
__device__ int started;
extern "C" __global__ void first_runs_only(const float* a, float* b, int n)
{
    __shared__ int run;
    if (threadIdx.x == 0) run = atomicAdd(&started, 1) / gridDim.x;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && run < 6) b[i] = 2.0f * a[i];
}
"""


@pytest.fixture
def torch(cuda_device: CudaDevice) -> Any:
    torch = pytest.importorskip("torch")
    torch.zeros(1, device="cuda")
    return torch


def go_through(
    device: CudaDevice, timer: TimerName, right: bool, workload: Any, check: Callable[..., Any], inputs: Any,
    *outputs: Any,
) -> None:  # fmt: skip
    """Do what a test's workload goes through, which is ``right`` to the end or wrong after its timing."""
    request = Request(
        workload=workload, name="work", check=check, reset=None, bytes=None, flops=None, cache="cold",
        limits=Options().limits(), budget_s=1.0, metrics={}, inputs=inputs, outputs=outputs,
    )  # fmt: skip
    run: Any = SimpleNamespace(device=device)
    with device.current():
        try:
            timing = device.timer(timer)
        except TimerUnavailable as problem:
            pytest.skip(str(problem))
        request = request.with_fresh(FreshInputs(request.name, inputs, request.launch, request.outputs))
    run_and_check(run, request)
    with device.current():
        (times,) = timing.measure([Slot(request.workload, SAMPLES, request.reset)], "cold")
    assert min(times) > 0
    wrong = pytest.raises(WrongResult, match="was right on its first run and wrong after")
    with contextlib.nullcontext() if right else wrong:
        check_again(run, request, SAMPLES)


@pytest.mark.parametrize("timer", TIMERS)
@pytest.mark.parametrize(("name", "right"), [("twice", True), ("first_runs_only", False)])
def test_launch_has_fresh_inputs(cuda_device: CudaDevice, gpu: Gpu, timer: TimerName, name: str, right: bool) -> None:
    arch = cuda_device.facts.arch
    binaries = compile_for(KernelSource(text=KERNELS, name=name), [arch])
    kernel = Kernel(binaries, device=cuda_device, native=arch)
    a, b = gpu.empty(N), gpu.empty(N)
    launch, check = kernel.launch(grid=N // 256, block=256, args=(a, b, N)), lambda: gpu.assert_equal(b, 2 * a)
    go_through(cuda_device, timer, right, launch, check, lambda seed: gpu.random(N, seed=seed), b)


def of_cupy(gpu: Gpu, seed: int) -> Any:
    return gpu.random(N, seed=seed)


def of_torch(gpu: Gpu, seed: int) -> Any:
    import torch

    return torch.rand(N, generator=torch.Generator("cuda").manual_seed(seed), device="cuda", requires_grad=True)


@pytest.mark.parametrize("timer", TIMERS)
@pytest.mark.parametrize("factory", [of_cupy, of_torch])
@pytest.mark.parametrize("right", [True, False])
def test_a_callable_that_keeps_its_result_is_wrong_after_the_timing(
    cuda_device: CudaDevice, gpu: Gpu, timer: TimerName, factory: Callable[..., Any], right: bool,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    if factory is of_torch:
        request.getfixturevalue("torch")
    kept: list[Any] = []

    def run(x: Any) -> Any:
        kept.append(2 * x)
        return kept[-1 if right else 0]

    def check(result: Any, inputs: Any) -> bool:
        return bool((result == 2 * inputs[0]).all())

    go_through(cuda_device, timer, right, run, check, lambda seed: factory(gpu, seed))
