"""A test whose arrays take 60 % of the GPU's memory is recorded, gated and paired."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

LIMIT = 64 << 20
SIZE = LIMIT * 6 // 10 // 2 // 4
"""Elements of each of the two arrays."""
DEVICE = f"""
def pytest_gpuperf_device(config, worker):
    from simulated_memory import LimitedGpu
    return LimitedGpu(config.rootpath / "memory", {LIMIT}, implementations={{"work": work}}, sample_sd=0.001)
"""
TEST = f"""
def test_large(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a = gpu.random({SIZE}, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, {SIZE})), check=lambda: bool((b == a).all()))
"""
UPDATE = ("--update-baselines", "--gpuperf-force-update")


@pytest.fixture
def large(gpu_suite):
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text[: text.index("def pytest_gpuperf_device")] + DEVICE)
    gpu_suite.write("test_suite.py", TEST)
    yield gpu_suite
    gc.collect()


def recorded(suite):
    return (suite.path / "baselines/simulated-gpu/test_suite.json").exists()


def test_it_is_recorded_and_gated_and_paired_where_its_arrays_are(large):
    result = large.run(*UPDATE)
    assert result.ret == 0, result.stdout.str()
    assert recorded(large)
    large.run("--gpuperf").stdout.fnmatch_lines(["*UNCHANGED*"])
    large.edit("test_suite.py", "STEPS=100", "STEPS=50")
    result = large.run("--gpuperf")
    assert result.ret == 0
    said = "*its arrays stayed at their addresses: 0.0445 GB more for copies*"
    result.stdout.fnmatch_lines(["*FASTER*paired*", said])


def test_its_children_find_no_room_where_the_parent_keeps_its_pool(large):
    """What the test above would be without giving memory back: the simulation can tell."""
    text = (large.path / "conftest.py").read_text()
    large.write("conftest.py", text + "\nfrom simulated_memory import SharedMemory\n"
                "if not sys.argv[-1].startswith('--gpuperf-task'):\n"
                "    SharedMemory.give_back = lambda self: None\n")  # fmt: skip
    result = large.run(*UPDATE)
    assert result.ret == 11
    assert not recorded(large)
    assert "out of memory" in result.stdout.str()
    assert Path(large.path / "memory").exists()
