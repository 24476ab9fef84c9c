"""Files of a baseline folder that a merge could not finish, with what each side has: from git, or from markers."""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.parsing import MAX_JSON_BYTES, read_bounded
from pytest_gpuperf.baselines.three_way import Versions

_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""What git tells its hooks of the repository that they run for; the folder says which one is meant."""
_OURS, _BASE, _THEIRS, _END = b"<<<<<<< ", b"||||||| ", b"=======", b">>>>>>> "


class GitError(BaselineError):
    """Git cannot say what a merge has left."""


class Unmerged(NamedTuple):
    """One file with the content of its versions."""

    path: PurePosixPath
    """Seen from the folder."""
    versions: Versions[bytes]


def unmerged(root: Path) -> list[Unmerged]:
    """Every such file, by path.  Outside of a repository those with markers in them.  Raises ``BaselineError``."""
    found = {one.path: one for one in _by_markers(root)}
    found.update({one.path: one for one in _by_git(root)})
    return [found[path] for path in sorted(found)]


def _by_git(root: Path) -> Iterator[Unmerged]:
    """What git calls unmerged: stage 1 is where the sides parted, 2 is ours, 3 theirs."""
    listed = _git(root, "ls-files", "--unmerged", "-z")
    if listed.returncode:
        return
    stages: dict[PurePosixPath, dict[str, str]] = defaultdict(dict)
    for line in filter(None, os.fsdecode(listed.stdout).split("\0")):
        head, _, name = line.partition("\t")
        _, object_id, stage = head.split(" ")
        stages[PurePosixPath(name)][stage] = object_id
    for path, ids in stages.items():
        yield Unmerged(path, Versions(*(_blob(root, path, ids.get(stage)) for stage in "123")))


def _blob(root: Path, path: PurePosixPath, object_id: str | None) -> bytes | None:
    if object_id is None:
        return None
    done = _git(root, "cat-file", "blob", object_id)
    if done.returncode:
        said = quoted(done.stderr.decode("utf-8", "replace").strip(), 200)
        raise GitError(f"{path}: git cannot read {object_id[:12]}, a version of this file ({said}). Try git fsck")
    return done.stdout


def _by_markers(root: Path) -> Iterator[Unmerged]:
    files = [path for target in layout.targets(root) for _, path in layout.evidence_files(root, target)]
    for path in (root / manifest.FILE, *files):
        content = read_bounded(layout.inside(root, path), MAX_JSON_BYTES)
        versions = sides(content) if content is not None else None
        if versions is not None:
            yield Unmerged(PurePosixPath(path.relative_to(root).as_posix()), versions)


def sides(content: bytes) -> Versions[bytes] | None:
    """The versions that a text with conflict markers was made of; None if it has none.

    Where the sides parted is left out: git puts it there only if it is told to (``merge.conflictStyle``).
    """
    ours: list[bytes] = []
    theirs: list[bytes] = []
    takers: tuple[list[bytes], ...] = (ours, theirs)
    seen = False
    for line in content.splitlines(keepends=True):
        if line.startswith(_OURS):
            takers, seen = (ours,), True
        elif seen and line.startswith(_BASE):
            takers = ()
        elif seen and line.rstrip() == _THEIRS:
            takers = (theirs,)
        elif seen and line.startswith(_END):
            takers = (ours, theirs)
        else:
            for taker in takers:
                taker.append(line)
    return Versions(None, b"".join(ours), b"".join(theirs)) if seen else None


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    own = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    command = ["git", "--literal-pathspecs", *arguments]
    try:
        return subprocess.run(command, cwd=root, env=own, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as problem:
        raise GitError(f"git cannot be started ({problem.strerror or problem}): install it, or see to PATH") from None
