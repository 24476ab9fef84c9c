"""The end of a run: what it writes and tells, in which order, and the exit status that it leaves."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, MODULE, TEST, Run, judgement, key, static_record, workload

from pytest_gpuperf import stash
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.model import __version__
from pytest_gpuperf.model.result import Outcome, Recorded, TestEvidence
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.process import last_run
from pytest_gpuperf.report import terminal
from pytest_gpuperf.results import Ended
from pytest_gpuperf.session import end_of_run
from pytest_gpuperf.session.end_of_run import EXIT_NOTHING_MEASURED

OK, FAILED, INTERRUPTED, NONE_COLLECTED = 0, 1, 2, 5
MEASURED = workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER)


def came(run: Run, test: str = TEST, *, failed: bool = False, **evidence: Any) -> None:
    """A test has come to its end with this evidence; without any it used nothing of the plugin's."""
    found = TestEvidence(module=MODULE, test=test, **evidence) if evidence else None
    payload = {} if found is None else {"gpuperf": msgspec.json.encode(found).decode()}
    report: Any = SimpleNamespace(
        nodeid=f"{MODULE}::{test}",
        when="call",
        duration=1.0,
        failed=failed,
        outcome="failed" if failed else "passed",
        skipped=False,
        longrepr="it failed",
        **payload,
    )
    stash.run_of(run.config).results.note(report)


def finished(run: Run, status: int = OK) -> tuple[int, Outcome]:
    session = run.session(status)
    end_of_run.finish(session)
    return int(session.exitstatus), run.worker.outcome


# --- a run that gathered nothing -----------------------------------------------------------------


def test_a_run_with_evidence_is_fine(run: Run) -> None:
    came(run, workloads=(MEASURED,))
    assert finished(run)[0] == OK
    assert run.worker.outcome.errors == []


@pytest.mark.parametrize("status", [OK, NONE_COLLECTED])
def test_a_run_without_a_test_fails_in_its_own_words(run: Run, status: int) -> None:
    found, outcome = finished(run, status)
    assert found == EXIT_NOTHING_MEASURED == 10
    assert outcome.nothing == (
        "nothing was measured: no test ran. A gate that selects nothing is always green: check paths and -k"
    )


@pytest.mark.parametrize("status", [FAILED, INTERRUPTED, 3, 4])
def test_a_run_that_failed_already_keeps_its_status(run: Run, status: int) -> None:
    found, outcome = finished(run, status)
    assert (found, outcome.nothing) == (status, "")


def test_counters_alone_are_asked_for_counters(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_of_run, "counters_at_end", lambda collected: ("a note",))
    counting = run.with_options(enabled=False, ncu=("full",))
    came(counting, workloads=(MEASURED,))
    status, outcome = finished(counting)
    assert (status, outcome.counter_notes) == (EXIT_NOTHING_MEASURED, ("a note",))
    advice = "what is said above tells why, and --gpuperf gates times as well"
    assert outcome.nothing == f"nothing was counted: 1 test ran and has no counters; {advice}"
    came(counting, "test_b", workloads=(MEASURED,))
    assert finished(counting)[1].nothing == f"nothing was counted: 2 tests ran and have no counters; {advice}"
    came(counting, "test_c", workloads=(workload(counters={"a": 1.0}),))
    assert finished(counting)[0] == OK


# --- a run that compared nothing -----------------------------------------------------------------


def compared(run: Run, *verdicts: Verdict) -> tuple[int, str]:
    """Of a test that passed whatever the verdicts: its marker expects them."""
    judged = tuple(judgement(verdict, "static", reason=f"{verdict.value}: why") for verdict in verdicts)
    came(run, workloads=(workload("copy", *judged, static={"sm_90": static_record()}),))
    stash.run_of(run.config).results.ends[f"{MODULE}::{TEST}"] = Ended("xfailed")
    status, outcome = finished(run)
    return status, outcome.nothing


def test_a_run_that_could_compare_nothing_fails_where_a_missing_baseline_does(run: Run) -> None:
    words = (
        "no workload could be compared with its record: NOT-COMPARABLE: why. A gate without a comparison would always "
        "be green."
    )
    for verdicts in ((Verdict.NOT_COMPARABLE,), (Verdict.NOT_MEASURED, Verdict.NOT_COMPARABLE)):
        assert compared(run, *verdicts) == (OK, "")
    run.with_options(open="fail")
    for verdicts in ((Verdict.NOT_COMPARABLE,), (Verdict.NOT_MEASURED, Verdict.NOT_COMPARABLE)):
        assert compared(run, *verdicts) == (EXIT_NOTHING_MEASURED, words)


@pytest.mark.parametrize("verdicts", [(Verdict.NOT_COMPARABLE, Verdict.SAME), (Verdict.NOT_MEASURED,), ()])
def test_one_comparison_is_enough_and_none_that_failed_is_fine(run: Run, verdicts: tuple[Verdict, ...]) -> None:
    assert compared(run.with_options(open="fail"), *verdicts) == (OK, "")


def test_an_update_need_not_compare(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_of_run, "accept", lambda *_: [])
    assert compared(run.with_options(open="fail", update="new"), Verdict.NOT_COMPARABLE) == (OK, "")


# --- the machine ---------------------------------------------------------------------------------


# --- updates -------------------------------------------------------------------------------------


@pytest.fixture
def update(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, Outcome]]:
    """Ends an update that records so much, or has a problem."""

    def with_result(*recorded: Recorded, problem: Exception | None = None, status: int = OK) -> tuple[int, Outcome]:
        def accept(worker: Any, book: Any, removed: Any) -> list[Recorded]:
            assert (worker, book) == (run.worker, stash.run_of(run.config).results)
            if problem is not None:
                raise problem
            return list(recorded)

        monkeypatch.setattr(end_of_run, "accept", accept)
        return finished(run.with_options(update="all"), status)

    came(run, workloads=(MEASURED,))
    return with_result


WRITTEN = Recorded(key=key(), target="sm_90")
REFUSED = Recorded(key=key(), target="sm_90", refused="disturbed")


def test_what_an_update_records_is_told(run: Run, update: Callable[..., tuple[int, Outcome]]) -> None:
    status, outcome = update(WRITTEN)
    assert (status, outcome.recorded, outcome.updated, outcome.problem) == (OK, [WRITTEN], True, "")


def test_an_update_that_refused_one_has_a_status_of_its_own(update: Callable[..., tuple[int, Outcome]]) -> None:
    status, outcome = update(WRITTEN, REFUSED)
    assert (status, outcome.updated) == (pytest.ExitCode.TESTS_FAILED, True)


@pytest.mark.parametrize("problem", [BaselineError("cannot be written"), pytest.UsageError("no such compiler")])
def test_an_update_with_a_problem_tells_it(update: Callable[..., tuple[int, Outcome]], problem: Exception) -> None:
    status, outcome = update(problem=problem)
    assert (status, outcome.problem, outcome.updated) == (pytest.ExitCode.TESTS_FAILED, str(problem), False)


def test_a_run_that_failed_keeps_its_status_whatever_was_refused(update: Callable[..., tuple[int, Outcome]]) -> None:
    assert update(REFUSED, status=FAILED)[0] == FAILED


def test_an_interrupted_run_records_nothing(update: Callable[..., tuple[int, Outcome]]) -> None:
    status, outcome = update(WRITTEN, status=INTERRUPTED)
    assert (status, outcome.recorded, outcome.updated) == (INTERRUPTED, [], False)
    assert outcome.problem == "the run was interrupted: no baseline was written"


# --- children, reports, what is kept -------------------------------------------------------------


def test_a_child_judges_nothing(run: Run) -> None:
    status, outcome = finished(run.with_options(task=ConfirmTask(folder=run.config.rootpath, places=())))
    assert (status, outcome) == (OK, Outcome())


def test_the_evidence_is_kept_for_explanations(run: Run) -> None:
    came(run, workloads=(MEASURED,))
    came(run, "test_b")
    came(run, "test_c", status="checked only")
    finished(run)
    kept = last_run.read(last_run.path_below(run.config.rootpath))
    assert [one.test for one in kept.tests] == [TEST]
    assert kept.baselines == "baselines"
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", kept.date)


def test_a_run_without_evidence_leaves_that_of_the_last_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_run, "keep", lambda *_: pytest.fail("there is nothing to keep"))
    came(run)
    assert finished(run)[1].not_kept == ""


def test_what_cannot_be_kept_is_told_and_fails_nobody(run: Run) -> None:
    (run.config.rootpath / ".gpuperf").write_text("in the way", encoding="utf-8")
    came(run, workloads=(MEASURED,))
    status, outcome = finished(run)
    assert status == OK
    assert ".gpuperf" in outcome.not_kept


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Documents that were written, to a file that works and one that does not."""
    documents: list[Any] = []

    def write_reports(document: Any, files: Any) -> tuple[list[str], list[str]]:
        documents.append(document)
        return [file for file in files if "no" not in file], [file for file in files if "no" in file]

    monkeypatch.setattr(end_of_run, "write_reports", write_reports)
    monkeypatch.setattr(end_of_run, "document_of", lambda evidence, **told: SimpleNamespace(evidence=evidence, **told))
    return documents


def test_reports_are_written_when_all_is_known(run: Run, written: list[Any]) -> None:
    run.with_options(reports=("report.html",))
    status, outcome = finished(run)
    assert (status, outcome.reports, outcome.unwritten) == (EXIT_NOTHING_MEASURED, ("report.html",), ())
    (document,) = written
    assert (document.exit_status, document.problems) == (EXIT_NOTHING_MEASURED, [outcome.nothing])
    assert document.task == terminal.header(run.options)
    assert (document.plugin, document.date[:2], document.date[-1]) == (__version__, "20", "Z")
    assert document.evidence == stash.run_of(run.config).results.evidence
    assert (document.warnings, document.machines) == (
        terminal.run_remarks(stash.run_of(run.config).results, outcome, run.options),
        terminal.machine_lines([]),
    )


def test_a_report_that_cannot_be_written_has_a_status_of_its_own(run: Run, written: list[Any]) -> None:
    run.with_options(reports=("report.html", "no.html"))
    came(run, workloads=(MEASURED,))
    status, outcome = finished(run)
    assert (status, outcome.reports, outcome.unwritten) == (
        pytest.ExitCode.TESTS_FAILED,
        ("report.html",),
        ("no.html",),
    )
    assert finished(run, FAILED)[0] == FAILED


def test_no_report_is_made_that_nobody_asked_for(run: Run, written: list[Any]) -> None:
    finished(run)
    assert written == []


# --- the summary ---------------------------------------------------------------------------------


class FakeReporter:
    def __init__(self, config: Any) -> None:
        self.config = config
        self.lines: list[tuple[str, dict[str, bool]]] = []

    def write_sep(self, character: str, title: str) -> None:
        self.lines.append((f"== {title}", {}))

    def write_line(self, line: str, **markup: bool) -> None:
        self.lines.append((line, markup))


@pytest.fixture
def summaries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(terminal, "summary", lambda *arguments: calls.append(arguments))
    return calls


def test_the_summary_tells_the_runs_outcome(run: Run, summaries: list[tuple[Any, ...]]) -> None:
    reporter: Any = FakeReporter(run.config)
    end_of_run.summarise(reporter)
    outcome = run.worker.outcome
    assert summaries == [(reporter, stash.run_of(run.config).results, outcome, run.options, ())]
    finished(run)
    end_of_run.summarise(reporter)
    assert summaries[1][2] is outcome
    assert reporter.lines == []


def test_an_explained_run_explains_every_workload(
    run: Run, summaries: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain_all(store: Any, workloads: Any, cache: Any) -> list[str]:
        assert (store, cache) == (run.store, run.worker.compile_cache)
        return [f"{test.test}: {work.key.workload}" for test, work in workloads]

    monkeypatch.setattr(end_of_run, "explain_all", explain_all)
    came(run, workloads=(MEASURED, workload("other")))
    reporter: Any = FakeReporter(run.with_options(explain=True).config)
    end_of_run.summarise(reporter)
    assert reporter.lines == [("== gpuperf explains", {}), ("test_copy: copy", {}), ("test_copy: other", {})]


def test_a_baseline_that_cannot_be_read_is_told_where_it_was_to_be_explained(
    run: Run, summaries: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain_all(*_: Any) -> list[str]:
        raise BaselineError("x.json is no JSON")

    monkeypatch.setattr(end_of_run, "explain_all", explain_all)
    reporter: Any = FakeReporter(run.with_options(explain=True).config)
    end_of_run.summarise(reporter)
    assert reporter.lines[1:] == [("ERROR: x.json is no JSON", {"red": True})]


def test_a_child_explains_nothing(run: Run, summaries: list[tuple[Any, ...]]) -> None:
    task = ConfirmTask(folder=run.config.rootpath, places=())
    reporter: Any = FakeReporter(run.with_options(explain=True, task=task).config)
    end_of_run.summarise(reporter)
    assert (len(summaries), reporter.lines) == (1, [])
