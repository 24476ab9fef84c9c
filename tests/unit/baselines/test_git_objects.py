"""A folder at a revision is read from git, and what git cannot tell is said with a remedy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from baseline_samples import make_static, static_update
from git_samples import commit, git

from pytest_gpuperf.baselines import git_objects
from pytest_gpuperf.baselines.git_objects import GitFolder, RevisionError, git_environment, said
from pytest_gpuperf.baselines.store import BaselineStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Baselines of one workload, in two commits."""
    root = tmp_path / "baselines"
    (tmp_path / "elsewhere.json").write_text("no baseline")
    for registers in (32, 40):
        BaselineStore(root).write(static_update(make_static(registers)))
        commit(tmp_path)
    return root


def content(folder: Path, revision: str = "HEAD") -> dict[str, bytes]:
    git_folder = GitFolder(folder)
    return git_folder.files(git_folder.commit(revision))


def test_the_mapping_of_a_revision_is_that_of_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this repository, not of that of a hook; also where the sdist leaves it out, and when it is gone since."""
    store = BaselineStore(root)
    files = {name: store.content(name) for name in ("manifest.json", *store.paths())}
    monkeypatch.setenv("GIT_DIR", str(root / "none" / ".git"))
    assert content(root) == files
    assert content(root, "HEAD~1") != files
    monkeypatch.delenv("GIT_DIR")
    (root.parent / ".gitattributes").write_text("baselines export-ignore\n")
    commit(root.parent)
    assert content(root.parent / "none") == {}
    git(root.parent, "rm", "-rq", "baselines")
    assert content(root) == files


def test_the_folder_may_be_the_repository_and_links_are_left_out(tmp_path: Path) -> None:
    BaselineStore(tmp_path).write(static_update())
    (tmp_path / "sm_90" / "link.jsonl").symlink_to("/etc/passwd")
    commit(tmp_path)
    assert sorted(content(tmp_path)) == ["manifest.json", "sm_90/example_suite/test_transpose.jsonl"]


def test_what_git_says_is_one_line_and_is_asked_for_without_a_person() -> None:
    long = b"x" * 500, "x" * 397 + "..."
    for stderr, words in ((b"fatal: no\n  such\xff", "no such\ufffd"), (b"", "exit status 3"), long):
        assert said(subprocess.CompletedProcess([], 3, b"", stderr)) == words
    asked = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    assert asked.items() <= git_environment().items()


def test_a_place_that_git_does_not_read_is_told_what_to_do(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for revision in ("no-such-branch", "--all", "HEAD~9", ""):
        with pytest.raises(RevisionError, match="Name a commit, a branch or a tag"):
            content(root, revision)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root.parent}", "shallow")
    with pytest.raises(RevisionError, match="git fetch --unshallow"):
        content(tmp_path / "shallow" / "baselines", "HEAD~1")
    with pytest.raises(RevisionError, match="is in no git repository"):
        GitFolder(tmp_path.parent)
    monkeypatch.setattr(git_objects, "MAX_FILE_BYTES", 1 << 20)
    (root / "large.json").write_bytes(bytes(1 << 20))
    commit(root.parent)
    assert len(content(root)) == 3
    (root / "large.json").write_bytes(bytes((1 << 20) + 1))
    commit(root.parent)
    with pytest.raises(RevisionError, match=r"^large\.json is larger than 1 MB at that commit$"):
        content(root)
    monkeypatch.setenv("PATH", str(root))
    with pytest.raises(RevisionError, match="Install git"):
        GitFolder(root)
