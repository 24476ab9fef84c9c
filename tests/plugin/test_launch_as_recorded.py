"""Cooperative launches and clusters through recording and pairing: each side as it is, or was, launched."""

from __future__ import annotations

import pytest
from suite_under_test import HERE, KERNEL, Suite

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
    if device is not None:
        seen = sorted((cooperative, str(cluster)) for _, cooperative, cluster in device.launched_as)
        terminalreporter.write_line(f"launched as: {{seen}}")
"""
TEST = """
def test_work(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=40"])
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    launch = kernel.launch(grid=8, block=128, args=(a, b, 1024), cooperative=True, cluster=2)
    gpuperf(launch, check=lambda: gpu.assert_equal(b, a))
"""


@pytest.fixture
def cooperative(suite: Suite) -> Suite:
    for path in suite.path.glob("test_*.py"):
        path.unlink()
    suite.write("conftest.py", CONFTEST)
    suite.write("work.cu", KERNEL)
    suite.write("test_work.py", TEST)
    suite.run("--update-baselines").assert_outcomes(passed=1)
    return suite


def test_it_is_on_record_and_unchanged(cooperative: Suite) -> None:
    recorded = (cooperative.path / "baselines" / "simulated-gpu" / "test_work.jsonl").read_text()
    assert "shared=0 cooperative cluster=(2, 1, 1)" in recorded
    result = cooperative.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*work*UNCHANGED", "launched as: [[](True, '(2, 1, 1)')[]]"])


def test_the_baseline_is_launched_as_it_was(cooperative: Suite) -> None:
    cooperative.write("test_work.py", TEST.replace(", cooperative=True, cluster=2", ", cluster=4"))
    result = cooperative.run("--gpuperf")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*work*SAME", "launched as: [[](False, '(4, 1, 1)'), (True, '(2, 1, 1)')[]]"])
