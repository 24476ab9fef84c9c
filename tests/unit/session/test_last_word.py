"""Red verdicts that pytest calls expected, of a test that only asked pytest to expect its own failure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import MODULE, Run, judgement, workload

from pytest_gpuperf.context.book import Book
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.session.taken_back import NOT_COVERED, fail_expected, fail_hidden

SLOWER, NEW = (workload("copy", judgement(verdict)) for verdict in (Verdict.SLOWER, Verdict.NEW))


def report(*, skipped: bool = True, **more: Any) -> Any:
    return SimpleNamespace(skipped=skipped, outcome="skipped", sections=[], **more)


def test_a_regression_fails_a_test_that_pytest_calls_xfailed(run: Run) -> None:
    one = report(wasxfail="known")
    fail_expected(one, [judgement(Verdict.SAME), judgement(Verdict.SLOWER)], run.options)
    assert (one.outcome, one.sections, hasattr(one, "wasxfail")) == (
        "failed", [("gpuperf: xfail", NOT_COVERED)], False
    )  # fmt: skip


@pytest.mark.parametrize("verdict", [Verdict.SAME, Verdict.NEW])
def test_what_passes_and_what_no_update_records_is_nothing_against_it(run: Run, verdict: Verdict) -> None:
    one = report(wasxfail="known")
    fail_expected(one, [judgement(verdict)], run.with_options(open="fail").options)
    assert (one.outcome, one.sections, one.wasxfail) == ("skipped", [], "known")


def test_a_test_that_is_skipped_or_passes_stays_as_it_is(run: Run) -> None:
    for one in (report(), report(skipped=False, wasxfail="known")):
        fail_expected(one, [judgement(Verdict.SLOWER)], run.options)
        assert (one.outcome, one.sections) == ("skipped", [])


def test_red_verdicts_of_tests_that_pytest_calls_green_are_counted_and_named(run: Run) -> None:
    tests = [
        TestEvidence(module=MODULE, test="expected", workloads=(SLOWER,), xfail="known"),
        TestEvidence(module=MODULE, test="failed", workloads=(SLOWER,)),
        TestEvidence(module=MODULE, test="new", workloads=(NEW,)),
        TestEvidence(module=MODULE, test="red", workloads=(SLOWER,)),
    ]
    book = Book.merged(tests, {f"{MODULE}::failed": "SLOWER"}, 4)
    book.failed_as_expected = {f"{MODULE}::new"}
    strict = run.with_options(open="fail").options
    said = fail_hidden(book, strict)
    assert said.startswith(f"the gate fails 1 test that pytest does not call failed: {MODULE}::red. To do: ")
    why = "copy  SLOWER, and pytest does not call the test failed"
    assert book.failures == {f"{MODULE}::failed": "SLOWER", f"{MODULE}::red": why}
    book.failed_as_expected.clear()
    assert f"{MODULE}::new" in fail_hidden(book, strict)  # unless its test is expected to fail, NEW counts
    assert fail_hidden(book, strict) == ""
