"""Roofs of the GPU: recorded once, asserted on, explained, and a remark where another one limits."""

from __future__ import annotations

import json

import pytest
from simulated_gpu import SimulatedGpu
from suite_under_test import KERNEL, RECORD, SIMULATED, Command, Suite

TEST = """
def test_work(cuda_kernel, gpu, gpuperf):
    a = gpu.random(1024, seed=1)
    launch = cuda_kernel("work.cu", "work").launch(grid=8, block=128, args=(a, gpu.empty(1024), 1024))
    result = gpuperf(launch, bytes=11_000_000, flops=FLOPS)
    assert (result.roof > 0.8, result.limited_by) == (True, "dram")
    assert gpu.roofs["l2"] == 5.7e12 and "fp8" not in gpu.roofs

def test_nothing_declared(cuda_kernel, gpu, gpuperf):
    a = gpu.random(1024, seed=1)
    gpuperf(cuda_kernel("work.cu", "work").launch(grid=8, block=128, args=(a, gpu.empty(1024), 1024)), name="bare").roof
"""


def test_roofs_are_recorded_and_named(suite: Suite, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    suite.write("conftest.py", SIMULATED)
    suite.write("work.cu", KERNEL.replace("STEPS", "1"))
    suite.write("test_suite.py", TEST.replace("FLOPS", "1_000_000"))
    assert suite.run(*RECORD, "-k", "test_work").ret == 0
    manifest = json.loads((suite.path / "baselines/manifest.json").read_text())
    assert manifest["roofs"]["simulated-gpu"]["dram"] == 4.4e12
    assert "fp8" not in manifest["roofs"]["simulated-gpu"]

    monkeypatch.setattr(SimulatedGpu, "peak", SimulatedGpu.peak)  # undone for tests that follow
    suite.append("conftest.py", "\nSimulatedGpu.peak = lambda self, name: 1 / 0 if name != 'fp8' else 0.0\n")
    result = suite.run("--gpuperf")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*NotDeclared: bare has no roof: call gpuperf(..., bytes=n, flops=n)"])
    status, said, _ = command("explain")
    assert (status, "roof: at 9" in said) == (0, True)
    assert "of DRAM's roof (4." in said
    assert "of L2's roof (3.06 GB/s, estimated)" in said  # of what declares nothing

    suite.write("work.cu", KERNEL.replace("STEPS", "90"))
    suite.edit("test_suite.py", "flops=1_000_000", "flops=150_000_000")
    result = suite.run("--gpuperf", "-k", "test_work")
    result.stdout.fnmatch_lines(
        ["*the limit changed: at 9? % of DRAM's roof (*, declared) before, at * of FP32's roof*"]
    )
