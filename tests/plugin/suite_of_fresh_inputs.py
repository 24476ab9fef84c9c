"""A suite of two tests, of a kernel and of a callable, with fresh inputs in every run."""

from __future__ import annotations

from suite_under_test import SIMULATED

CONFTEST = (
    SIMULATED.replace("def work(a, b, n):\n    b[:] = a\n", "import solution\n")
    .replace('{"work": work, "other": work}', '{"work": solution.work}')
    .replace(
        "import pytest\n", "import pytest\nsys.path.insert(0, str(__import__('pathlib').Path(__file__).parent))\n", 1
    )
)

KERNEL = """
extern "C" __global__ void work(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = a[i];
#pragma unroll
        for (int k = 0; k < 100; ++k) x = x * 1.5f + a[i];
        b[i] = x;
    }
}
"""
"""What it takes is read from its machine code; what it does is ``solution.work``."""

TESTS = """
import solution

SIZE = 1024

def fresh(gpu):
    return lambda seed: gpu.random(SIZE, seed=seed)

def test_launch(cuda_kernel, gpu, gpuperf):
    a, b = gpu.empty(SIZE), gpu.empty(SIZE)
    launch = cuda_kernel("work.cu", "work").launch(grid=4, block=256, args=(a, b, SIZE))
    gpuperf(launch, inputs=fresh(gpu), outputs=(b,), check=lambda: gpu.assert_allclose(b, 2 * a, rtol=1e-5))

def test_callable(gpu, gpuperf):
    def spend(nanoseconds):
        gpu._device.elapsed_ns += nanoseconds

    gpuperf(lambda x: solution.solve(x, spend), name="solve", inputs=fresh(gpu),
            check=lambda result, inputs: gpu.assert_allclose(result, 2 * inputs[0], rtol=1e-5))
"""

SOLUTION = """
import numpy as np

def work(a, b, n):
    b[:] = 2 * a

def solve(x, spend):
    spend(20_000)
    return 2 * x
"""

FILES = {"work.cu": KERNEL, "test_inputs.py": TESTS, "solution.py": SOLUTION, "conftest.py": CONFTEST}
