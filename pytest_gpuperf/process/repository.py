"""Git's facts on the repository of the tests."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.baselines.git_objects import RevisionError, run_git

CI_BRANCHES = ("GITHUB_HEAD_REF", "CI_COMMIT_REF_NAME", "GITHUB_REF_NAME")
"""Variables in which GitHub and GitLab name the branch of a job, whose working tree has none."""


class Commit(NamedTuple):
    """The commit that a working tree is at."""

    name: str = ""
    """In full; empty outside of a repository, and where git cannot tell."""
    dirty: bool = False
    """Whether tracked files differ from it."""


def checkout_around(folder: Path) -> Path | None:
    """The top of the checkout that the folder is in, without asking git; None outside of one."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def commit_of(folder: Path, apart: Path | None = None) -> Commit:
    """The commit of the repository around ``folder``; changes in the folder ``apart`` do not make it dirty."""
    name = _git(folder, "rev-parse", "HEAD") or ""
    real = Path(os.path.realpath(apart)) if apart is not None else None
    changed = _changed(folder, "HEAD") if name else None
    return Commit(name, dirty=any(real is None or not path.is_relative_to(real) for path in changed or ()))


def changed_since(folder: Path, commit: str) -> frozenset[Path] | None:
    """Tracked files of the repository around ``folder`` that are not as ``commit``, given in full, has them.

    Their paths have no links, and nothing hidden is among them.  None where git cannot tell, as where a shallow clone
    lacks the commit.
    """
    return _changed(folder, commit, hidden=False) if re.fullmatch("[0-9a-f]{40,64}", commit) else None


def branch_of(folder: Path) -> str:
    """The branch that is checked out; where none is, the one that the CI service says it tests; else empty."""
    name = _git(folder, "rev-parse", "--abbrev-ref", "HEAD") or ""
    if name != "HEAD":
        return name
    return next((found for one in CI_BRANCHES if (found := os.environ.get(one))), "")


def _changed(folder: Path, commit: str, *, hidden: bool = True) -> frozenset[Path] | None:
    """Tracked files that differ from a commit, their paths without links; None where git cannot tell."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    named = _git(Path(top), "diff", "--name-only", "--no-renames", "--no-relative", "-z", commit) if top else None
    if top is None or named is None:
        return None
    kept = [name for name in named.split("\0") if name and (hidden or not f"/{name}".count("/."))]
    return frozenset(Path(os.path.realpath(top), name) for name in kept)


def _git(folder: Path, *arguments: str) -> str | None:
    """Its output without spaces around it; None if it fails or is not there."""
    try:
        done = run_git(folder, *arguments)
    except RevisionError:
        return None
    return os.fsdecode(done.stdout).strip() if done.returncode == 0 else None
