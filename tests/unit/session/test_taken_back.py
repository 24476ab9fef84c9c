"""Red verdicts that pytest calls expected, of a test that only asked pytest to expect its own failure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import Run, judgement

from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.session.taken_back import NOT_COVERED, fail_expected


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
    fail_expected(one, [judgement(verdict)], run.with_options(missing="fail").options)
    assert (one.outcome, one.sections, one.wasxfail) == ("skipped", [], "known")


def test_a_test_that_is_skipped_or_passes_stays_as_it_is(run: Run) -> None:
    for one in (report(), report(skipped=False, wasxfail="known")):
        fail_expected(one, [judgement(Verdict.SLOWER)], run.options)
        assert (one.outcome, one.sections) == ("skipped", [])
