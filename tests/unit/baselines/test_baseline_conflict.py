"""A baseline in the middle of a merge: the command that its message names works there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.baseline_errors import UnreadableBaselineError
from pytest_gpuperf.baselines.store import BaselineStore

STATIC = (
    '{{\n  "kind": "static",\n  "schema": 6,\n  "target": "sm_90",\n'
    '  "toolchains": {{"nvrtc {}": {{"codes": {{}}, "tests": {{}}}}}}\n}}\n'
)
MODULE = "test_x.py"


@pytest.fixture
def merging(tmp_path: Path) -> Path:
    """A baseline with both sides of a merge in it, unmerged in git too."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    file = tmp_path / "baselines" / "sm_90" / "test_x.json"
    file.parent.mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "ours")
    commit(file, "13.0.88", tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "theirs")
    commit(file, "13.1.0", tmp_path)
    git(tmp_path, "checkout", "-q", "ours")
    commit(file, "13.2.0", tmp_path)
    assert git(tmp_path, "merge", "theirs") != 0
    return file


def git(folder: Path, *arguments: str) -> int:
    """Exit status of a git command."""
    who = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, check=False).returncode


def commit(file: Path, version: str, folder: Path) -> None:
    file.write_text(STATIC.format(version), encoding="utf-8")
    git(folder, "add", "-A")
    assert git(folder, "commit", "-q", "-m", version) == 0


def test_the_command_that_the_message_names_takes_a_side(merging: Path) -> None:
    root = merging.parents[1]
    with pytest.raises(UnreadableBaselineError, match="line 5 is an unresolved merge conflict") as caught:
        BaselineStore(root).load("sm_90", MODULE)
    named = re.search(r"git (checkout --theirs [^;]+);", str(caught.value))
    assert named is not None
    assert git(root, *named[1].split()) == 0
    file = BaselineStore(root).load("sm_90", MODULE)
    assert file is not None
    assert list(file.toolchains) == ["nvrtc 13.1.0"]


def test_a_damaged_baseline_is_restored_from_git(merging: Path) -> None:
    merging.write_text("{", encoding="utf-8")
    with pytest.raises(UnreadableBaselineError, match="git checkout -- "):
        BaselineStore(merging.parents[1]).load("sm_90", MODULE)
