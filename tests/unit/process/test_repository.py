"""The commit that a record is of, and whether the tree was that commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_samples import commit as committed
from git_samples import git

from pytest_gpuperf.process.repository import Commit, changed_since, commit_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "baselines").mkdir()
    (tmp_path / "kernel.cu").write_text("a")
    (tmp_path / "baselines/one.json").write_text("a")
    committed(tmp_path)
    (tmp_path / "untracked").write_text("a")
    return tmp_path


def test_an_edited_source_is_another_tree_also_seen_from_a_folder_of_it(tree: Path) -> None:
    (tree / "kernel.cu").write_text("b")
    assert commit_of(tree).dirty
    assert commit_of(tree / "baselines", tree / "baselines").dirty


def test_baselines_that_an_update_rewrites_leave_the_tree_clean(tree: Path, tmp_path_factory) -> None:
    (tree / "baselines/one.json").write_text("b")
    assert not commit_of(tree, tree / "baselines").dirty
    assert commit_of(tree).dirty
    assert commit_of(tree, tmp_path_factory.mktemp("elsewhere")).dirty


def test_a_hook_of_another_repository_leads_nobody_astray(tree: Path, tmp_path_factory, monkeypatch) -> None:
    mine, other = git(tree, "rev-parse", "HEAD"), tmp_path_factory.mktemp("other")
    (other / "file").touch()
    committed(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert commit_of(tree) == Commit(mine, dirty=False)


def test_there_is_no_commit_outside_of_a_repository_or_without_git(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert commit_of(tmp_path) == Commit()
    monkeypatch.setenv("PATH", "")
    assert commit_of(tmp_path) == Commit()


def test_what_changed_since_a_commit(tree: Path) -> None:
    first = git(tree, "rev-parse", "HEAD")
    assert changed_since(tree, first) == frozenset()
    for name in ("new", "new\nline é.py", ".hidden/file"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("a")
    git(tree, "add", "new", "new\nline é.py", ".hidden")
    git(tree, "mv", "kernel.cu", "moved.cu")
    git(tree, "commit", "-qm", "second")
    (tree / "baselines/one.json").write_text("edited")
    names = {"new", "new\nline é.py", "kernel.cu", "moved.cu", "baselines/one.json"}
    for folder in (tree, tree / "baselines"):
        assert changed_since(folder, first) == {tree / name for name in names}


@pytest.mark.parametrize("commit", ["", "HEAD", "--output=stolen", "0" * 40, "ab" * 20])
def test_of_what_is_no_commit_there_is_no_telling(tree: Path, commit: str) -> None:
    assert changed_since(tree, commit) is None
    assert not (tree / "stolen").exists()
