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
TESTS = """
N = 4096

def test_top(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("top.cu", "top", options=["-DINDEX=0"])
    x, y = gpu.random((32, N), seed=1), gpu.empty((16, N))
    gpuperf(kernel.launch(grid=N // 256, block=256, args=(x, y, 32, N)))

def test_bins(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("bins.cu", "bins", options=["-DBIN=k"])
    x, which, y = gpu.random((8, N), seed=1), gpu.zeros((8, N), dtype="int32"), gpu.empty(N)
    gpuperf(kernel.launch(grid=N // 256, block=256, args=(x, which, y, N)))
"""
CHANGES = {"top": ("INDEX=0", "INDEX=((int)(v*16)&15)"), "bins": ("BIN=k", "BIN=which[k*n+i]")}


@pytest.fixture
def kernels(suite):
    for name, text in (("top.cu", TOP), ("bins.cu", BINS), ("test_kernels.py", TESTS)):
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
