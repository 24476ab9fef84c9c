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

OK, FAILED, INTERRUPTED, NOTHING = 0, 1, 2, 10
MEASURED = workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER)


def came(run: Run, test: str = TEST, **evidence: Any) -> None:
    """A test has passed with this evidence; without any it used nothing of the plugin's."""
    found = TestEvidence(module=MODULE, test=test, **evidence) if evidence else None
    payload = {} if found is None else {"gpuperf": msgspec.json.encode(found).decode()}
    report: Any = SimpleNamespace(
        nodeid=f"{MODULE}::{test}", when="call", failed=False, skipped=False, outcome="passed", **payload
    )
    run.shared.results.note(report)


def finished(run: Run, status: int = OK) -> tuple[int, Outcome]:
    session = run.session(status)
    end_of_run.finish(session)
    return int(session.exitstatus), run.shared.outcome


def test_run_that_failed_already_keeps_its_status(run: Run) -> None:
    """Though it gathered nothing."""
    for before in (FAILED, INTERRUPTED, 3, 4):
        status, outcome = finished(run, before)
        assert (status, outcome.nothing) == (before, "")


def test_comparison_with_itself_is_said(gated: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    gated.shared.revision = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))
    monkeypatch.setattr(end_of_run, "with_itself", lambda *_: "it is itself")
    for python in (Path("/opt/python"), None):
        _, outcome = finished(gated.with_options(against="HEAD", against_env=python))
        assert ("it is itself" in outcome.left_out) is (python is None)


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
    "was interrupted": ([WRITTEN], INTERRUPTED, INTERRUPTED, [], INTERRUPT),
    "is interrupted": (KeyboardInterrupt(), OK, INTERRUPTED, [], HALF),
}


@pytest.mark.parametrize("case", UPDATES)
def test_update(run: Run, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    does, before, after, recorded, problem = UPDATES[case]

    def accept(shared: Any) -> list[Recorded]:
        assert shared is run.shared
        if isinstance(does, BaseException):
            raise does
        return list(does)

    monkeypatch.setattr(end_of_run, "accept", accept)
    came(run, workloads=(MEASURED,))
    status, outcome = finished(run.with_options(update="all"), before)
    assert (status, outcome.recorded, outcome.problem) == (after, recorded, problem)
    assert outcome.updated == (not problem)


# --- reports -------------------------------------------------------------------------------------


def test_reports_are_written_when_all_is_known(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for ``gpuperf explain`` too, if there is anything to explain; a child writes none."""
    documents: list[Any] = []

    def write_reports(document: Any, files: Any, root: Path) -> tuple[list[str], list[str]]:
        documents.append(document)
        return [file for file in files if "no" not in file], [file for file in files if "no" in file]

    monkeypatch.setattr(end_of_run, "write_reports", write_reports)
    monkeypatch.setattr(end_of_run, "document_of", lambda report: report)
    kept = run.config.rootpath / last_run.FOLDER / last_run.FILE
    run.with_options(task=ConfirmTask(folder=run.config.rootpath, reading=0, writing=1))
    assert finished(run) == (OK, Outcome())
    finished(run.with_options(task=None))
    status, outcome = finished(run.with_options(reports=("report.html",)))
    assert (status, outcome.reports, outcome.unwritten) == (NOTHING, ("report.html",), ())
    (document,) = documents
    assert (document.exit_status, document.problems, document.plugin) == (NOTHING, (outcome.nothing,), __version__)
    assert document.warnings == tuple(remarks.run_remarks(run.shared.results, outcome, run.options))
    assert not kept.exists()
    came(run, workloads=(MEASURED,))
    status, outcome = finished(run.with_options(reports=("report.html", "no.html")))
    assert (status, outcome.unwritten) == (FAILED, ("no.html",))
    report = read_report(kept)
    assert ([one.test for one in report.tests], report.baselines) == ([TEST], "baselines")
