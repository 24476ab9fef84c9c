"""A kernel whose constants a test fills: recorded, unchanged, with other constants, and beside its baseline."""

from __future__ import annotations

import re

import pytest
from suite_under_test import HERE, Suite

CONFTEST = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import pytest
from simulated_gpu import SimulatedGpu

device = None

def work(a, b, n):
    b[:] = a

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    global device
    device = SimulatedGpu(implementations={{"work": work}})
    return device

def pytest_terminal_summary(terminalreporter):
    written = device.written if device is not None else []
    codes = sorted({{code for code, _, _ in written}})
    for code in codes:
        contents = {{content[:4].hex() for other, symbol, content in written if other == code}}
        terminalreporter.write_line(f"filled {{codes.index(code)}}: {{sorted(contents)}}")
"""
KERNEL = """
__constant__ float weights[3];
extern "C" __global__ void work(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * weights[0] * weights[1] + weights[2]MORE;
}
"""
TEST = """
import numpy as np

def test_work(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work")
    kernel.set_constant("weights", np.full(3, 1.0, dtype="float32"))
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=128, args=(a, b, 1024)), check=lambda: gpu.assert_equal(b, a))
"""
ONE, TWO = "0000803f", "00000040"


@pytest.fixture
def filled(suite: Suite) -> Suite:
    for path in suite.path.glob("test_*.py"):
        path.unlink()
    suite.write("conftest.py", CONFTEST)
    suite.write("work.cu", KERNEL.replace("MORE", ""))
    suite.write("test_work.py", TEST)
    suite.run("--update-baselines").assert_outcomes(passed=1)
    return suite


def test_the_same_constants_are_unchanged_and_others_are_not(filled: Suite) -> None:
    same = filled.run("--gpuperf")
    same.assert_outcomes(passed=1)
    same.stdout.re_match_lines([r" *work +.*UNCHANGED"])
    filled.write("test_work.py", TEST.replace("1.0,", "2.0,"))
    other = filled.run("--gpuperf")
    other.assert_outcomes(passed=1)
    other.stdout.re_match_lines([r" *work +.* us .* SAME$", re.escape(f"filled 0: ['{TWO}']")])


def test_both_sides_of_a_pair_are_filled(filled: Suite) -> None:
    filled.write("work.cu", KERNEL.replace("MORE", " + b[i] * a[n - i - 1] * 3.0f"))
    result = filled.run("--gpuperf")
    result.stdout.fnmatch_lines([f"filled 0: ['{ONE}']", f"filled 1: ['{ONE}']"])
