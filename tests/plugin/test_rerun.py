"""A test that another plugin runs once more, as pytest-rerunfailures does, is measured as if for the first time."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from suite_under_test import SIMULATED

RERUN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


@pytest.fixture
def flaky(recorded):
    """Fails the first time for a reason of its own."""
    recorded.write("conftest.py", SIMULATED + RERUN)
    recorded.edit("test_suite.py", "def test_other(", "RUNS = []\n\ndef test_other(")
    text = (recorded.path / "test_suite.py").read_text()
    recorded.write("test_suite.py", text.rstrip() + "\n    RUNS.append(1)\n    assert len(RUNS) == 2\n")
    return recorded


def test_last_run_of_a_test_counts(flaky):
    """One that passes then has passed, with those verdicts; a regression is red again."""
    flaky.run("-k", "other").assert_outcomes(passed=1)
    flaky.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = flaky.run("--gpuperf", "-k", "other or 1024", "--junitxml=junit.xml")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER  on *"])
    *_, case = ElementTree.parse(flaky.path / "junit.xml").getroot().iter("testcase")
    names = [one.get("name") for one in case.iter("property")]
    assert sorted(names) == ["gpuperf.doubling.simulated-gpu", "gpuperf.doubling.sm_90"]
