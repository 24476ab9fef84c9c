"""A test whose arrays take 60 % of the GPU's memory is recorded, gated and paired."""

from __future__ import annotations

import gc

import pytest
from suite_under_test import RECORD

LIMIT = 16 << 20
SIZE = LIMIT * 6 // 10 // 2 // 4
"""Elements of each of the two arrays."""
DEVICE = f"""
def pytest_gpuperf_device(config, worker):
    from simulated_gpu import LimitedGpu
    return LimitedGpu(config.rootpath / "memory", {LIMIT}, implementations={{"work": work}}, sample_sd=0.001)
"""
TEST = f"""
def test_large(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a = gpu.random({SIZE}, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, {SIZE})), check=lambda: bool((b == a).all()))
"""


@pytest.fixture
def slower(gpu_suite):
    """Recorded, and slower now."""
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text[: text.index("def pytest_gpuperf_device")] + DEVICE)
    gpu_suite.write("test_suite.py", TEST)
    result = gpu_suite.run(*RECORD)
    assert result.ret == 0, result.stdout.str()
    gpu_suite.run("--gpuperf").stdout.fnmatch_lines(["*UNCHANGED*"])
    gpu_suite.edit("test_suite.py", "STEPS=100", "STEPS=150")
    yield gpu_suite
    gc.collect()


def test_large_arrays_are_gated_and_confirmed_where_they_are(slower):
    result = slower.run("--gpuperf")
    result.assert_outcomes(failed=1)
    kept = "*its arrays stayed at their addresses: there is no room for 0.0143 GB of copies"
    result.stdout.fnmatch_lines(["*SLOWER*", "*paired*", "*in two processes;*", kept])
