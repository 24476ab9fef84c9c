"""Causes of kernels that are compiled here, and that no threshold was settled with."""

from __future__ import annotations

import pytest

TOP = """
extern "C" __global__ void top(const float* x, float* y, int steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float acc[16] = {};
    for (int k = 0; k < steps; ++k) {
        float v = x[k * n + i];
        acc[INDEX] += v;
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) y[k * n + i] = acc[k];
}
"""
BINS = """
extern "C" __global__ void bins(const float* x, const int* which, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float acc[8] = {};
#pragma unroll
    for (int k = 0; k < 8; ++k) acc[BIN] += x[k * n + i];
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) s += acc[k] * (k + 1);
    y[i] = s;
}
"""
GELU = """
extern "C" __global__ void gelu(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    if (i < n) y[i] = HALF * v * (ONE + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
}
"""
TRANSPOSE = """
extern "C" __global__ void transpose(const float* in, float* out, int n)
{
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}
"""
AXPY = """
#ifdef NARROW
#define Wide float
#else
#define Wide float4
#endif
__device__ float fma_of(float a, float x, float y) { return a * x + y; }
__device__ float4 fma_of(float a, float4 x, float4 y)
{
    return make_float4(a * x.x + y.x, a * x.y + y.y, a * x.z + y.z, a * x.w + y.w);
}
extern "C" __global__ void axpy(const Wide* x, Wide* y, float a, int n)
{
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) y[i] = fma_of(a, x[i], y[i]);
}
"""
COUNT = """
extern "C" __global__ void count(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
#ifdef TRACE
    if (i < n && x[i] < 0) printf("below zero: %d\\n", i);
#endif
}
"""
TESTS = """
N = 4096

def test_gelu(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("gelu.cu", "gelu", options=["-DHALF=0.5f", "-DONE=1.0f"])
    x, y = gpu.random(N, seed=1), gpu.empty(N)
    gpuperf(kernel.launch(grid=N // 256, block=256, args=(x, y, N)))

def test_transpose(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("transpose.cu", "transpose", options=["-DPAD=1"])
    x, y = gpu.random((64, 64), seed=1), gpu.empty((64, 64))
    gpuperf(kernel.launch(grid=(2, 2), block=(32, 8), args=(x, y, 64)))

def test_axpy(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("axpy.cu", "axpy", options=["-DWIDE"])
    x, y = gpu.random(N, seed=1), gpu.zeros(N)
    gpuperf(kernel.launch(grid=4, block=256, args=(x, y, 2.0, N // 4)))

def test_top(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("top.cu", "top", options=["-DINDEX=0"])
    x, y = gpu.random((32, N), seed=1), gpu.empty((16, N))
    gpuperf(kernel.launch(grid=N // 256, block=256, args=(x, y, 32, N)))

def test_bins(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("bins.cu", "bins", options=["-DBIN=k"])
    x, which, y = gpu.random((8, N), seed=1), gpu.zeros((8, N), dtype="int32"), gpu.empty(N)
    gpuperf(kernel.launch(grid=N // 256, block=256, args=(x, which, y, N)))

def test_count(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("count.cu", "count", options=["-DPLAIN"])
    x, y = gpu.random(N, seed=1), gpu.empty(N)
    gpuperf(kernel.launch(grid=N // 256, block=256, args=(x, y, N)))
"""
CHANGES = {"top": ("INDEX=0", "INDEX=((int)(v*16)&15)"), "bins": ("BIN=k", "BIN=which[k*n+i]")}


@pytest.fixture
def kernels(suite):
    sources = {"top": TOP, "bins": BINS, "gelu": GELU, "transpose": TRANSPOSE, "axpy": AXPY, "count": COUNT}
    for name, text in ({f"{name}.cu": text for name, text in sources.items()} | {"test_kernels.py": TESTS}).items():
        suite.write(name, text)
    (suite.path / "test_suite.py").unlink()
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90,sm_120")
    return suite


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", list(CHANGES))
def test_an_index_at_run_time_is_the_cause_of_the_stack_and_of_its_waits(kernels, name, arch):
    kernels.edit("test_kernels.py", *CHANGES[name])
    result = kernels.run("--gpuperf", "-k", name, f"--gpuperf-arch={arch}")
    assert result.ret == 1
    causes = [line for line in result.stdout.lines if "cause:" in line]
    assert len(causes) == 1
    assert f"cause: stack from run-time indexing ({arch})" in causes[0]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_a_printf_that_was_left_in_is_the_cause_of_the_stack_that_its_arguments_take(kernels, arch):
    kernels.edit("test_kernels.py", "-DPLAIN", "-DTRACE")
    result = kernels.run("--gpuperf", "-k", "count", f"--gpuperf-arch={arch}")
    assert result.ret == 1
    causes = [line for line in result.stdout.lines if "cause:" in line]
    assert f"cause: address of a local variable ({arch})" in causes[0]
    assert "run-time indexing" not in result.stdout.str()


def test_the_cause_is_that_of_the_first_red_architecture(kernels):
    kernels.edit("test_kernels.py", '"-DHALF=0.5f", "-DONE=1.0f"', '"-DHALF=0.5", "-DONE=1.0"')
    result = kernels.run("--gpuperf", "-k", "gelu")
    assert result.ret == 1
    (cause,) = [line for line in result.stdout.lines if "cause:" in line]
    assert "cause: double-precision literals (sm_80)" in cause


LIKELY = {
    "transpose": ("-DPAD=1", "-DPAD=0", "bank conflicts", "sm_90"),
    "axpy": ("-DWIDE", "-DNARROW", "lost vectorisation", "sm_80"),
}
"""What is edited, its cause, and the first architecture of those where that costs most."""


@pytest.mark.parametrize("name", list(LIKELY))
def test_the_same_cause_gates_where_the_machine_code_proves_it(kernels, name):
    before, after, cause, _ = LIKELY[name]
    kernels.edit("test_kernels.py", before, after)
    result = kernels.run("--gpuperf")
    assert result.ret == 1
    result.stdout.re_match_lines([rf"{name}  WORSE  on .*\(static\)", rf" +cause: {cause} "])


def test_nothing_is_likely_in_code_that_did_not_change(kernels):
    for name in ("gelu.cu", "axpy.cu"):
        kernels.edit(name, "extern", "/* the same */ extern")
    kernels.edit(
        "test_kernels.py", "grid=N // 256, block=256, args=(x, y, N)", "grid=N // 128, block=128, args=(x, y, N)"
    )
    result = kernels.run("--gpuperf")
    assert "; likely " not in result.stdout.str()
