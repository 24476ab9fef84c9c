"""The controller of pytest-xdist while its workers measure, and at the end."""

from __future__ import annotations

import pytest
from suite_under_test import SIMULATED

SAID = """    with (config.rootpath / "opened").open("a") as file:
        file.write(f"{worker} ")
    return SimulatedGpu("""
NOTED = SIMULATED.replace("    return SimulatedGpu(", SAID)
"""Every process that opens its GPU says so."""
OWN = """
def test_own(cuda_kernel):
    cuda_kernel("other.cu", "other", arch="{arch}")
"""
TWO = ("--gpuperf", "--gpuperf-open=fail", "-n", "2")


@pytest.fixture
def told(gpu_suite):
    """Baselines for sm_90, but one kernel's, which are for the GPU's variant of it; and a note of who opens a GPU."""
    gpu_suite.write("test_own.py", OWN.format(arch="sm_90a"))
    assert gpu_suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    gpu_suite.write("conftest.py", NOTED)
    return gpu_suite


def test_it_opens_no_gpu_where_a_worker_has(told):
    result = told.run(*TWO, subprocess=True)
    assert result.ret == 0, result.stdout.str()
    opened = (told.path / "opened").read_text().split()
    assert opened
    assert "None" not in opened, "the process without a worker's number is the controller"


def test_it_misses_what_their_gpus_could_run(told):
    told.write("test_own.py", "def test_own():\n    pass\n")
    result = told.run(*TWO, subprocess=True)
    result.stdout.fnmatch_lines(["*1 workload NOT-MEASURED on sm_90a: *"])
    assert "None" not in (told.path / "opened").read_text().split()


def test_it_does_not_miss_what_their_gpus_could_not(told):
    """A test of what only another architecture's variant has is skipped there."""
    told.write("test_own.py", OWN.format(arch="sm_100a"))
    assert told.run("--update-baselines").ret == 0
    told.write("test_own.py", "def test_own():\n    pass\n")
    result = told.run(*TWO, subprocess=True)
    result.stdout.no_fnmatch_line("*NOT-MEASURED on sm_100a*")


def test_records_that_cannot_be_read_are_named_at_the_end(told):
    file = told.path / "baselines" / "sm_90a" / "test_own.jsonl"
    file.write_text(file.read_text().replace('"target"', '"tarjet"'))
    result = told.run(*TWO, subprocess=True)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*test_own.jsonl*"])


def test_workloads_of_a_worker_without_a_gpu_are_counted_beside_those_that_were_timed(recorded):
    """A worker of another host may have none, and what it did not time is not proven."""
    recorded.write("conftest.py", SIMULATED.replace("return Sim", "return None if worker else Sim"))
    result = recorded.run("--gpuperf", "-n", "2", "--dist=load", subprocess=True)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["device time *", "timing needs a GPU: ? workload* judged by static evidence only (*"])
