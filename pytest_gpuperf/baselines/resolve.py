"""Resolving what a merge left unmerged in a baseline folder: each file by its records, all of them in one go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from pytest_gpuperf.baselines import layout, manifest, transaction
from pytest_gpuperf.baselines.baseline_errors import BaselineError, UnsafePathError
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.file_types import StaticFile, TimeFile
from pytest_gpuperf.baselines.parsing import MAX_JSON_BYTES, decode, read_bounded
from pytest_gpuperf.baselines.prune import remove_with_empty_folders
from pytest_gpuperf.baselines.three_way import Resolved, Versions, merge_manifests, merge_static, merge_times
from pytest_gpuperf.baselines.unmerged import Unmerged, is_left_without_markers, unmerged
from pytest_gpuperf.baselines.update_lock import Say, silent

_T = TypeVar("_T")


class ResolvedFile(NamedTuple):
    """What became of one file."""

    path: PurePosixPath
    """Seen from the folder."""
    merged: Resolved | None
    """None for a manifest, for a file that is no evidence, which is left to the user, and for one resolved already."""
    written: bool
    already: bool = False
    """It was resolved before, by hand or by this command, and stays as it is."""


class _Done(NamedTuple):
    outcome: ResolvedFile
    content: bytes | None
    """What the file is to have; None if it goes."""


def resolve(root: Path, say: Say = silent) -> list[ResolvedFile]:
    """Merges every unmerged file of ``root`` by its records and writes it; git is told of none of it.

    A file that somebody resolved since, or recorded anew, stays as it is.  All is read and merged before the first
    byte is written.  Raises a ``BaselineError``.
    """
    if not unmerged(root):
        return []
    with transaction.exclusive(root, say):
        done = [_merged(root, one) for one in unmerged(root)]
        written = [one for one in done if one.outcome.written]
        transaction.write_all(
            root, [(root / one.outcome.path, one.content) for one in written if one.content is not None]
        )
        for one in written:
            if one.content is None and (root / one.outcome.path).exists():
                remove_with_empty_folders(root, root / one.outcome.path)
    return [one.outcome for one in done]


def _merged(root: Path, one: Unmerged) -> _Done:
    place = layout.inside(root, root / one.path)
    if one.path.as_posix() == manifest.FILE:
        if _is_resolved(root, one, lambda content: manifest.decoded(content, place)):
            return _already(one)
        found = merge_manifests(_each(one.versions, lambda content: manifest.decoded(content, place)))
        return _Done(ResolvedFile(one.path, None, written=True), manifest.encoded(found))
    if not _is_evidence(root, one.path):
        return _Done(ResolvedFile(one.path, None, written=False), None)
    target, module = one.path.parts[0], _module(one.path)
    if _is_resolved(root, one, lambda content: decode(content, place, target)):
        return _already(one)
    merged = _merged_evidence(one.versions, place, target, module)
    content = None if merged.file is None else canonical_bytes(merged.file)
    return _Done(ResolvedFile(one.path, merged, written=True), content)


def _already(one: Unmerged) -> _Done:
    return _Done(ResolvedFile(one.path, None, written=False, already=True), None)


def _is_resolved(root: Path, one: Unmerged, read: Callable[[bytes], object]) -> bool:
    """Whether the file reads well, and is not what git left there for want of a merge."""
    content = read_bounded(root / one.path, MAX_JSON_BYTES)
    if content is None or is_left_without_markers(root, one, content):
        return False
    try:
        read(content)
    except BaselineError:
        return False
    return True


def _is_evidence(root: Path, path: PurePosixPath) -> bool:
    try:
        return len(path.parts) > 1 and root / path == layout.evidence_path(root, path.parts[0], _module(path))
    except UnsafePathError:
        return False


def _module(path: PurePosixPath) -> str:
    return layout.module_of(PurePosixPath(*path.parts[1:]))


def _merged_evidence(versions: Versions[bytes], place: Path, target: str, module: str) -> Resolved:
    def read(content: bytes, kind: type[_T]) -> _T:
        file = decode(content, place, target)
        assert isinstance(file, kind)  # by the target, which ``decode`` has checked
        return file

    if layout.is_arch(target):
        return merge_static(_each(versions, lambda content: read(content, StaticFile)), target, module)
    return merge_times(_each(versions, lambda content: read(content, TimeFile)), target, module)


def _each(versions: Versions[bytes], read: Callable[[bytes], _T]) -> Versions[_T]:
    return Versions(*(None if content is None else read(content) for content in versions))
