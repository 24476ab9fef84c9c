"""Causes of what changed in a test: of which workloads they are looked for, and with what."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import COMPILER, MODULE, TEST, Run, judgement, static_record, workload

from pytest_gpuperf.model.advice import Advice, State
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.session import judge_test
from pytest_gpuperf.test_record import TestRecord

CAUSE = Advice(cause="bank conflicts", evidence=(), gain=0.4)
STATE = State(bound="memory", why="it copies")
TELLING = [Verdict.SLOWER, Verdict.WORSE, Verdict.BETTER, Verdict.SAME]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Everything that explanations are asked with; all of them find the same."""
    calls: list[tuple[Any, ...]] = []

    class Estimates:
        def __init__(self, *given: Any) -> None:
            calls.append(("estimates", *given))

    def explain_each(estimates: Any, comparisons: Any) -> Any:
        assert isinstance(estimates, Estimates)
        for one in comparisons:
            assert one.estimates is estimates
            calls.append(("explained", one))
            yield SimpleNamespace(after="after", advice=(CAUSE,))

    def state_of(after: Any, peaks: Any) -> State:
        assert after == "after"
        calls.append(("state", peaks))
        return STATE

    monkeypatch.setattr(judge_test, "toolchain", lambda: COMPILER)
    monkeypatch.setattr(judge_test, "Estimates", Estimates)
    monkeypatch.setattr(judge_test, "explain_each", explain_each)
    monkeypatch.setattr(judge_test, "state_of", state_of)
    return calls


def book_with(*verdicts: Verdict, **fields: Any) -> TestRecord:
    book = TestRecord(MODULE, TEST)
    book.add(workload("copy", *[judgement(verdict) for verdict in verdicts], **fields))
    return book


@pytest.mark.parametrize("verdict", Verdict)
def test_causes_are_looked_for_where_something_is_not_what_it_was(
    run: Run, asked: list[tuple[Any, ...]], verdict: Verdict
) -> None:
    book = book_with(Verdict.UNCHANGED, verdict)
    judge_test.explain_test(run.worker, book)
    found = book.workloads["copy"]
    assert (found.advice, found.state) == (((CAUSE,), STATE) if verdict in TELLING else ((), None))
    assert bool(asked) is (verdict in TELLING)


def test_a_run_that_explains_asks_of_every_workload(run: Run, asked: list[tuple[Any, ...]]) -> None:
    book = book_with(Verdict.UNCHANGED)
    judge_test.explain_test(run.with_options(explain=True).worker, book)
    assert book.workloads["copy"].state == STATE


def test_explanations_are_asked_with_what_the_run_has(run: Run, asked: list[tuple[Any, ...]]) -> None:
    book = book_with(Verdict.SAME, static={"sm_90": static_record()}, toolchain=COMPILER)
    book.cubins = {"a": b"code"}
    work = book.workloads["copy"]
    run.worker.measured_peaks = {"copy_bandwidth": 4e12}
    judge_test.explain_test(run.worker, book)
    estimates, (_, compared), state = asked
    assert estimates == ("estimates", run.store, {"a": b"code"}, run.worker.compile_cache)
    assert (compared.store, compared.work, compared.toolchain) == (run.store, work, COMPILER)
    assert (list(compared.workloads), compared.facts) == (list(book.workloads.values()), run.worker.device.facts)
    assert state == ("state", {"copy_bandwidth": 4e12})


def test_callables_and_machines_without_a_gpu_have_neither_compiler_nor_facts(
    without_gpu: Run, asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_test, "toolchain", lambda: pytest.fail("nothing was compiled"))
    judge_test.explain_test(without_gpu.worker, book_with(Verdict.SAME))
    _, (_, compared), _ = asked
    assert (compared.toolchain, compared.facts) == ("", None)


def test_a_callable_beside_a_kernel_has_no_compiler(run: Run, asked: list[tuple[Any, ...]]) -> None:
    book = book_with(Verdict.SAME, static={"sm_90": static_record()}, toolchain=COMPILER)
    book.add(workload("callable", judgement(Verdict.SAME)))
    judge_test.explain_test(run.worker, book)
    _, (_, first), _, (_, second), _ = asked
    assert (first.toolchain, second.toolchain) == (COMPILER, "")
