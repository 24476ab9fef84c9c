"""How pytest-xdist hands out the tests of a gated run."""

from __future__ import annotations

import pytest
from suite_under_test import SIMULATED

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
IN_GROUPS = ("-n", "2", "--dist=loadgroup")


@pytest.fixture
def grouped(recorded):
    """Baselines of tests that are in a group by now, which pytest-xdist appends to their node ids."""
    recorded.write("conftest.py", SIMULATED + GROUPED)
    return recorded


def test_a_group_changes_nothing_about_what_a_test_is_called_on_record(grouped):
    result = grouped.run("--gpuperf", "--gpuperf-open=fail", *IN_GROUPS, subprocess=True)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["3 workloads: 3 UNCHANGED"])
    result.stdout.no_fnmatch_line("*NOT-MEASURED*")


def test_a_test_in_a_group_that_got_slower_is_red(grouped):
    grouped.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = grouped.run("--gpuperf", *IN_GROUPS, subprocess=True)
    assert result.ret == 1, result.stdout.str()
    result.stdout.fnmatch_lines(["3 workloads: 2 SLOWER, 1 UNCHANGED"])


def test_a_fault_in_a_group_is_told_in_its_own_words(grouped):
    grouped.edit("conftest.py", "    return SimulatedGpu(", "    BROKEN.append(SimulatedGpu(")
    grouped.edit("conftest.py", '"other": work})', '"other": wild}))\n    return BROKEN[0]')
    grouped.edit("conftest.py", "def work(", WILD + "def work(")
    once = "--max-worker-restart=0"  # pytest-xdist runs the group again otherwise, and again
    result = grouped.run("--gpuperf", "-k", "other", once, *IN_GROUPS, subprocess=True)
    result.stdout.fnmatch_lines(["a kernel faulted on the GPU: an illegal access", "FAILED test_suite.py::test_other*"])
