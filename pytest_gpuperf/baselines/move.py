"""Moving records to another name: of a test file, a test or a class with all of its parameters, or one workload."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from pytest_gpuperf.baselines import layout, transaction
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile, TimeFile
from pytest_gpuperf.baselines.merging import by_date, referenced_only
from pytest_gpuperf.baselines.prune import put_back
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.baselines.update_lock import Say, silent
from pytest_gpuperf.model.evidence import Key

_T = TypeVar("_T")
_Tests = dict[str, dict[str, _T]]
_WORKLOAD = re.compile(r"(?P<test>.+) \[(?P<workload>.+)\]")


class MoveRefusedError(BaselineError):
    """The records cannot be moved as asked; nothing was written."""


class RecordName(NamedTuple):
    """A test file, a test in it, a workload of that: as far as it was named."""

    module: str
    test: str = ""
    workload: str = ""

    @classmethod
    def read(cls, text: str, *, of_workload: bool) -> RecordName:
        """``test_a.py``, ``test_a.py::test_x`` or, of one workload, ``test_a.py::test_x [name]``."""
        module, _, test = text.partition("::")
        named = _WORKLOAD.fullmatch(test) if of_workload else None
        return cls(module, named["test"], named["workload"]) if named else cls(module, test)

    def leads(self, key: Key, new: RecordName) -> Key | None:
        """Where a record goes when this place becomes ``new``; None if it stays."""
        if key.module != self.module:
            return None
        if not self.test:
            return Key(module=new.module, test=key.test, workload=key.workload)
        rest = key.test.removeprefix(self.test)
        if not key.test.startswith(self.test) or not (rest == "" or rest.startswith(("[", "::"))):
            return None
        if not self.workload:
            return Key(module=new.module, test=new.test + rest, workload=key.workload)
        if rest or key.workload != self.workload:
            return None
        return Key(module=new.module, test=new.test, workload=new.workload)


class Moved(NamedTuple):
    """One record that got another name."""

    target: str
    old: Key
    new: Key

    def __str__(self) -> str:
        return f"{self.target}: {self.old} -> {self.new}"


def move(store: BaselineStore, old: str, new: str, *, force: bool = False, say: Say = silent) -> list[Moved]:
    """Give the records of ``old`` the name ``new`` for every target, and return what was moved.

    All is read and checked before the first byte is written, and what is written under the new name goes before what
    is taken from the old one.  Raises ``MoveRefusedError`` where there is nothing to move, or a record has the new name
    already and it is not to be overwritten by ``force``; and what reading and writing raise.
    """
    with store.exclusive(say):
        moved, there, here = _plan(store, *_places(store, old, new), force=force)
        if not moved:
            raise MoveRefusedError(
                f"{quoted(old)}: there is no such record in {store.root}. Name a test file, a node id, "
                "or a node id and ' [workload]', as pytest names them from its root"
            )
        transaction.write_all(store.root, there)
        for target, module, left in here:
            kept = referenced_only(left) if isinstance(left, TimeFile) else left
            put_back(store, target, module, None, kept)
    return moved


def _places(store: BaselineStore, old: str, new: str) -> tuple[RecordName, RecordName]:
    """Both names; a name that ends like a workload's may be that of a test."""
    plain = RecordName.read(old, of_workload=False)
    whole = any(plain.leads(key, plain) for key in store.all_keys())
    places = [RecordName.read(text, of_workload=not whole) for text in (old, new)]
    first, second = places
    if bool(first.test) != bool(second.test) or bool(first.workload) != bool(second.workload):
        raise MoveRefusedError(
            f"{quoted(old)} and {quoted(new)} are not of one kind: name two test files, two node ids, or two node ids "
            "with ' [workload]'"
        )
    if first == second:
        raise MoveRefusedError(f"{quoted(old)}: both names are the same, so there is nothing to move")
    layout.module_file(second.module)
    return first, second


_Writes = list[tuple[str, str, EvidenceFile]]


def _plan(
    store: BaselineStore, old: RecordName, new: RecordName, *, force: bool
) -> tuple[list[Moved], list[tuple[Path, bytes]], _Writes]:
    moved: list[Moved] = []
    there: list[tuple[Path, bytes]] = []
    here: _Writes = []
    for target in store.targets():
        file = store.load(target, old.module)
        pairs = {
            key: to for key in store.keys(target) if (to := old.leads(key, new)) is not None and to != key
        }  # fmt: skip
        if file is None or not pairs:
            continue
        moved += [Moved(target, key, to) for key, to in pairs.items()]
        left, gone = _split(file, pairs, old.module)
        if new.module == old.module:
            there += store.changed(old.module, file, _joined(left, gone, force=force))
            continue
        other = store.load(target, new.module)
        there += store.changed(new.module, other, _joined(other or _empty(gone), gone, force=force))
        here.append((target, old.module, left))
    return moved, there, here


def _split(file: EvidenceFile, pairs: dict[Key, Key], module: str) -> tuple[EvidenceFile, EvidenceFile]:
    """What stays, and what goes under its new names."""

    def part(tests: _Tests[_T]) -> tuple[_Tests[_T], _Tests[_T]]:
        stays: _Tests[_T] = {}
        goes: _Tests[_T] = {}
        for test, workloads in tests.items():
            for name, record in workloads.items():
                to = pairs.get(Key(module=module, test=test, workload=name))
                if to is None:
                    stays.setdefault(test, {})[name] = record
                else:
                    goes.setdefault(to.test, {})[to.workload] = record
        return stays, goes

    if isinstance(file, TimeFile):
        stay, go = part(file.tests)
        return msgspec.structs.replace(file, tests=stay), msgspec.structs.replace(file, tests=go)
    both = {toolchain: part(tests) for toolchain, tests in file.toolchains.items()}
    stays, goes = ({name: parts[side] for name, parts in both.items() if parts[side]} for side in (0, 1))
    return msgspec.structs.replace(file, toolchains=stays), msgspec.structs.replace(file, toolchains=goes)


def _empty(like: EvidenceFile) -> EvidenceFile:
    if isinstance(like, TimeFile):
        return TimeFile(target=like.target, sessions=(), tests={}, schema=SCHEMA_VERSION)
    return StaticFile(target=like.target, toolchains={}, schema=SCHEMA_VERSION)


def _joined(file: EvidenceFile, more: EvidenceFile, *, force: bool) -> EvidenceFile:
    """Both files' records.  Raises ``MoveRefusedError`` for one that is in both."""
    if isinstance(file, TimeFile) and isinstance(more, TimeFile):
        sessions = tuple(by_date([*file.sessions, *more.sessions]).values())
        tests = _both(file.tests, more.tests, file.target, force=force)
        return referenced_only(msgspec.structs.replace(file, sessions=sessions, tests=tests))
    assert isinstance(file, StaticFile)
    assert isinstance(more, StaticFile)
    toolchains = dict(file.toolchains)
    for name, static_tests in more.toolchains.items():
        toolchains[name] = _both(toolchains.get(name, {}), static_tests, file.target, force=force)
    return msgspec.structs.replace(file, toolchains=toolchains)


def _both(tests: _Tests[_T], more: _Tests[_T], target: str, *, force: bool) -> _Tests[_T]:
    merged = {test: dict(workloads) for test, workloads in tests.items()}
    for test, workloads in more.items():
        for name, record in workloads.items():
            if name in merged.get(test, {}) and not force:
                raise MoveRefusedError(
                    f"{target}: {test} [{name}] has a record of its own. Nothing was moved: --force overwrites it"
                )
            merged.setdefault(test, {})[name] = record
    return merged
