"""Kernels of CuPy, each launched by this plugin and by CuPy: both do the same."""

import cupy
import pytest

N = 1 << 22
STEPS = 40

DECAY = r"""
extern "C" __global__ void decay(const float* x, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    for (int k = 0; k < STEPS; ++k) value = value * 0.999f + 0.001f;
    out[i] = value;
}
"""

SCALE = """
template <class T> __global__ void scale(const T* x, T* out, T by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * by;
}
"""

WHOLE_GRID = r"""
#include <cooperative_groups.h>
extern "C" __global__ void whole_grid(const float* x, float* out, int n)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += step) out[i] = x[i] + 1.0f;
    cooperative_groups::this_grid().sync();
    for (int i = first; i < n / 2; i += step) out[i] += out[n - 1 - i];
}
"""


def same_as_cupy(cuda_kernel, gpuperf, kernel, taken, grid, block, args, out):
    """Launch ``taken``, and compare with what CuPy makes of the same arguments."""
    by_cupy = cupy.zeros_like(out)
    kernel((grid,), (block,), tuple(by_cupy if one is out else one for one in args))
    gpuperf(taken.launch(grid, block, args), check=lambda: cupy.testing.assert_array_equal(out, by_cupy))


def test_raw_kernel(cuda_kernel, gpu, gpuperf):
    kernel = cupy.RawKernel(DECAY, "decay", (f"-DSTEPS={STEPS}",))
    x, out = gpu.random(N, seed=1), gpu.zeros(N)
    taken = cuda_kernel.from_cupy(kernel)
    same_as_cupy(cuda_kernel, gpuperf, kernel, taken, N // 256, 256, (x, out, cupy.int32(N)), out)


@pytest.mark.parametrize("by_function", [True, False])
def test_template_of_a_module(cuda_kernel, gpu, gpuperf, by_function):
    module = cupy.RawModule(code=SCALE, name_expressions=["scale<float>", "scale<double>"])
    kernel = module.get_function("scale<double>")
    x, out = gpu.random(N, dtype="float64", seed=1), gpu.zeros(N, dtype="float64")
    taken = cuda_kernel.from_cupy(kernel) if by_function else cuda_kernel.from_cupy(module, "scale<double>")
    same_as_cupy(cuda_kernel, gpuperf, kernel, taken, N // 256, 256, (x, out, cupy.float64(2.5), cupy.int32(N)), out)


def test_cooperative(cuda_kernel, gpu, gpuperf):
    kernel = cupy.RawKernel(WHOLE_GRID, "whole_grid", enable_cooperative_groups=True)
    x, out = gpu.random(N, seed=1), gpu.zeros(N)
    taken = cuda_kernel.from_cupy(kernel)
    same_as_cupy(cuda_kernel, gpuperf, kernel, taken, gpu.sm_count, 256, (x, out, cupy.int32(N)), out)
