"""The end of a run that is a shard, of one that compares with a revision, and of one that all runs before condemn."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from git_samples import commit
from missed_samples import NODE, OLD_NODE, old_key
from run_samples import COMPILER, H200, MODULE, TEST, Run, static_record, workload

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.context import stash
from pytest_gpuperf.judge.vanished import Ended
from pytest_gpuperf.model.result import Outcome, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.report.document import RunReport
from pytest_gpuperf.session import end_of_run
from pytest_gpuperf.session.end_of_run import EXIT_NOTHING_MEASURED, EXIT_VANISHED, OUTCOME

OK, FAILED, INTERRUPTED, USAGE_ERROR = 0, 1, 2, 4
MEASURED = workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER)


def came(run: Run, *workloads: WorkloadEvidence) -> None:
    """The run's test has come to its end with this evidence."""
    found = TestEvidence(module=MODULE, test=TEST, workloads=workloads, device=H200)
    report: Any = SimpleNamespace(
        nodeid=NODE, when="call", duration=1.0, failed=False, skipped=False, gpuperf=msgspec.json.encode(found).decode()
    )
    stash.run_book_of(run.config).collect(report)


def finished(run: Run, status: int = OK) -> tuple[int, Outcome]:
    session = run.session(status)
    end_of_run.finish(session)
    return int(session.exitstatus), run.config.stash[OUTCOME]


@pytest.fixture
def shard(gated: Run) -> Run:
    """The second of two, which had a test of the run's plan, and answers for the deleted one's record."""
    gated.collected(TEST, plan="p").ends[NODE] = Ended("passed")
    gated.config.get_verbosity = lambda: 0
    mine = next(index for index in (1, 2) if _answers(index))
    return gated.with_options(shard=(mine, 2), reports=(gated.config.rootpath / "shard.json",))


def _answers(index: int) -> bool:
    from pytest_gpuperf.context.shard_plan import Shard

    return Shard(index, 2).answers_for(OLD_NODE)


def written(run: Run) -> RunReport:
    return msgspec.json.decode((run.config.rootpath / "shard.json").read_bytes(), type=RunReport)


def test_a_shards_report_has_its_part_and_leaves_what_vanished_to_all_together(shard: Run) -> None:
    (shard.config.rootpath / "a.py").touch()
    here = commit(shard.config.rootpath)
    came(shard, MEASURED)
    status, outcome = finished(shard)
    assert (status, bool(outcome.vanished)) == (EXIT_VANISHED, True)
    report = written(shard)
    assert (report.shard, report.exit_status, report.problems) == (shard.options.shard, EXIT_VANISHED, ())
    assert report.part is not None
    assert (report.part.tests_run, report.part.complete, report.part.models) == (1, True, (H200.slug,))
    assert [one.record.key for one in report.part.missed.candidates] == [old_key()]
    assert (report.commit, report.branch, report.dirty) == (here, "main", False)
    assert not any("NOT-MEASURED" in one for one in report.warnings)
    assert [test.test for test in report.tests] == [TEST]


def test_a_report_of_a_whole_run_tells_what_vanished_and_has_no_part(shard: Run) -> None:
    came(shard, MEASURED)
    finished(shard.with_options(shard=None))
    report = written(shard)
    assert (report.shard, report.part) == (None, None)
    assert "1 workload on record NOT-MEASURED on sm_90" in report.problems[0]


@pytest.mark.parametrize(("status", "left"), [(OK, OK), (5, OK), (FAILED, FAILED), (INTERRUPTED, INTERRUPTED)])
def test_that_a_shard_gathered_nothing_is_for_all_together_to_say(shard: Run, status: int, left: int) -> None:
    shard.with_options(open="warn")
    found, outcome = finished(shard, status)
    assert (found, outcome.nothing) == (left, "")
    said = [one for one in outcome.left_out if one.startswith("nothing was measured: no test ran")]
    assert len(said) == (1 if left == OK else 0)
    assert all(one.endswith("(of this shard; gpuperf merge says it of all together)") for one in said)


def test_a_shard_of_a_run_without_any_test_gathered_nothing_itself(shard: Run) -> None:
    shard.collected(plan="")
    assert finished(shard)[0] == EXIT_NOTHING_MEASURED


def test_what_vanished_fails_a_run_that_is_green_so_far(gated: Run) -> None:
    came(gated, MEASURED)
    assert finished(gated)[0] == EXIT_VANISHED
    assert finished(gated, FAILED)[0] == FAILED


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


def test_a_record_that_is_there_does_not_vanish(gated: Run) -> None:
    gated.store.write(Update(static={("sm_90", COMPILER, old_key(TEST)): static_record()}))
    gated.collected(TEST, "test_old").ends.update({NODE: Ended("passed"), OLD_NODE: Ended("failed")})
    came(gated, MEASURED)
    assert finished(gated)[0] == OK
