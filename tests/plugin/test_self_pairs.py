"""Launches that are paired with themselves, in runs where nothing can be said about them."""

from __future__ import annotations

import json
from types import SimpleNamespace

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.run import Run

TEST = """
def test_body(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("other.cu", "other")
    a = gpu.random(512, seed=2)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=2, block=256, args=(a, b, 512)))
"""

THROTTLING = """
from pytest_gpuperf.model.timed_round import DeviceState
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


def test_of_more_tests_three_are_drawn_the_same_ones_in_every_worker():
    items = [SimpleNamespace(nodeid=f"test_{index}", fixturenames=["gpuperf"]) for index in range(10)]
    others = [SimpleNamespace(nodeid="test_other", fixturenames=["gpu"])] * 10

    def drawn(items, **config):
        state = Run(SimpleNamespace(**config), Options())
        state.choose_self_pairs(items)
        return state.self_pairs

    draws = [[drawn([*items, *others], workerinput={"testrunuid": run}) for _ in range(2)] for run in ("a", "b", "c")]
    assert all(one == other and len(one) == 3 for one, other in draws)
    assert len({frozenset(one) for one, _ in draws}) > 1, "another run has others"
    assert "test_other" not in set().union(*(one for one, _ in draws))
    assert len(drawn(items[:2])) == 2
