"""Gated runs by workers of pytest-xdist: groups, faults, and what the controller knows at the end."""

from __future__ import annotations

import pytest
from suite_under_test import SIMULATED, Suite

GROUPED = """
if hasattr(pytest.Item, "id"):  # beside pytest 9.2 pytest-xdist's groups come to nothing: as they do beside older ones
    pytest.Item.nodeid = property(lambda item: getattr(item, "_nodeid", None) or str(item._id))

def pytest_itemcollected(item):
    item.add_marker(pytest.mark.xdist_group("one"))
"""
WILD = """
BROKEN = []

def wild(a, b, n):
    BROKEN[0].broken = "an illegal access"

"""
NOTED = """    with (config.rootpath / "opened").open("a") as file:
        file.write(f"{worker} ")
    return SimulatedGpu("""
"""Every process that opens its GPU says so."""
OWN = """
def test_own(cuda_kernel):
    cuda_kernel("other.cu", "other", arch="{arch}")
"""
NO_KERNEL = "def test_own():\n    pass\n"
TWO = ("--gpuperf", "--gpuperf-open=fail", "-n", "2")


@pytest.fixture
def grouped(recorded: Suite) -> Suite:
    """Baselines of tests that are in a group by now, which pytest-xdist appends to their node ids."""
    recorded.write("conftest.py", SIMULATED + GROUPED)
    return recorded


def test_group_changes_no_name_on_record_and_no_verdict(grouped: Suite) -> None:
    grouped.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = grouped.run(*TWO, "--dist=loadgroup")
    assert result.ret == 1, result.stdout.str()
    result.stdout.fnmatch_lines(["3 workloads: 2 SLOWER, 1 UNCHANGED"])
    result.stdout.no_fnmatch_line("*NOT-MEASURED*")


def test_fault_in_a_group_is_told_in_its_own_words(grouped: Suite) -> None:
    grouped.edit("conftest.py", "    return SimulatedGpu(", "    BROKEN.append(SimulatedGpu(")
    grouped.edit("conftest.py", '"other": work})', '"other": wild}))\n    return BROKEN[0]')
    grouped.edit("conftest.py", "def work(", WILD + "def work(")
    once = "--max-worker-restart=0"  # pytest-xdist runs the group again otherwise, and again
    result = grouped.run("--gpuperf", "-k", "other", once, "-n", "2", "--dist=loadgroup")
    result.stdout.fnmatch_lines(["a kernel faulted on the GPU: an illegal access", "FAILED test_suite.py::test_other*"])


def test_controller_misses_what_their_gpus_could_run(gpu_suite: Suite) -> None:
    """A test of what only another architecture's variant has is skipped there; the controller opens no GPU."""
    for arch in ("sm_90a", "sm_100a"):
        gpu_suite.write(f"test_{arch}.py", OWN.format(arch=arch))
    assert gpu_suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    assert (gpu_suite.path / "baselines/sm_100a/test_sm_100a.jsonl").exists()
    gpu_suite.edit("conftest.py", "    return SimulatedGpu(", NOTED)
    (gpu_suite.path / "opened").unlink(missing_ok=True)
    for arch in ("sm_90a", "sm_100a"):
        gpu_suite.write(f"test_{arch}.py", NO_KERNEL)
    result = gpu_suite.run(*TWO)
    result.stdout.fnmatch_lines(["*1 workload NOT-MEASURED on sm_90a: *"])
    assert result.stdout.str().count("NOT-MEASURED on") == 1, "neither of sm_100a, nor by each worker"
    opened = (gpu_suite.path / "opened").read_text().split()
    assert opened
    assert "None" not in opened, "the process without a worker's number is the controller"


def test_workloads_of_a_worker_without_a_gpu_are_counted_beside_those_that_were_timed(recorded: Suite) -> None:
    """A worker of another host may have none, and what it did not time is not proven."""
    recorded.write("conftest.py", SIMULATED.replace("return Sim", "return None if worker else Sim"))
    result = recorded.run("--gpuperf", "-n", "2", "--dist=load")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["device time *", "timing needs a GPU: ? workload* judged by static evidence only (*"])
