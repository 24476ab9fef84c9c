"""How a test ended, by the reports of its phases and of its reruns."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf.plugin import pytest_report_teststatus
from pytest_gpuperf.results import Results

SETUP, PASSED, FAILED = ("setup", "passed"), ("call", "passed"), ("call", "failed")
SKIPPED, RERUN = ("setup", "skipped"), ("call", "rerun")
ENDS: dict[str, tuple[Sequence[tuple[str, str]], str]] = {
    "passed": ([SETUP, PASSED, ("teardown", "passed")], "passed"),
    "failed": ([SETUP, FAILED, ("teardown", "passed")], "failed"),
    "failed in its teardown": ([SETUP, PASSED, ("teardown", "failed")], "failed"),
    "skipped": ([SKIPPED, ("teardown", "passed")], "skipped"),
    "passed by a rerun": ([SETUP, RERUN, SETUP, PASSED], "passed"),
    "a part failed, and passed by a rerun": ([SETUP, FAILED, RERUN, SETUP, PASSED], "passed"),
    "still to be rerun": ([SETUP, PASSED, ("teardown", "rerun")], ""),
}


@pytest.mark.parametrize("case", ENDS)
def test_end(case: str) -> None:
    reports, end = ENDS[case]
    results = Results()
    for when, outcome in reports:
        report: Any = SimpleNamespace(nodeid="t", when=when, outcome=outcome, longrepr="why")
        report.failed, report.skipped = outcome == "failed", outcome == "skipped"
        results.note(report)
    assert [one.how for one in results.ends.values()] == ([end] if end else [])


@pytest.mark.parametrize("outcome", ["passed", "skipped", "failed", "rerun"])
def test_status_of_a_test_without_a_gpu(outcome: Any) -> None:
    """A rerun, of pytest-rerunfailures, stays one."""
    report = pytest.TestReport("t", ("t.py", 1, "t"), {}, outcome, None, "call", gpuperf_status="static only")
    assert bool(pytest_report_teststatus(report)) == (outcome in ("passed", "skipped"))
