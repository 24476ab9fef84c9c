"""Launches that are paired with themselves, in runs where nothing can be said about them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.options import Options
from pytest_gpuperf.run import Run

TEST = """
def test_body(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("other.cu", "other")
    a = gpu.random(512, seed=2)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=2, block=256, args=(a, b, 512)))
"""

THROTTLING = """
from pytest_gpuperf.model.device_facts import DeviceState
import itertools

class Throttling(SimulatedGpu):
    flips = itertools.count()
    def state(self):
        reasons = ("power cap",) if next(self.flips) % 2 else ()
        return DeviceState(sm_clock_mhz=1980, throttle_reasons=reasons)

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    return Throttling(implementations={"work": work, "other": work})
"""


def test_a_self_pair_whose_blocks_were_all_discarded_raises_no_alarm(gpu_suite):
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text + THROTTLING)
    gpu_suite.write("test_body.py", TEST)
    result = gpu_suite.run("test_body.py", "--gpuperf")
    text = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in text
    assert "paired with itself" not in text
    assert result.ret == 0


def readings(suite):
    """Of the last run, by test."""
    tests = json.loads((suite.path / ".gpuperf/last-run.json").read_text())["tests"]
    return {test["test"]: test["self_pair"] for test in tests if test.get("self_pair")}


def test_three_tests_have_a_launch_paired_with_itself(recorded):
    recorded.run("--gpuperf").assert_outcomes(passed=3)
    found = readings(recorded)
    assert found.keys() == {"test_work[1024]", "test_work[2048]", "test_other"}
    assert all(one["blocks"] > 0 for one in found.values())
    assert len({one["seed"] for one in found.values()}) == 3


def test_of_more_tests_three_are_drawn_in_the_mean_the_same_ones_in_every_worker():
    tests = [f"test_{index}" for index in range(300)]

    def drawn(run):
        stashed = pytest.Stash()
        stashed[stash.FINDING] = SimpleNamespace(gated=tests)
        worker = Run(SimpleNamespace(workerinput={"testrunuid": run}, stash=stashed), Options(enabled=True))
        return {test for test in tests if worker.pairs_with_itself(test)}

    draws = [drawn(f"run {number}") for number in range(100)]
    assert draws == [drawn(f"run {number}") for number in range(100)]
    assert 200 < sum(map(len, draws)) < 400
    assert len(set(map(frozenset, draws))) > 50, "another run has others"


def test_one_launch_of_a_test_is_enough():
    worker = Run(SimpleNamespace(stash=pytest.Stash()), Options(enabled=True))
    assert worker.pairs_with_itself("test_a")
    worker.self_pair_readings["test_a"] = None
    assert not worker.pairs_with_itself("test_a")
