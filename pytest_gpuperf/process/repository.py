"""What git says of the repository that tests lie in."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.baselines.git_objects import NO_BARE_REPOSITORY, git_environment

_LIMIT_S = 10
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
    name = _git(folder, "rev-parse", "HEAD")
    if not name:
        return Commit()
    excluded = [f":(exclude){apart.resolve()}"] if apart is not None and apart.exists() else []
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", *excluded)
    if changed is None:  # the folder that is to be left out lies elsewhere
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Commit(name, dirty=bool(changed))


def changed_since(folder: Path, commit: str) -> frozenset[Path] | None:
    """Tracked files of the repository around ``folder`` that are not as ``commit``, given in full, has them.

    Their paths have no links, and nothing hidden is among them.  None where git cannot tell, as where a shallow clone
    lacks the commit.
    """
    if not re.fullmatch("[0-9a-f]{40,64}", commit):
        return None
    top = _git(folder, "rev-parse", "--show-toplevel")
    named = _git(folder, "diff", "--name-only", "--no-renames", "--no-relative", "-z", commit, "--", ":/")
    if not top or named is None:
        return None
    names = (Path(name) for name in named.split("\0") if name)
    real = Path(os.path.realpath(top))
    return frozenset(real / name for name in names if not any(part.startswith(".") for part in name.parts))


def branch_of(folder: Path) -> str:
    """The branch that is checked out; where none is, the one that the CI service says it tests; else empty."""
    name = _git(folder, "rev-parse", "--abbrev-ref", "HEAD") or ""
    if name != "HEAD":
        return name
    return next(filter(None, map(os.environ.get, CI_BRANCHES)), "") or ""


def _git(folder: Path, *arguments: str) -> str | None:
    """Its output without spaces around it; None if it fails or is not there."""
    command = ["git", *NO_BARE_REPOSITORY, "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, env=git_environment(), capture_output=True, text=True, errors="surrogateescape",
            timeout=_LIMIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
