"""States of the baselines in git: their files, what differs between two of them, and the records of past commits."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import CUBIN, H200, NVRTC, make_key, make_session, make_static, make_time, static_update
from git_samples import commit, git

from pytest_gpuperf.baselines import history
from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.history import Difference, commits_of, difference, records_of
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import Baselines, BaselineStore, FolderFiles

FIRST, SECOND = make_key(module="suite/test_a.py"), make_key(module="suite/test_b.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two modules with static evidence and times, committed."""
    root = tmp_path / "baselines"
    session = make_session()
    static = {("sm_90", NVRTC, key): make_static() for key in (FIRST, SECOND)}
    time = {(H200, key): make_time(session) for key in (FIRST, SECOND)}
    BaselineStore(root).write(Update(static=static, time=time, sessions=[session], cubins=[CUBIN]))
    commit(tmp_path)
    return root


def against_disk(root: Path, revision: str = "HEAD") -> Difference:
    folder = GitFolder(root)
    before = Baselines(folder.files(folder.commit(revision)), f"{revision}:baselines")
    return difference(before, Baselines(FolderFiles(root), str(root)))


def test_equal_states_differ_in_nothing(root: Path) -> None:
    assert against_disk(root) == Difference({}, {}, frozenset(), (None, None), (), compared=True)


def test_files_that_differ_are_compared(root: Path) -> None:
    BaselineStore(root).write(Update(static={("sm_90", NVRTC, FIRST): make_static(registers=48)}))
    found = against_disk(root)
    assert found.before[FIRST].static["sm_90", NVRTC].profile.registers == 32
    assert found.after[FIRST].static["sm_90", NVRTC].profile.registers == 48
    assert (set(found.after), found.skipped) == ({FIRST}, ())


def test_a_workload_that_equal_files_have_is_known(root: Path) -> None:
    BaselineStore(root).write(Update(static={("sm_120", NVRTC, FIRST): make_static()}))
    found = against_disk(root)
    assert (found.before, set(found.after), found.elsewhere) == ({}, {FIRST}, {FIRST})
    old, new = found.manifests
    assert [one.architectures for one in (old, new) if one] == [("sm_90",), ("sm_90", "sm_120")]


@pytest.mark.parametrize("content", [b"", b"<<<<<<< HEAD\n{", b" " * (17 << 20)], ids=["empty", "conflict", "large"])
def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_compared(root: Path, content: bytes) -> None:
    path = root / "sm_90" / "suite" / "test_a.jsonl"
    path.write_bytes(content)
    BaselineStore(root).write(Update(static={("sm_90", NVRTC, SECOND): make_static(registers=48)}))
    (root / "manifest.json").write_text("{")
    found = against_disk(root)
    assert [str(path) in words for words in found.skipped] == [True, False]
    assert found.skipped[1].startswith(f"{root / 'manifest.json'}: this baseline cannot be read")
    assert set(found.after) == set(found.before) == {SECOND}


def test_each_revision_has_its_files(root: Path) -> None:
    folder = GitFolder(root)
    files = folder.files(folder.commit("HEAD"))
    assert files == {**FolderFiles(root), "manifest.json": (root / "manifest.json").read_bytes()}
    assert GitFolder(root.parent / "none").files(folder.commit("HEAD")) == {}
    git(root.parent, "rm", "-rq", "baselines")
    assert folder.files(folder.commit("HEAD")) == files


def test_the_folder_may_be_the_repository_and_links_are_left_out(tmp_path: Path) -> None:
    BaselineStore(tmp_path).write(static_update())
    (tmp_path / "sm_90" / "link.jsonl").symlink_to("/etc/passwd")
    commit(tmp_path)
    assert sorted(GitFolder(tmp_path).files("HEAD")) == ["manifest.json", "sm_90/example_suite/test_transpose.jsonl"]


def test_files_that_the_sdist_leaves_out_are_there(root: Path) -> None:
    """``git archive`` of the repository would leave out what has the attribute export-ignore."""
    (root.parent / ".gitattributes").write_text("baselines export-ignore\n")
    commit(root.parent)
    assert GitFolder(root).files("HEAD")


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


def test_each_commit_has_all_that_was_on_record(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BaselineStore(root).write(static_update(make_static(40), FIRST))
    (root / "sm_90/suite/test_b.jsonl").write_text("{}")
    commit(root.parent)
    decoded: list[object] = []
    real = history.decode
    monkeypatch.setattr(history, "decode", lambda *those: (decoded.append(those[1]), real(*those))[1])
    found = list(records_of(GitFolder(root), commits_of(root)))
    targets = [(one.target, one.key) for one in found]
    static = f"sm_90, {NVRTC}"
    assert targets == [
        (H200, FIRST), (H200, SECOND), (static, FIRST), (static, SECOND), (H200, FIRST), (H200, SECOND), (static, FIRST)
    ]  # fmt: skip
    assert (found[2].record, found[6].record) == (make_static(32), make_static(40))
    assert len(decoded) == 6, "an unchanged file is decoded once"
