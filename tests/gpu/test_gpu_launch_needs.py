"""What launches need besides arguments, on the real GPU."""

from __future__ import annotations

import ctypes
from typing import Any

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


def compiled(device: CudaDevice, name: str, text: str) -> Kernel:
    arch = device.facts.arch
    binaries = compile_for(KernelSource(text=text, name=name), [arch])
    return Kernel(binaries, device=device, native=arch)


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
    kernel.fill(other, kernel.binary)
    launch.run_with(other)
    gpu.assert_equal(to, weights * 2 + 10)


def test_a_required_block_is_launched_and_no_other(cuda_device: CudaDevice, gpu: Gpu) -> None:
    text = 'extern "C" __global__ void __launch_bounds__(64) work(float* x) { x[threadIdx.x] = 1; }'
    required = text.replace("__launch_bounds__(64)", "__block_size__((64, 1, 1))")
    x = gpu.zeros(64)
    kernel = compiled(cuda_device, "work", required)
    kernel.launch(1, 64, (x,))()
    gpu.assert_equal(x, np.ones(64, dtype="float32"))
    with pytest.raises(LaunchError, match="requires block="):
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


TILES = """
struct alignas(64) Descriptor { unsigned long long opaque[16]; };
extern "C" __global__ void tile(const __grid_constant__ Descriptor map, float* to, int row, int column)
{
    __shared__ alignas(128) float room[8 * 32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"((int)sizeof room));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];"
                     :: "r"((unsigned)__cvta_generic_to_shared(room)), "l"(&map), "r"(column), "r"(row), "r"(at)
                     : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    for (int tries = 0; !done && tries < 1000000; ++tries)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
    for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) to[i] = done ? room[i] : -1.0f;
}
"""


def encoded(array: Any, box: tuple[int, int]) -> bytes:
    """The 128 bytes of a CUtensorMap of a float32 array of two axes, which ``cuTensorMapEncodeTiled`` wants aligned."""
    room = ctypes.create_string_buffer(192)
    start = -ctypes.addressof(room) % 64
    rows, columns = array.shape
    status = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(ctypes.addressof(room) + start), 7, 2, ctypes.c_void_p(int(array.data.ptr)),
        (ctypes.c_uint64 * 2)(columns, rows), (ctypes.c_uint64 * 1)(4 * columns), (ctypes.c_uint32 * 2)(*box[::-1]),
        (ctypes.c_uint32 * 2)(1, 1), 0, 0, 0, 0,
    )  # fmt: skip
    assert status == 0
    return room.raw[start : start + 128]


def test_a_tensor_map_of_the_user_is_passed_by_value(cuda_device: CudaDevice, gpu: Gpu) -> None:
    if int(cuda_device.facts.arch.removeprefix("sm_").rstrip("af")) < 90:
        pytest.skip("tensor maps begin with sm_90")
    host = np.arange(16 * 64, dtype="float32").reshape(16, 64)
    array, to = gpu.array(host), gpu.empty((8, 32))
    tiles = encoded(array, (8, 32))
    wanted = np.zeros((8, 32), dtype="float32")
    wanted[:4] = host[12:, 32:]
    for given in (tiles, np.frombuffer(tiles, "uint8")):
        to[:] = -1
        compiled(cuda_device, "tile", TILES).launch(1, 32, (given, to, np.int32(12), np.int32(32)))()
        gpu.assert_equal(to, wanted)
