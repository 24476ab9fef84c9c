"""Judgements in the words of the revision that a run is compared with."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_samples import commit
from run_samples import MODULE, TEST, Run, judgement

from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.session.compare_revision import reworded, with_itself

REVISION = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",), lacking={f"{MODULE}::{TEST}": "it fails"})


def test_new_is_what_the_revision_does_not_have(run: Run) -> None:
    one = judgement(Verdict.NEW, reason="no baseline: record one")
    found = reworded(Revision(commit="c0", name="c0 (yesterday)", archs=()), one)
    assert (found.verdict, found.reason) == (Verdict.NEW, "it is not in c0 (yesterday)")


@pytest.mark.parametrize(
    ("collected", "there", "verdict"),
    [((), True, Verdict.NOT_COMPARABLE), ((MODULE,), True, Verdict.NEW), ((), False, Verdict.NEW)],
)
def test_new_is_not_comparable_where_the_revision_leaves_its_file_out(
    tmp_path: Path, collected: tuple[str, ...], there: bool, verdict: Verdict
) -> None:
    if there:
        (tmp_path / MODULE).parent.mkdir(parents=True)
        (tmp_path / MODULE).touch()
    revision = Revision(commit="c0", name="c0", archs=(), collected=frozenset(collected), root=tmp_path)
    one = judgement(Verdict.NEW)
    found = reworded(revision, one)
    assert found.verdict is verdict
    assert ("its own settings or conftests leave it out" in found.reason) is (verdict is Verdict.NOT_COMPARABLE)


def test_new_is_not_comparable_where_the_revision_has_no_evidence_of_it() -> None:
    one = judgement(Verdict.NEW)
    found = reworded(REVISION, one)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.reason == "c0 (yesterday) has nothing to compare with: it fails"


def test_a_revision_that_is_checked_out_unchanged_is_compared_with_itself(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    here = commit(tmp_path)
    revision = Revision(commit=here, name="this one", archs=())
    said = with_itself(run.config, revision)
    assert said == (
        "this one is what is checked out here, and no tracked file is changed: this run compares it with itself, and "
        "would always be green. To do: name what came before it (HEAD^, merge-base:main on a branch)"
    )
    (tmp_path / "a.py").write_text("2")
    assert with_itself(run.config, revision) == ""
    commit(tmp_path)
    assert with_itself(run.config, revision) == ""
