"""Submodules of a worktree, taken from those of the working tree beside it: nothing is fetched from anywhere."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_gpuperf.baselines.git_objects import NO_HOOKS, SUBMODULE, run_git


def fill_submodules(top: Path, tree: Path) -> None:
    """Check out what the submodules of ``tree`` are at, as far as the working tree ``top`` has their commits.

    One that is there is left as it is.  Those that cannot be had stay empty (``empty_submodules``).
    """
    for path, commit in _links(tree):
        if not any((tree / path).iterdir()) and (top / path / ".git").exists():
            _copy(top / path, tree / path, commit)
        if (tree / path / ".git").exists():
            fill_submodules(top / path, tree / path)


def empty_submodules(tree: Path) -> list[Path]:
    """Those with nothing in them, as seen from ``tree``."""
    found = []
    for path, _ in _links(tree):
        if not any((tree / path).iterdir()):
            found.append(path)
        else:
            found += [path / one for one in empty_submodules(tree / path)]
    return found


def _links(tree: Path) -> Iterator[tuple[Path, str]]:
    """Submodules of a tree and their commits."""
    if not (tree / ".gitmodules").is_file():
        return
    listed = os.fsdecode(run_git(tree, "ls-files", "--stage", "-z").stdout)
    for line in listed.split("\0"):  # 160000 3f9a... 0<tab>path
        head, _, name = line.partition("\t")
        if head.startswith(SUBMODULE) and (tree / name).is_dir():
            yield Path(name), head.split()[1]


def _copy(source: Path, place: Path, commit: str) -> None:
    """Put a commit of the repository ``source`` in the empty folder ``place``, its objects shared; or nothing."""
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        cloned = run_git(source, "clone", "-q", "--shared", "--no-checkout", str(source), str(beside))
        if cloned.returncode == 0 and run_git(beside, *NO_HOOKS, "checkout", "-q", "--detach", commit).returncode == 0:
            beside.replace(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
