"""Worktrees of other revisions: one run each, taken over after a kill, never of another state, removed in the end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from git_samples import commit, git

from pytest_gpuperf.baselines.git_objects import RevisionError
from pytest_gpuperf.revision.worktree import described, resolve, worktree_of


@pytest.fixture(scope="module")
def first_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    (folder / "kernel.cu").write_text("first")
    commit(folder, "First state")
    return folder


@pytest.fixture
def repository(first_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "cache"))
    return Path(shutil.copytree(first_state, tmp_path / "project"))


def next_state(folder: Path, text: str) -> str:
    (folder / "kernel.cu").write_text(text)
    return commit(folder, f"State {text}")


def test_it_has_what_the_commit_has(repository: Path) -> None:
    first = resolve(repository, "HEAD")
    next_state(repository, "second")
    (repository / "kernel.cu").write_text("edited")
    with worktree_of(repository, first) as tree:
        assert (tree / "kernel.cu").read_text() == "first"
        assert tree != repository
    assert (repository / "kernel.cu").read_text() == "edited"


def test_the_same_one_serves_the_next_run_without_what_that_left(repository: Path) -> None:
    (repository / ".gitignore").write_text("built\n")
    head = next_state(repository, "second")
    with worktree_of(repository, head) as tree:
        (tree / "left.py").write_text("of a run")
        (tree / "built").write_text("by a build")
    with worktree_of(repository, head) as again:
        assert again == tree
        assert sorted(path.name for path in again.iterdir()) == [".git", ".gitignore", "built", "kernel.cu"]


@pytest.mark.parametrize(
    "harm",
    [lambda tree: (tree / "kernel.cu").write_text("edited"), lambda tree: (tree / "kernel.cu").unlink(),
     shutil.rmtree, lambda tree: (tree / ".git").unlink()],
    ids=["edited", "torn", "gone", "no git file"],
)  # fmt: skip
def test_what_is_not_as_committed_is_made_anew(repository: Path, harm: Callable[[Path], object]) -> None:
    head = resolve(repository, "HEAD")
    with worktree_of(repository, head) as tree:
        pass
    harm(tree)
    with worktree_of(repository, head) as again:
        assert (again / "kernel.cu").read_text() == "first"


def test_two_runs_have_one_each(repository: Path) -> None:
    head = resolve(repository, "HEAD")
    with worktree_of(repository, head) as one, worktree_of(repository, head) as other:
        assert one != other
        assert (one / "kernel.cu").read_text() == (other / "kernel.cu").read_text() == "first"


def test_worktrees_that_cannot_be_reached_just_now_stay(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "drive/other"))
    (tmp_path / "drive").rename(tmp_path / "unplugged")
    for number in range(3):
        with worktree_of(repository, next_state(repository, str(number))) as tree:
            pass
    (tree / ".git").unlink()
    with worktree_of(repository, "HEAD"):
        pass
    (tmp_path / "unplugged").rename(tmp_path / "drive")
    assert git(tmp_path / "drive/other", "status", "--porcelain") == ""


@pytest.fixture
def library(repository: Path, tmp_path: Path) -> Path:
    """A submodule at the state that ``repository`` names, and at no other: its folder."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library/part.cuh").write_text("1")
    commit(tmp_path / "library")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "library"), "library")
    commit(repository, "Add the library")
    return repository / "library"


def test_a_submodule_is_at_its_commit_of_then_without_what_a_run_left(repository: Path, library: Path) -> None:
    head = resolve(repository, "HEAD")
    (library / "part.cuh").write_text("2")
    commit(library)
    for _ in range(2):
        with worktree_of(repository, head) as tree:
            assert (tree / "library/part.cuh").read_text() == "1"
            assert sorted(path.name for path in (tree / "library").iterdir()) == [".git", "part.cuh"]
            (tree / "library/left.py").write_text("of a run")


def test_a_submodule_without_its_commit_of_then_is_an_error(repository: Path, library: Path) -> None:
    git(library, "checkout", "-q", "--orphan", "island")
    commit(library, "Of another history")
    git(library, "branch", "-q", "-D", "main")
    git(library, "remote", "remove", "origin")
    git(library, "reflog", "expire", "--expire=now", "--all")
    git(library, "gc", "-q", "--prune=now")
    with pytest.raises(RevisionError) as refusal, worktree_of(repository, resolve(repository, "HEAD")):
        pass
    said = str(refusal.value)
    assert said.startswith("the submodule library cannot be checked out at its commit of that revision (")
    assert said.endswith(f"To do: git -C {library} fetch --all")


def test_another_commit_takes_the_place_of_the_last(repository: Path) -> None:
    (repository / ".gitignore").write_text("built\n")
    with worktree_of(repository, next_state(repository, "second")) as first:
        (first / "built").write_text("of that commit")
    with worktree_of(repository, next_state(repository, "third")) as tree:
        assert tree == first
        assert (tree / "kernel.cu").read_text() == "third"
        assert not (tree / "built").exists()
    assert git(repository, "worktree", "list").count("\n") == 1, "beside the repository itself"


def test_the_merge_base_is_where_the_branch_began(repository: Path) -> None:
    base = resolve(repository, "HEAD")
    git(repository, "checkout", "-q", "-b", "branch")
    mine = next_state(repository, "mine")
    git(repository, "checkout", "-q", "main")
    next_state(repository, "theirs")
    git(repository, "checkout", "-q", "branch")
    assert resolve(repository, "merge-base:main") == base
    assert resolve(repository, "HEAD") == mine
    assert described(repository, mine).startswith(f"{mine[:12]} (20")
    assert described(repository, mine).endswith(", State mine)")


@pytest.mark.parametrize(
    ("ref", "said"),
    [("nowhere", "git knows no revision 'nowhere'"), ("--all", "git knows no revision '--all'"),
     ("merge-base:nowhere", "git knows no revision 'nowhere'"), ("merge-base:island", "have no commit in common")],
)  # fmt: skip
def test_a_revision_that_is_none_is_refused_in_words(repository: Path, ref: str, said: str) -> None:
    git(repository, "checkout", "-q", "--orphan", "island")
    commit(repository)
    git(repository, "checkout", "-q", "main")
    with pytest.raises(RevisionError, match=said):
        resolve(repository, ref)


def test_a_shallow_clone_is_told_how_to_get_the_rest(repository: Path, tmp_path: Path) -> None:
    first = resolve(repository, "HEAD")
    next_state(repository, "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    with pytest.raises(RevisionError, match="fetch-depth: 0"):
        resolve(tmp_path / "shallow", first)


def test_outside_of_a_repository(tmp_path: Path) -> None:
    with pytest.raises(RevisionError, match="git reads no working tree at"):
        resolve(tmp_path, "HEAD")


def test_a_repository_that_cannot_be_written(repository: Path) -> None:
    shutil.rmtree(repository / ".git/worktrees", ignore_errors=True)
    (repository / ".git/worktrees").write_text("as good as read-only")
    with pytest.raises(RevisionError, match=rf"To do: let git write to {repository / '.git'}, or free disk space"):
        worktree_of(repository, resolve(repository, "HEAD")).__enter__()


def test_a_cache_folder_that_cannot_be_written(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = repository.parent / "file"
    blocked.write_text("")
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(blocked))
    with pytest.raises(RevisionError, match="GPUPERF_CACHE_DIR"), worktree_of(repository, resolve(repository, "HEAD")):
        pass
