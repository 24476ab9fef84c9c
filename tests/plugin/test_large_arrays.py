"""A test whose arrays take 60 % of the GPU's memory is recorded, gated and paired."""

from __future__ import annotations

import gc

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
UPDATE = ("--update-baselines", "--gpuperf-disturbed")


@pytest.fixture
def large(gpu_suite):
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text[: text.index("def pytest_gpuperf_device")] + DEVICE)
    gpu_suite.write("test_suite.py", TEST)
    yield gpu_suite
    gc.collect()


@pytest.fixture
def slower(large):
    """Recorded, and slower now."""
    result = large.run(*UPDATE)
    assert result.ret == 0, result.stdout.str()
    large.run("--gpuperf").stdout.fnmatch_lines(["*UNCHANGED*"])
    large.edit("test_suite.py", "STEPS=100", "STEPS=150")
    return large


def test_it_is_recorded_and_gated_and_confirmed_where_its_arrays_are(slower):
    result = slower.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*SLOWER*",
            "*paired*",
            "*in two processes;*",
            "*its arrays stayed at their addresses: there is no room for 0.0445 GB of copies",
        ]
    )


def test_a_second_process_finds_no_room_where_the_first_keeps_its_pool(slower):
    """What the test above would be without giving memory back: the simulation can tell."""
    text = (slower.path / "conftest.py").read_text()
    slower.write("conftest.py", text + "\nfrom simulated_memory import SharedMemory\n"
                 "if not sys.argv[-1].startswith('--gpuperf-task'):\n"
                 "    SharedMemory.give_back = lambda self: None\n")  # fmt: skip
    result = slower.run("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*SLOWER*", "*paired*", "*not confirmed: *out of memory*"])
