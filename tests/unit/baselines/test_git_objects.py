"""A folder at a revision is read from git, and what git cannot tell is said with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import static_update
from git_samples import commit, git

from pytest_gpuperf.baselines.git_objects import GitFolder, RevisionError
from pytest_gpuperf.baselines.store import BaselineStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A committed folder ``baselines`` with one file, changed since."""
    file = tmp_path / "baselines" / "sm_90" / "test_x.jsonl"
    file.parent.mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_text("no baseline")
    file.write_text("first")
    commit(tmp_path)
    file.write_text("second")
    commit(tmp_path)
    return tmp_path / "baselines"


def content(folder: Path, revision: str) -> dict[str, bytes]:
    git_folder = GitFolder(folder)
    return git_folder.files(git_folder.commit(revision))


def test_each_revision_has_its_content(folder: Path) -> None:
    assert content(folder, "HEAD") == {"sm_90/test_x.jsonl": b"second"}
    assert content(folder, "HEAD~1") == {"sm_90/test_x.jsonl": b"first"}


def test_the_repository_of_the_folder_counts_not_that_of_a_hook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(folder / "none" / ".git"))
    assert content(folder, "HEAD") == {"sm_90/test_x.jsonl": b"second"}


@pytest.mark.parametrize("revision", ["no-such-branch", "--all", "HEAD~9", ""])
def test_an_unknown_revision_is_refused(folder: Path, revision: str) -> None:
    with pytest.raises(RevisionError, match="Name a commit, a branch or a tag"):
        GitFolder(folder).commit(revision)


def test_a_shallow_clone_is_told_how_to_get_the_rest(folder: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{folder.parent}", "shallow")
    with pytest.raises(RevisionError, match="git fetch --unshallow"):
        GitFolder(tmp_path / "shallow" / "baselines").commit("HEAD~1")


def test_a_folder_in_no_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RevisionError, match="is in no git repository"):
        GitFolder(tmp_path)


def test_a_machine_without_git_is_told_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(RevisionError, match="Install git"):
        GitFolder(folder)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Committed baselines of one workload."""
    BaselineStore(tmp_path / "baselines").write(static_update())
    commit(tmp_path)
    return tmp_path / "baselines"


def test_the_mapping_of_a_revision_is_that_of_the_folder(root: Path) -> None:
    folder = GitFolder(root)
    files = folder.files(folder.commit("HEAD"))
    assert files == {
        name: BaselineStore(root).content(name) for name in ("manifest.json", *BaselineStore(root).paths())
    }
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
