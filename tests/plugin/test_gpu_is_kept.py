"""From its first array to its end a gated test has the GPU to itself: what else it does there disturbs nobody."""

from __future__ import annotations

import pytest

LOCKED = """
import os
from pathlib import Path
from pytest_gpuperf.device.lock import hold_gpu

class Locked(SimulatedGpu):
    def lock(self):
        return hold_gpu("GPU-11", Path(os.environ["GPUPERF_LOCK_DIR"]))

def work("""

TEST = """
import subprocess, sys
import pytest
from pathlib import Path

ASK = '''
import os
from pathlib import Path
from pytest_gpuperf.device.device_errors import LockError
from pytest_gpuperf.device.lock import hold_gpu
try:
    with hold_gpu("GPU-11", Path(os.environ["GPUPERF_LOCK_DIR"]), wait_s=0.1):
        print("free")
except LockError:
    print("taken")
'''

def seen_by_others():
    return subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True).stdout.strip()

@pytest.fixture
def before(gpu, gpuperf):
    assert seen_by_others() == "free"
    yield
    assert seen_by_others() == "KEPT"

@pytest.fixture
def after():
    yield
    assert seen_by_others() == "free"

def test_arrays(after, before, gpu, cuda_kernel):
    cuda_kernel("other.cu", "other")
    assert gpu.sm_count == 132
    assert seen_by_others() == "free"  # compiling and facts need no GPU
    gpu.MAKE
    assert seen_by_others() == "KEPT"
    gpu.empty(4)

def test_workload(after, before, cuda_kernel, gpuperf):
    import numpy as np
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
def locked_suite(gpu_suite, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUPERF_LOCK_DIR", str(tmp_path))
    gpu_suite.edit("conftest.py", "\ndef work(", LOCKED)
    gpu_suite.edit("conftest.py", "return SimulatedGpu(", "return Locked(")
    return gpu_suite


def test_a_test_keeps_the_gpu_from_its_first_array_to_its_end(locked_suite):
    locked_suite.write("test_suite.py", TEST.replace("MAKE", "random(4, seed=1)").replace("KEPT", "taken"))
    ran = locked_suite.run("--gpuperf", "-k", "not failing")
    ran.assert_outcomes(passed=3)


def test_a_test_that_fails_gives_the_gpu_back(locked_suite):
    locked_suite.write("test_suite.py", TEST.replace("KEPT", "taken"))
    ran = locked_suite.run("--gpuperf", "-k", "failing or between")
    ran.assert_outcomes(failed=1, passed=1)
    ran.stdout.fnmatch_lines(["*RuntimeError: of its own"])


def test_a_run_that_gates_nothing_waits_for_nobody(locked_suite):
    locked_suite.write("test_suite.py", TEST.replace("MAKE", "empty(4)").replace("KEPT", "free"))
    ran = locked_suite.run("-k", "not failing")
    ran.assert_outcomes(passed=3)


def test_results_that_others_made_are_looked_at_under_the_lock(locked_suite):
    """Such as CuPy's own arrays: comparing and copying them is work for the GPU, too."""
    locked_suite.write(
        "test_suite.py",
        TEST.replace("gpu.MAKE", "gpu.to_host([1.0])").replace("KEPT", "taken")
        + """
def test_comparing(gpu):
    import numpy as np
    gpu.assert_equal(np.ones(3), np.ones(3))
    assert seen_by_others() == "taken"
""",
    )
    ran = locked_suite.run("--gpuperf", "-k", "arrays or comparing")
    ran.assert_outcomes(passed=2)
