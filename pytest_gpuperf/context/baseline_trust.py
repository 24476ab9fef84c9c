"""Which baselines this run believes: all of them on a desk, under CI those that the change under test did not bring.

A cubin is code that nobody can review, so one that a change brought along is not launched.  Nor is a commit run that
only the change has, or a record of the change's taken for the reading of machine code, or its word on how a kernel was
launched.  Comparing needs no trust.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.files import read_bounded
from pytest_gpuperf.baselines.git_objects import GitFolder, RevisionError
from pytest_gpuperf.baselines.layout import evidence_path
from pytest_gpuperf.baselines.project_base import ProjectBase, descends, holds, project_base
from pytest_gpuperf.baselines.records import Name, RecordFile
from pytest_gpuperf.baselines.store import Baselines
from pytest_gpuperf.config.options import Options
from pytest_gpuperf.model.evidence import Key, TimeRecord

_SHA1_DIGITS = 40
"""In the name of a commit; git repositories of the other kind have 64."""


class BaselineTrust:
    """Of one process; git is asked at the first question that needs it, once."""

    def __init__(self, options: Options, folder: Path, *, compiled_here: bool = False) -> None:
        """``folder`` lies in the repository of the change under test.

        ``compiled_here``: what stands for baselines was compiled by this run, from the sources of a revision.
        """
        self._everything = not options.ci or options.trust_cubins or compiled_here
        self._folder = folder
        self._believed: dict[Path, bool] = {}
        self._own: dict[Path, RecordFile[TimeRecord] | None] = {}

    @cached_property
    def _base(self) -> ProjectBase | str:
        """The project's own state, or why it is not known."""
        try:
            return project_base(self._folder)
        except RevisionError as problem:
            return str(problem)

    def why_not_launched(self, sha256: str) -> str:
        """Why the stored cubin of this hash is not to be launched, in the same words for all; empty if it may be."""
        return self._why_not("its baseline's cubin", lambda base: sha256 in base.cubins)

    def why_not_run(self, commit: str) -> str:
        """Why tests of a commit on record, a full id, are not to be run; empty if they may be."""
        return self._why_not("the commit of its record", lambda base: holds(self._folder, base, commit))

    def _why_not(self, what: str, is_known: Callable[[ProjectBase], bool]) -> str:
        if self._everything:
            return ""
        if isinstance(self._base, str):
            return f"nothing tells whether {what} came with this change ({self._base})"
        return "" if is_known(self._base) else f"{what} came with this change (it is not in {self._base.name})"

    def believes(self, path: Path) -> bool:
        """Whether a file of baselines has the project's own content, wherever that lies there."""
        if self._everything:
            return True
        if path not in self._believed:
            self._believed[path] = self._is_known(path)
        return self._believed[path]

    def _is_known(self, path: Path) -> bool:
        if isinstance(self._base, str):
            return False
        try:
            content = read_bounded(path)
        except BaselineError:  # for the judge to tell
            return False
        hash_name = "sha1" if len(self._base.commit) == _SHA1_DIGITS else "sha256"
        return content is None or _object_id(content, hash_name) in self._base.records

    def why_not_launched_so(self, root: Path, target: str, key: Key, record: TimeRecord) -> str:
        """Why a kernel of the folder ``root`` is not to be launched as its record says; empty if it may be.

        An update writes down the launch of its own time, so another one than today's is in the project's own records.
        """
        file = evidence_path(root, target, key.module)
        if self.believes(file) or self._own_launch(root, file, key) == _launch(record):
            return ""
        base = f"{self._base} says otherwise" if isinstance(self._base, str) else f"it is not in {self._base.name}"
        return f"the launch on record came with this change ({base})"

    def why_not_recorded_at(self, root: Path, target: str, key: Key, commit: str) -> str:
        """Why tests of an older ``commit`` do not stand for the record of a callable; empty if they may.

        A new recording is of the commit that the project's own was taken at, or of a later one.
        """
        file = evidence_path(root, target, key.module)
        own = None if self.believes(file) else self._own_file(root, file, key.module)
        record = own.records.get(Name(key.test, key.workload)) if own is not None else None
        if own is None or record is None or isinstance(self._base, str):
            return ""
        named = {one.session for one in record.rounds}
        latest = max((one for one in own.sessions.values() if one.id in named), key=lambda one: one.date, default=None)
        if latest is None or not latest.commit or descends(self._folder, commit, latest.commit):
            return ""
        return f"the commit of its record came with this change (in {self._base.name} it is {latest.commit[:12]})"

    def _own_launch(self, root: Path, file: Path, key: Key) -> tuple[object, ...] | None:
        """The launch that the project has on record of a workload on the GPU model that ``file`` is of."""
        own = self._own_file(root, file, key.module)
        found = own.records.get(Name(key.test, key.workload)) if own is not None else None
        return None if found is None else _launch(found)

    def _own_file(self, root: Path, file: Path, module: str) -> RecordFile[TimeRecord] | None:
        """What the project has of a file of times; None where it has none, or it is not known."""
        if file not in self._own:
            self._own[file] = self._at_base(root, file.relative_to(root).parts[0], module)
        return self._own[file]

    def _at_base(self, root: Path, target: str, module: str) -> RecordFile[TimeRecord] | None:
        if isinstance(self._base, str):
            return None
        try:
            return Baselines(GitFolder(root).files(self._base.commit), self._base.name).load(target, module)
        except BaselineError:  # a submodule, whose commits are others
            return None


def _object_id(content: bytes, hash_name: str) -> str:
    """Git's name of a file with this content."""
    return hashlib.new(hash_name, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _launch(record: TimeRecord) -> tuple[object, ...]:
    identity = record.identity
    return record.grid, record.block, record.dynamic_shared_bytes, identity.launch, identity.arguments
