"""The end of a run with missing records, of one that compares with a revision, and of an interrupted update."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, H200, MODULE, TEST, Run, static_record, workload

from pytest_gpuperf import stash
from pytest_gpuperf.model.result import Outcome, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.task import Revision
from pytest_gpuperf.session import end_of_run

OK, FAILED, INTERRUPTED, USAGE_ERROR = 0, 1, 2, 4
NODE, OLD = f"{MODULE}::{TEST}", f"{MODULE}::test_old"
MEASURED = workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER)


def came(run: Run, *workloads: WorkloadEvidence) -> None:
    """The run's test has come to its end with this evidence."""
    found = TestEvidence(module=MODULE, test=TEST, workloads=workloads, device=H200)
    report: Any = SimpleNamespace(
        nodeid=NODE,
        when="call",
        duration=1.0,
        failed=False,
        skipped=False,
        outcome="passed",
        gpuperf=msgspec.json.encode(found).decode(),
    )
    stash.run_of(run.config).results.note(report)


def finished(run: Run, status: int = OK) -> tuple[int, Outcome]:
    session = run.session(status)
    end_of_run.finish(session)
    return int(session.exitstatus), run.worker.outcome


def test_missing_record_fails_a_run_that_is_green_so_far(gated: Run) -> None:
    came(gated, MEASURED)
    status, outcome = finished(gated)
    assert status == FAILED
    assert outcome.missing[0].startswith(f"1 workload NOT-MEASURED on sm_90: its test was deleted or renamed: {OLD}")
    assert finished(gated, INTERRUPTED)[0] == INTERRUPTED


def test_missing_record_is_a_remark_where_it_is_not_gated(gated: Run) -> None:
    came(gated, MEASURED)
    status, outcome = finished(gated.with_options(open="warn"))
    assert (status, outcome.missing, len(outcome.left_out)) == (OK, (), 1)


def test_baselines_that_cannot_be_read_are_missing(gated: Run) -> None:
    (gated.options.baselines / "manifest.json").write_text("{")
    came(gated, MEASURED)
    status, outcome = finished(gated)
    assert (status, outcome.missing[0].partition(":")[0]) == (FAILED, "missing records cannot be found")


def test_partial_run_says_so_and_misses_nothing(gated: Run) -> None:
    came(gated, MEASURED)
    gated.searched("elsewhere")
    status, outcome = finished(gated)
    assert (status, outcome.missing) == (OK, ())
    assert outcome.left_out[0].startswith("partial run: it left out 1 of 1 workload with a baseline")


# --- a revision ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("python", "told"), [(None, True), (Path("/opt/python"), False)])
def test_a_comparison_with_itself_is_told_unless_its_environment_is_another(
    gated: Run, monkeypatch: pytest.MonkeyPatch, python: Path | None, *, told: bool
) -> None:
    gated.worker.revision = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))
    monkeypatch.setattr(end_of_run, "with_itself", lambda *_: "it is itself")
    came(gated, MEASURED)
    status, outcome = finished(gated.with_options(against="HEAD", against_python=python))
    assert (status, "it is itself" in outcome.left_out) == (OK, told)


# --- an update -------------------------------------------------------------------------------------


def test_an_update_that_is_interrupted_while_it_records_says_so(gated: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(end_of_run, "accept", interrupted)
    came(gated, MEASURED)
    status, outcome = finished(gated.with_options(update="all"))
    assert (status, outcome.updated) == (INTERRUPTED, False)
    assert outcome.problem == "the run was interrupted while it recorded: no baseline is half written; see git status"
