"""What launches need besides arguments, on the real GPU."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_gpuperf.compile.compiler import compile_for
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.launch import Kernel

pytestmark = pytest.mark.gpu

FILLED = """
__constant__ float weights[4];
namespace limits { __device__ int shift; }
extern "C" __global__ void filled(float* to) { to[threadIdx.x] = weights[threadIdx.x] + limits::shift; }
"""


@pytest.fixture
def gpu(cuda_device: CudaDevice) -> Gpu:
    return Gpu(cuda_device)


def compiled(device: CudaDevice, name: str, text: str) -> Kernel:
    arch = device.facts.arch
    binaries = compile_for(KernelSource(text=text, name=name), [arch])
    return Kernel(binaries, device=device, native=arch, ptx=str)


def test_variables_are_filled_before_and_after_the_first_launch(cuda_device: CudaDevice, gpu: Gpu) -> None:
    kernel = compiled(cuda_device, "filled", FILLED)
    weights = np.array([1.0, 2.0, 3.0, 4.0], dtype="float32")
    kernel.set_constant("weights", weights)
    kernel.set_constant("limits::shift", np.int32(10))
    to = gpu.zeros(4)
    launch = kernel.launch(1, 4, (to,))
    launch()
    gpu.assert_equal(to, weights + 10)
    kernel.set_constant("weights", weights * 2)
    launch()
    gpu.assert_equal(to, weights * 2 + 10)
    other = cuda_device.load(kernel.binary)
    kernel.variables.fill(other, kernel.binary)
    launch.run_with(other)
    gpu.assert_equal(to, weights * 2 + 10)


BY_VALUE = """
struct Range { int first; double weight; };
__global__ void part(Range part, const float* start, float4 factors, float* to)
{
    float before = start ? start[0] : 7.0f;
    to[threadIdx.x] = before + part.first + part.weight * factors.x * factors.w;
}
"""


def test_structures_vectors_and_null_pointers_arrive_by_value(cuda_device: CudaDevice, gpu: Gpu) -> None:
    part = np.array((16, 0.5), dtype=np.dtype([("first", "i4"), ("weight", "f8")], align=True))[()]
    to = gpu.zeros(4)
    compiled(cuda_device, "part", BY_VALUE).launch(1, 4, (part, None, (2.0, 0.0, 0.0, 3.0), to))()
    gpu.assert_equal(to, np.full(4, 26.0, dtype="float32"))


def test_a_required_block_is_launched_and_no_other(cuda_device: CudaDevice, gpu: Gpu) -> None:
    text = 'extern "C" __global__ void __launch_bounds__(64) work(float* x) { x[threadIdx.x] = 1; }'
    required = text.replace("__launch_bounds__(64)", "__block_size__((64, 1, 1))")
    x = gpu.zeros(64)
    kernel = compiled(cuda_device, "work", required)
    kernel.launch(1, 64, (x,))()
    gpu.assert_equal(x, np.ones(64, dtype="float32"))
    with pytest.raises(LaunchError, match="was compiled for"):
        kernel.launch(1, 32, (x,))


GRID_WIDE = """
extern "C" __global__ void meet(unsigned* arrived, unsigned* seen)
{
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) { }
        seen[blockIdx.x] = atomicAdd(arrived, 0);
    }
}
extern "C" __global__ void ranks(unsigned* to)
{
    unsigned rank, size;
    asm("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %cluster_nctarank;" : "=r"(size));
    if (threadIdx.x == 0) to[blockIdx.x] = 16 * size + rank;
}
"""


def test_all_blocks_of_a_cooperative_launch_meet(cuda_device: CudaDevice, gpu: Gpu) -> None:
    blocks = cuda_device.facts.sm_count
    arrived, seen = gpu.zeros(1, dtype="uint32"), gpu.zeros(blocks, dtype="uint32")
    compiled(cuda_device, "meet", GRID_WIDE.split('extern "C" __global__ void ranks')[0]).launch(
        blocks, 64, (arrived, seen), cooperative=True
    )()
    gpu.assert_equal(seen, np.full(blocks, blocks, dtype="uint32"))


def test_blocks_of_a_cluster_know_their_rank(cuda_device: CudaDevice, gpu: Gpu) -> None:
    if int(cuda_device.facts.arch.removeprefix("sm_")) < 90:
        pytest.skip("clusters begin with sm_90")
    to = gpu.zeros(8, dtype="uint32")
    compiled(cuda_device, "ranks", GRID_WIDE).launch(8, 32, (to,), cluster=4)()
    gpu.assert_equal(to, np.array([64, 65, 66, 67] * 2, dtype="uint32"))
