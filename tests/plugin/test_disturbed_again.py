"""An update takes disturbed workloads again in a fresh process before it refuses them."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence

UPDATE = ("--update-baselines", "--gpuperf-rounds=4", "--gpuperf-processes=2", "-k", "other")
DEVICE = """
def pytest_gpuperf_device(config, worker):
    from pathlib import Path
    from pytest_gpuperf.model.timed_round import DeviceState
    recording = Path(config.rootpath, "recording")
    state = None
    if task_of(config).get("type") == "record":
        with recording.open("a") as file:
            file.write("x")
        if len(recording.read_text()) in DISTURBED:
            state = DeviceState(sm_clock_mhz=1980, throttle_reasons=("power cap",))
    return SimulatedGpu(implementations={"work": work, "other": work}, sample_sd=0.0001, state=state)
"""

NOTED = """
from pytest_gpuperf.context.stash import worker_of
from pytest_gpuperf.model.timed_round import DeviceState

def pytest_runtest_setup(item):
    file = item.config.rootpath / "ran"
    if task_of(item.config).get("type") != "record":
        return
    device = worker_of(item.config).device  # opened, and so counted, by now
    throttled = "1024" in item.name and len((item.config.rootpath / "recording").read_text()) == 1
    reasons = ("power cap",) if throttled else ()
    device._state = DeviceState(sm_clock_mhz=1980, throttle_reasons=reasons)
    with file.open("a") as ran:
        ran.write(f" {item.name}")

def pytest_sessionstart(session):
    if task_of(session.config).get("type") == "record":
        with (session.config.rootpath / "ran").open("a") as ran:
            ran.write("|")
"""
"""The first recording process finds the GPU throttled in one of its tests; which tests ran goes to a file."""


def disturb(suite, processes):
    """Let the recording processes of these numbers, from 1, find the GPU throttled."""
    text = (suite.path / "conftest.py").read_text()
    head = text[: text.index("def pytest_gpuperf_device")]
    suite.write("conftest.py", f"{head}{DEVICE}".replace("DISTURBED", repr(set(processes))))


def started(suite):
    return len((suite.path / "recording").read_text())


def rounds(suite):
    tests = read_evidence(suite.path / "baselines/simulated-gpu/test_suite.json")["tests"]
    return [one["process"] for one in tests["test_other"]["doubling"]["rounds"]]


@pytest.mark.parametrize(("disturbed", "processes"), [((), 2), ((1,), 3), ((1, 2), 4), ((3,), 2), ((1, 3, 4), 5)])
def test_a_disturbed_workload_is_taken_again_by_a_fresh_process(gpu_suite, disturbed, processes):
    disturb(gpu_suite, disturbed)
    result = gpu_suite.run(*UPDATE)
    assert result.ret == 0, result.stdout.str()
    assert started(gpu_suite) == processes
    assert rounds(gpu_suite) == [0, 0, 1, 1]
    said = "gpuperf: 1 workload of process 1 of 2 disturbed, once more in a fresh process"
    assert (said in result.stdout.str()) == (1 in disturbed)


def test_a_machine_that_disturbs_them_all_is_given_up_after_two_fresh_processes(gpu_suite):
    disturb(gpu_suite, range(1, 10))
    result = gpu_suite.run(*UPDATE)
    assert result.ret == 11
    assert started(gpu_suite) == 4  # two, and two of the first again
    result.stdout.fnmatch_lines(["*the GPU was throttled (power cap)*--gpuperf-force-update takes it all the same*"])
    assert not (gpu_suite.path / "baselines/simulated-gpu").exists()


def test_a_forced_update_takes_nothing_again(gpu_suite):
    disturb(gpu_suite, range(1, 10))
    assert gpu_suite.run(*UPDATE, "--gpuperf-force-update").ret == 0
    assert started(gpu_suite) == 2


def test_only_the_tests_of_disturbed_workloads_run_again(gpu_suite):
    disturb(gpu_suite, ())
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text + NOTED)
    result = gpu_suite.run("--update-baselines", "--gpuperf-rounds=2", "--gpuperf-processes=1", "-k", "work")
    assert result.ret == 0, result.stdout.str()
    first, again = (gpu_suite.path / "ran").read_text().split("|")[1:]
    assert sorted(first.split()) == ["test_work[1024]", "test_work[2048]"]
    assert again.split() == ["test_work[1024]"]
