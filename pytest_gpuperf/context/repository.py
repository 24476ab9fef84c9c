"""What git says of the repository that tests lie in."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

_LIMIT_S = 10


class Commit(NamedTuple):
    """The commit that a working tree is at."""

    name: str = ""
    """In full; empty outside of a repository, and where git cannot tell."""
    dirty: bool = False
    """Whether tracked files differ from it."""


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


def _git(folder: Path, *arguments: str) -> str | None:
    """Its output without spaces around it; None if it fails or is not there."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
