"""The baselines as they are on disk or were at a revision: which files there are, and what they hold.

Files are told apart by git's hash of their content, so that what is equal need not be decoded.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, UnreadableBaselineError, UnsafePathError, quoted
from pytest_gpuperf.baselines.file_types import EvidenceFile
from pytest_gpuperf.baselines.git_objects import GitFolder, ObjectReader
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.parsing import MAX_JSON_BYTES, decode, read_bounded

_T = TypeVar("_T")


class Place(NamedTuple):
    """What an evidence file is of."""

    target: str
    module: str


MANIFEST = Place("", manifest.FILE)
"""The place of what is of no target."""


class Snapshot(ABC):
    """One state of the folder of the baselines."""

    def __init__(self, name: str) -> None:
        self.name = name
        """``HEAD~1``, or what else messages call it."""
        self.ids: dict[Place, str] = {}
        """The content's hash of every file that could be listed."""
        self.skipped: dict[PurePosixPath, str] = {}
        """What is said of each file that cannot be read, by its path in the folder."""

    @abstractmethod
    def content(self, place: Place) -> bytes:
        """The bytes of a file that is listed.  Raises ``BaselineError``."""

    @abstractmethod
    def path(self, place: Place) -> Path:
        """What a message calls the file."""

    def file(self, place: Place) -> EvidenceFile | None:
        """The file, if it is listed; None, with a line in ``skipped``, if it cannot be read."""
        return self._read(place, lambda content, path: decode(content, path, place.target))

    def manifest(self) -> Manifest | None:
        """The same of the manifest."""
        return self._read(MANIFEST, manifest.decoded)

    def _read(self, place: Place, decoded: Callable[[bytes, Path], _T]) -> _T | None:
        try:
            return decoded(self.content(place), self.path(place)) if place in self.ids else None
        except BaselineError as error:
            self.skipped[relative_path(place)] = self._remark(str(self.path(place)), error)
            return None

    def _remark(self, path: str, error: BaselineError) -> str:
        if isinstance(error, UnreadableBaselineError):  # whose remedy is for files on disk
            return f"{path} cannot be read: {error.problem}"
        return str(error)


class AtRevision(Snapshot):
    """The baselines at a commit."""

    def __init__(self, name: str, folder: GitFolder, reader: ObjectReader) -> None:
        """``name``: a revision.  Raises ``RevisionError``."""
        super().__init__(name)
        self._folder = folder
        self._reader = reader
        for entry in folder.entries(folder.commit(name)):
            try:
                place = _place_of(entry.path)
                if place is not None and entry.problem:
                    raise UnreadableBaselineError(Path(str(entry.path)), entry.problem)
                if place is not None:
                    self.ids[place] = entry.object_id
            except BaselineError as error:
                self.skipped[entry.path] = self._remark(quoted(self._named(entry.path), 200), error)

    def path(self, place: Place) -> Path:
        return Path(self._named(relative_path(place)))

    def _named(self, path: PurePosixPath) -> str:
        """As ``git show`` takes it."""
        return f"{self.name}:{self._folder.inside / path}"

    def content(self, place: Place) -> bytes:
        limit = _limit(place)
        content = self._reader.read(self.ids[place], limit)
        if content is None:
            raise UnreadableBaselineError(self.path(place), "git lacks its content (git fetch, or git fsck)")
        if len(content) > limit:
            raise UnreadableBaselineError(self.path(place), f"it is larger than {limit // 1024 // 1024} MB")
        return content


class OnDisk(Snapshot):
    """The baselines as they lie in their folder."""

    def __init__(self, root: Path, hash_name: str) -> None:
        """``hash_name``: ``sha1`` or ``sha256``, as git names the repository's files.  A missing folder is empty."""
        super().__init__("the working tree")
        self._root = root
        for path in self._listed():
            inside = PurePosixPath(path.relative_to(root).as_posix())
            try:
                place = _place_of(inside)
                if place is not None:
                    content = read_bounded(layout.inside(root, path), _limit(place))
                    if content is not None:
                        self.ids[place] = object_id(content, hash_name)
            except BaselineError as error:
                self.skipped[inside] = self._remark(quoted(str(path), 200), error)

    def _listed(self) -> Iterator[Path]:
        for target in layout.targets(self._root):
            yield from sorted((self._root / target).rglob("*.json"))
        if (self._root / manifest.FILE).exists():
            yield self._root / manifest.FILE

    def path(self, place: Place) -> Path:
        return self._root / relative_path(place)

    def content(self, place: Place) -> bytes:
        content = read_bounded(self.path(place), _limit(place))
        if content is None:
            raise UnreadableBaselineError(self.path(place), "it went away while it was read")
        return content


def object_id(content: bytes, hash_name: str) -> str:
    """Git's name of a file with this content."""
    return hashlib.new(hash_name, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _limit(place: Place) -> int:
    return manifest.MAX_BYTES if place == MANIFEST else MAX_JSON_BYTES


def relative_path(place: Place) -> PurePosixPath:
    """Where the file lies in the folder.  Raises ``UnsafePathError``."""
    return PurePosixPath(manifest.FILE) if place == MANIFEST else place.target / layout.module_file(place.module)


def _place_of(path: PurePosixPath) -> Place | None:
    """What a file of the folder is of; None for cubins and others.  Raises ``UnsafePathError``."""
    if str(path) == manifest.FILE:
        return MANIFEST
    if str(path) == ".":
        raise UnsafePathError("it is no folder")
    target, rest = path.parts[0], path.parts[1:]
    if not rest or path.suffix != ".json" or not (layout.is_arch(target) or layout.is_device(target)):
        return None
    place = Place(target, layout.module_of(PurePosixPath(*rest)))
    return place if relative_path(place) == path else None
