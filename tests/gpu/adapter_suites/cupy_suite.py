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

CONJUGATE = r"""
#include <cuComplex.h>
extern "C" __global__ void conjugate(const cuFloatComplex* x, cuFloatComplex* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = cuCmulf(cuConjf(x[i]), x[i]);
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


def test_complex_numbers(cuda_kernel, gpu, gpuperf):
    kernel = cupy.RawKernel(CONJUGATE, "conjugate", translate_cucomplex=True)
    x = (gpu.random(N, seed=1) + 1j * gpu.random(N, seed=2)).astype("complex64")
    out = cupy.zeros_like(x)
    taken = cuda_kernel.from_cupy(kernel)
    same_as_cupy(cuda_kernel, gpuperf, kernel, taken, N // 256, 256, (x, out, cupy.int32(N)), out)


def test_cooperative(cuda_kernel, gpu, gpuperf):
    kernel = cupy.RawKernel(WHOLE_GRID, "whole_grid", enable_cooperative_groups=True)
    x, out = gpu.random(N, seed=1), gpu.zeros(N)
    taken = cuda_kernel.from_cupy(kernel)
    same_as_cupy(cuda_kernel, gpuperf, kernel, taken, gpu.sm_count, 256, (x, out, cupy.int32(N)), out)


difference = cupy.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "difference")
blend = cupy.ElementwiseKernel("T x, T y, T part", "T z", "z = x * part + y * (1 - part)", "blend")
reverse = cupy.ElementwiseKernel("raw T x, int64 n", "raw T z", "z[i] = x[n - 1 - i]", "reverse")
halves = cupy.ElementwiseKernel("T x", "T z", "z = x * T(0.5f)", "halves")


def words(code):
    return [word for line in code.splitlines() if "#include" not in line for word in line.split()]


def same_as_elementwise(cuda_kernel, gpuperf, kernel, args, size=None):
    """Launch what CuPy would, and compare result and generated code with CuPy's own."""
    *inputs, out = args
    by_cupy = cupy.zeros_like(out)
    kernel(*inputs, by_cupy, **({} if size is None else {"size": size}))
    launch = cuda_kernel.from_cupy(kernel, args=args, size=size)
    gpuperf(launch, check=lambda: cupy.testing.assert_array_equal(out, by_cupy))
    return launch


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_elementwise(cuda_kernel, gpu, gpuperf, dtype):
    x, y, out = gpu.random(N, seed=1).astype(dtype), gpu.random(N, seed=2).astype(dtype), gpu.zeros(N, dtype=dtype)
    same_as_elementwise(cuda_kernel, gpuperf, difference, (x, y, out))


def test_elementwise_of_strided_and_repeated_arrays(cuda_kernel, gpu, gpuperf):
    x, row, out = gpu.random((2048, 2048), seed=1)[::2], gpu.random(2048, seed=2), gpu.zeros((1024, 2048))
    same_as_elementwise(cuda_kernel, gpuperf, blend, (x, row, 0.25, out))


def test_elementwise_of_three_axes(cuda_kernel, gpu, gpuperf):
    x, part, out = gpu.random((64, 64, 512), seed=1), gpu.random((64, 1, 1), seed=2), gpu.zeros((64, 64, 512))
    same_as_elementwise(cuda_kernel, gpuperf, difference, (x, part, out))


def test_elementwise_of_raw_arrays(cuda_kernel, gpu, gpuperf):
    x, out = gpu.random(N, seed=1), gpu.zeros(N)
    same_as_elementwise(cuda_kernel, gpuperf, reverse, (x, N, out), size=N)


@pytest.mark.parametrize(
    ("shapes", "step"),
    [(((4096,), (4096,)), 1), (((64, 64), (64, 1)), 1), (((8, 16, 32), (16, 32)), 1), (((64, 64),) * 2, 2)],
)
def test_generated_code_is_cupy_s_own(cuda_kernel, gpu, gpuperf, shapes, step):
    kernel = cupy.ElementwiseKernel("T x, T y", "T z", "z = x + y", "sums")
    x, y = (gpu.random((step * shape[0], *shape[1:]), seed=1)[::step] for shape in shapes)
    out = cupy.zeros(shapes[0], "float32")
    kernel(x, y, out)
    from pytest_gpuperf.compile.cupy_elementwise import elementwise_source
    from pytest_gpuperf.device.cupy_arrays import elementwise_call

    call = elementwise_call(kernel, (x, y, out), None, 128)
    ours = elementwise_source(kernel, call.types, call.axes, call.narrow).text
    assert words(ours) == words(kernel.cached_code)


def test_one_array_that_is_no_contiguous_one(cuda_kernel, gpu, gpuperf):
    x, out = gpu.random((2048, 1024), seed=1).T, gpu.zeros((1024, 2048))
    same_as_elementwise(cuda_kernel, gpuperf, halves, (x, out))
