"""Red verdicts that pytest calls expected, of a test that only asked pytest to expect its own failure."""

from __future__ import annotations

from run_samples import MODULE, Run, judgement, workload

from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.results import Results
from pytest_gpuperf.session.taken_back import fail_hidden

SLOWER, NEW = (workload("copy", judgement(verdict)) for verdict in (Verdict.SLOWER, Verdict.NEW))


def test_red_verdicts_of_tests_that_pytest_calls_green_are_counted_and_named(run: Run) -> None:
    tests = [
        TestEvidence(module=MODULE, test="expected", workloads=(SLOWER,)),
        TestEvidence(module=MODULE, test="failed", workloads=(SLOWER,)),
        TestEvidence(module=MODULE, test="new", workloads=(NEW,)),
        TestEvidence(module=MODULE, test="red", workloads=(SLOWER,)),
    ]
    book = Results.merged(tests, {f"{MODULE}::failed": "SLOWER"}, 4)
    book.failed_as_expected = {f"{MODULE}::new", f"{MODULE}::expected"}
    strict = run.with_options(missing="fail").options
    said = fail_hidden(book, strict)
    assert said.startswith(f"the gate fails 1 test that pytest does not call failed: {MODULE}::red. To do: ")
    why = "copy  SLOWER, and pytest does not call the test failed"
    assert book.failures == {f"{MODULE}::failed": "SLOWER", f"{MODULE}::red": why}
    book.failed_as_expected.remove(f"{MODULE}::new")
    assert f"{MODULE}::new" in fail_hidden(book, strict)
    assert fail_hidden(book, strict) == ""
