"""Files of a baseline folder that a merge could not finish, with what each side has: from git, or from markers."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.git_objects import RevisionError, run_git, said
from pytest_gpuperf.baselines.parsing import MAX_JSON_BYTES, read_bounded
from pytest_gpuperf.baselines.three_way import Versions

_OURS, _BASE, _THEIRS, _END = b"<<<<<<< ", b"||||||| ", b"=======", b">>>>>>> "


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
    listed = run_git(root, "ls-files", "--unmerged", "-z")
    if listed.returncode:
        return
    stages: dict[PurePosixPath, dict[str, str]] = defaultdict(dict)
    for line in filter(None, os.fsdecode(listed.stdout).split("\0")):
        head, _, name = line.partition("\t")
        _, object_id, stage = head.split(" ")
        stages[PurePosixPath(name)][stage] = object_id
    for path, ids in stages.items():
        yield Unmerged(path, Versions(*(_blob(root, path, ids.get(stage)) for stage in "123")))


def is_left_without_markers(root: Path, one: Unmerged, content: bytes) -> bool:
    """Whether git itself left this content: the side that is there, or ours where an attribute forbids a text merge."""
    _, ours, theirs = one.versions
    plain = content.replace(b"\r\n", b"\n")
    if ours is None or theirs is None:
        return plain in (ours, theirs)
    told = run_git(root, "check-attr", "-z", "merge", "--", str(one.path)).stdout.split(b"\0")
    return plain == ours and told[2:3] in ([b"unset"], [b"binary"])


def _blob(root: Path, path: PurePosixPath, object_id: str | None) -> bytes | None:
    if object_id is None:
        return None
    done = run_git(root, "cat-file", "blob", object_id)
    if done.returncode:
        why = f"git cannot read {object_id[:12]}, a version of this file ({said(done)})"
        raise RevisionError(f"{path}: {why}. Try git fsck")
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
