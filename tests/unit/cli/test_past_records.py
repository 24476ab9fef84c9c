"""The records of past commits: which commits count, and what each has."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import CUBIN, H200, NVRTC, make_key, make_session, make_static, make_time, static_update
from git_samples import commit, git

from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.history_command import commits_of, series_of

FIRST, SECOND = make_key(module="suite/test_a.py"), make_key(module="suite/test_b.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two modules with static evidence and times, committed."""
    root = tmp_path / "baselines"
    static = {("sm_90", NVRTC, key): make_static() for key in (FIRST, SECOND)}
    time = {(H200, key): make_time(make_session()) for key in (FIRST, SECOND)}
    BaselineStore(root).write(Update(static=static, time=time, cubins=[CUBIN]))
    commit(tmp_path)
    return root


def test_commits_that_touched_the_folder_come_the_oldest_first(root: Path) -> None:
    (root.parent / "other.py").touch()
    commit(root.parent, "elsewhere")
    BaselineStore(root).write(static_update(make_static(40), FIRST))
    second = commit(root.parent, 'Caf\u00e9 "quoted"')
    found = commits_of(root)
    assert [one.subject for one in found] == ["state", 'Caf\u00e9 "quoted"']
    assert (found[1].name, found[0].date) == (second, git(root, "show", "-s", "--format=%cI", found[0].name))


def test_a_merge_stands_for_its_branch(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    for registers in (40, 48):
        BaselineStore(root).write(static_update(make_static(registers), FIRST))
        commit(root.parent)
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "-m", "merged", "side")
    assert [one.subject for one in commits_of(root)] == ["state", "merged"]


def test_each_commit_has_all_that_was_on_record(root: Path) -> None:
    """But one whose baselines cannot be read; a record that stays is one point."""
    BaselineStore(root).write(static_update(make_static(40), FIRST))
    commit(root.parent)
    (root / "sm_90/suite/test_b.jsonl").write_text("{}")
    commit(root.parent)
    found = {
        tuple(one[:3]): [point.value for point in one.points] for one in series_of(GitFolder(root), commits_of(root))
    }
    assert found.keys() == {
        (key, target, measure) for key in (FIRST, SECOND) for target, measure in (
            (f"sm_90, {NVRTC}", "registers"), (f"sm_90, {NVRTC}", "instructions"), (H200, "time")
        )
    }  # fmt: skip
    assert found[FIRST, f"sm_90, {NVRTC}", "registers"] == [32, 40]
    assert found[SECOND, f"sm_90, {NVRTC}", "registers"] == [32]
