"""The end of a run: what it writes and tells, in which order, and the exit status that it leaves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, MODULE, TEST, Run, key, static_record, workload

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.model import __version__
from pytest_gpuperf.model.result import Outcome, Recorded, TestEvidence
from pytest_gpuperf.model.task import ConfirmTask, Revision
from pytest_gpuperf.process import last_run
from pytest_gpuperf.report import remarks
from pytest_gpuperf.report.document import read_report
from pytest_gpuperf.session import end_of_run

OK, FAILED, INTERRUPTED, NONE_COLLECTED, NOTHING = 0, 1, 2, 5, 10
MEASURED = workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER)


def came(run: Run, test: str = TEST, **evidence: Any) -> None:
    """A test has passed with this evidence; without any it used nothing of the plugin's."""
    found = TestEvidence(module=MODULE, test=test, **evidence) if evidence else None
    payload = {} if found is None else {"gpuperf": msgspec.json.encode(found).decode()}
    report: Any = SimpleNamespace(
        nodeid=f"{MODULE}::{test}", when="call", failed=False, skipped=False, outcome="passed", **payload
    )
    run.worker.results.note(report)


def finished(run: Run, status: int = OK) -> tuple[int, Outcome]:
    session = run.session(status)
    end_of_run.finish(session)
    return int(session.exitstatus), run.worker.outcome


# --- a run that gathered nothing -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "tests", "words"),
    [
        ({}, [], "nothing was measured: no test ran. "),
        ({}, [{}], "nothing was measured: 1 test ran and has no kernel or time to judge. "),
        (
            {},
            [{"status": "static only"}, {}],
            "nothing was measured: 2 tests ran and have no kernel or time to ",
        ),
        ({}, [{"workloads": (MEASURED,)}], ""),
        (
            {"enabled": False, "ncu": ("full",)},
            [{"workloads": (MEASURED,)}],
            "nothing was counted: 1 test ran ",
        ),
        ({"enabled": False, "ncu": ("full",)}, [{"workloads": (workload(counters={"a": 1.0}),)}], ""),
    ],
)
def test_run_that_gathered_nothing_fails(run: Run, options: Any, tests: list[dict[str, Any]], words: str) -> None:
    run.with_options(**options)
    for number, evidence in enumerate(tests):
        came(run, f"test_{number}", **evidence)
    for before in (OK, NONE_COLLECTED):
        status, outcome = finished(run, before)
        assert status == (NOTHING if words else before)
        assert outcome.nothing.startswith(words)
        assert bool(outcome.nothing) == bool(words)


@pytest.mark.parametrize("status", [FAILED, INTERRUPTED, 3, 4])
def test_run_that_failed_already_keeps_its_status(run: Run, status: int) -> None:
    found, outcome = finished(run, status)
    assert (found, outcome.nothing) == (status, "")


# --- missing records, a revision -------------------------------------------------------------------


def test_missing_record_fails_a_run_that_is_green_so_far(gated: Run) -> None:
    came(gated, workloads=(MEASURED,))
    assert finished(gated, INTERRUPTED) == (INTERRUPTED, Outcome())
    status, outcome = finished(gated)
    assert status == FAILED
    assert outcome.missing[0].startswith("1 workload NOT-MEASURED on sm_90: its test was deleted or renamed: ")


def test_missing_record_is_a_remark_where_it_is_not_gated(gated: Run) -> None:
    came(gated, workloads=(MEASURED,))
    status, outcome = finished(gated.with_options(open="warn"))
    assert (status, outcome.missing, len(outcome.left_out)) == (OK, (), 1)


def test_baselines_that_cannot_be_read_are_missing(gated: Run) -> None:
    (gated.options.baselines / "manifest.json").write_text("{")
    came(gated, workloads=(MEASURED,))
    status, outcome = finished(gated)
    assert (status, outcome.missing[0].partition(":")[0]) == (FAILED, "missing records cannot be found")


@pytest.mark.parametrize(("python", "told"), [(None, True), (Path("/opt/python"), False)])
def test_comparison_with_itself_is_said_unless_its_environment_is_another(
    gated: Run, monkeypatch: pytest.MonkeyPatch, python: Path | None, *, told: bool
) -> None:
    gated.worker.revision = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))
    monkeypatch.setattr(end_of_run, "with_itself", lambda *_: "it is itself")
    came(gated, workloads=(MEASURED,))
    status, outcome = finished(gated.with_options(against="HEAD", against_python=python))
    assert (status, "it is itself" in outcome.left_out) == (OK, told)


# --- updates -------------------------------------------------------------------------------------

WRITTEN = Recorded(key=key(), target="sm_90")
REFUSED = Recorded(key=key(), target="sm_90", refused="disturbed")
INTERRUPT = "the run was interrupted: no baseline was written"
HALF = "the run was interrupted while it recorded: no baseline is half written; see git status"
UPDATES: dict[str, tuple[Any, int, int, list[Recorded], str]] = {
    # what accepting does, the status before, and then: status, records, problem
    "records": ([WRITTEN], OK, OK, [WRITTEN], ""),
    "refuses one": ([WRITTEN, REFUSED], OK, FAILED, [WRITTEN, REFUSED], ""),
    "failed before": ([REFUSED], FAILED, FAILED, [REFUSED], ""),
    "cannot write": (BaselineError("cannot be written"), OK, FAILED, [], "cannot be written"),
    "cannot compile": (pytest.UsageError("no such compiler"), OK, FAILED, [], "no such compiler"),
    "was interrupted": ([WRITTEN], INTERRUPTED, INTERRUPTED, [], INTERRUPT),
    "is interrupted": (KeyboardInterrupt(), OK, INTERRUPTED, [], HALF),
}


@pytest.mark.parametrize("case", UPDATES)
def test_update(run: Run, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    does, before, after, recorded, problem = UPDATES[case]

    def accept(worker: Any) -> list[Recorded]:
        assert worker is run.worker
        if isinstance(does, BaseException):
            raise does
        return list(does)

    monkeypatch.setattr(end_of_run, "accept", accept)
    came(run, workloads=(MEASURED,))
    status, outcome = finished(run.with_options(update="all"), before)
    assert (status, outcome.recorded, outcome.problem) == (after, recorded, problem)
    assert outcome.updated == (not problem)


# --- children, reports, what is kept -------------------------------------------------------------


def test_child_judges_nothing(run: Run) -> None:
    run.with_options(task=ConfirmTask(folder=run.config.rootpath, places=()))
    assert finished(run) == (OK, Outcome())


def test_evidence_is_kept_for_explanations(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    came(run, "test_b")
    came(run, "test_c", status="checked only")
    finished(run)
    assert not last_run.path_below(run.config.rootpath).exists()
    came(run, workloads=(MEASURED,))
    finished(run)
    kept = read_report(last_run.path_below(run.config.rootpath))
    assert ({one.test for one in kept.tests}, kept.baselines) == ({"test_c", TEST}, "baselines")


def test_evidence_that_cannot_be_kept_fails_nobody(run: Run) -> None:
    (run.config.rootpath / ".gpuperf").write_text("in the way", encoding="utf-8")
    came(run, workloads=(MEASURED,))
    status, outcome = finished(run)
    assert (status, ".gpuperf" in outcome.left_out[0]) == (OK, True)


def test_reports_are_written_when_all_is_known(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    documents: list[Any] = []

    def write_reports(document: Any, files: Any) -> tuple[list[str], list[str]]:
        documents.append(document)
        return [file for file in files if "no" not in file], [file for file in files if "no" in file]

    monkeypatch.setattr(end_of_run, "write_reports", write_reports)
    monkeypatch.setattr(end_of_run, "document_of", lambda report: report)
    finished(run)
    assert documents == []
    status, outcome = finished(run.with_options(reports=("report.html",)))
    assert (status, outcome.reports, outcome.unwritten) == (NOTHING, ("report.html",), ())
    (document,) = documents
    assert (document.exit_status, document.problems, document.plugin) == (NOTHING, (outcome.nothing,), __version__)
    assert document.warnings == tuple(remarks.run_remarks(run.worker.results, outcome, run.options))
    came(run, workloads=(MEASURED,))
    status, outcome = finished(run.with_options(reports=("report.html", "no.html")))
    assert (status, outcome.unwritten) == (FAILED, ("no.html",))
