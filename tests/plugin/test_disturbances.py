"""What keeps measurements undisturbed: a gated test has the GPU to itself, and A/A tests warn of a restless machine."""

from __future__ import annotations

import random

import msgspec
import pytest
from suite_under_test import Suite

from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.workload import timed_workload

LOCKED = """
from pathlib import Path
from pytest_gpuperf.device.lock import hold_gpu

class Locked(SimulatedGpu):
    def lock(self):
        return hold_gpu("GPU-11", Path(__file__).parent)

def work("""

TEST = """
import fcntl
from pathlib import Path

import numpy as np
import pytest

def seen_by_others():
    with Path(__file__).with_name("GPU-11.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "taken"
    return "free"

@pytest.fixture
def before(gpu, gpuperf):
    assert seen_by_others() == "free"
    yield
    assert seen_by_others() == "KEPT"

@pytest.fixture
def after():
    yield
    assert seen_by_others() == "free"

@pytest.mark.parametrize("use", [
    lambda gpu: gpu.random(4, seed=1), lambda gpu: gpu.empty(4), lambda gpu: gpu.to_host([1.0]),
    lambda gpu: gpu.assert_equal(np.ones(3), np.ones(3)),
])
def test_arrays(after, before, gpu, cuda_kernel, use):
    cuda_kernel("other.cu", "other")
    assert gpu.sm_count == 132
    assert seen_by_others() == "free"  # compiling and facts need no GPU
    use(gpu)
    assert seen_by_others() == "KEPT"
    gpu.empty(4)

def test_workload(after, before, cuda_kernel, gpuperf):
    a = np.zeros(512, "float32")  # another library's arrays
    gpuperf(cuda_kernel("other.cu", "other").launch(grid=2, block=256, args=(a, a.copy(), 512)))
    assert seen_by_others() == "KEPT"

def test_failing(after, before, gpu):
    gpu.empty(4)
    raise RuntimeError("of its own")

def test_between():
    assert seen_by_others() == "free"
"""


@pytest.fixture
def locked_suite(gpu_suite: Suite) -> Suite:
    gpu_suite.edit("conftest.py", "\ndef work(", LOCKED)
    gpu_suite.edit("conftest.py", "return SimulatedGpu(", "return Locked(")
    return gpu_suite


def test_gated_test_keeps_the_gpu_from_its_first_array_to_its_end(locked_suite: Suite) -> None:
    locked_suite.write("test_suite.py", TEST.replace("KEPT", "taken"))
    ran = locked_suite.run("--gpuperf")
    ran.assert_outcomes(passed=6, failed=1)
    ran.stdout.fnmatch_lines(["*RuntimeError: of its own"])


def test_plain_run_waits_for_nobody(locked_suite: Suite) -> None:
    locked_suite.write("test_suite.py", TEST.replace("KEPT", "free"))
    locked_suite.run("-k", "not failing").assert_outcomes(passed=6)


def test_aa_test_warns_of_a_launch_that_is_slower_than_itself(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.0)  # every test is drawn
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    assert "A/A test" not in result.stdout.str()

    def moving(*given, **more):
        found = compare(*given, **more)
        comparison = msgspec.structs.replace(found.comparison, r=(0.05,) * 14, means=(0.05,) * 14)
        return type(found)(comparison, found.rounds)

    monkeypatch.setattr(timed_workload, "compare", moving)
    result = recorded.run("--gpuperf", "-k", "1024")
    result.stdout.fnmatch_lines(["*A/A test: *test_work?1024? ?work? is slower than itself, x1.051 after 14 blocks*"])
    result.assert_outcomes(passed=1, warnings=1)
