"""Git repositories that tests make."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.git_objects import git_environment


def git(folder: Path, *arguments: str) -> str:
    """Run git as nobody in particular; returns what it printed."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *identity, *arguments]
    environment = git_environment()  # not the repository of a hook, or of git bisect run, that the tests run in
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def as_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let git take every repository for another user's, whatever this one has told it to trust."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own, for its tests
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def commit(folder: Path, message: str = "state") -> str:
    """Commit all that there is, making the repository if there is none; returns the commit's id."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")
