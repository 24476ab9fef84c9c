"""Finding and removing baselines that no test has any more.

Only the tests of modules that were collected whole can be called unused: a run with ``-k``, a node id or a crash says
nothing about what it did not see.  Workload names are known only when a test runs, so a test is kept or removed whole.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from pytest_gpuperf.baselines import atomic, layout
from pytest_gpuperf.baselines.cubins import stored_cubins
from pytest_gpuperf.baselines.files import EvidenceFile, StaticFile, TimeFile
from pytest_gpuperf.baselines.merging import referenced_only
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.evidence import Key

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, order=True)
class Unused:
    """One thing that may go.  ``str()`` names it for people."""

    kind: Literal["test", "file", "cubin"]
    path: Path
    target: str = ""
    """``sm_90`` or ``nvidia-h200``; empty for a cubin."""
    module: str = ""
    test: str = ""
    """The part of the node id after the module, for the kind ``test``."""

    def __str__(self) -> str:
        if self.kind == "test":
            return f"{self.target}: {self.module}::{self.test} (in {self.path})"
        return f"{self.path} (" + ("no tests in it)" if self.kind == "file" else "machine code that no baseline uses)")


def unused(
    store: BaselineStore, collected: Collection[Key | str], *, modules_collected: Collection[str]
) -> list[Unused]:
    """What pruning would remove, sorted.

    ``collected`` has the node ids of all tests (or keys of workloads); ``modules_collected`` the modules of which every
    test was collected.  A module whose file is gone may be listed there too, and then loses everything.  Raises what
    reading raises: while one file cannot be read, nothing can be called unused.
    """
    alive = {entry.node_id if isinstance(entry, Key) else entry for entry in collected}
    store.forget()
    found = []
    referenced: set[str] = set()
    for path, target, module, file in _evidence(store):
        gone = set()
        if module in modules_collected:
            gone = {test for test in _tests(file) if f"{module}::{test}" not in alive}
            found += [Unused("test", path, target, module, test) for test in gone]
            found += [] if _tests(file) else [Unused("file", path, target, module)]
        referenced |= _cubins(file, without=gone)
    found += [Unused("cubin", path) for sha256, path in stored_cubins(store.root).items() if sha256 not in referenced]
    return sorted(found)


def referenced_cubins(store: BaselineStore) -> frozenset[str]:
    """SHA-256 of every cubin that some time record names."""
    return frozenset[str]().union(*(_cubins(file) for _, _, _, file in _evidence(store)))


def prune(store: BaselineStore, entries: Iterable[Unused]) -> list[Unused]:
    """Removes what ``unused`` found and returns what it removed: a cubin that got used in between stays.

    Evidence goes before the machine code that it names, so that an interruption leaves no reference dangling.  Raises
    ``BaselineWriteError``, ``BaselineLockedError`` and what reading raises.
    """
    groups: dict[tuple[str, str], list[Unused]] = defaultdict(list)
    cubins = []
    for entry in entries:
        cubins.append(entry) if entry.kind == "cubin" else groups[entry.target, entry.module].append(entry)
    removed: list[Unused] = []
    with atomic.exclusive(store.root):
        store.forget()
        atomic.clean_leftovers(store.root)
        try:
            for (target, module), gone in sorted(groups.items()):
                removed += _prune_file(store, target, module, gone)
            store.forget()
            removed += _prune_cubins(store, cubins)
        finally:
            store.forget()
    return removed


def _evidence(store: BaselineStore) -> Iterator[tuple[Path, str, str, EvidenceFile]]:
    """Path, target, module and content of every evidence file."""
    for target in layout.targets(store.root):
        for module, path in layout.evidence_files(store.root, target):
            file = store.load(target, module)
            if file is not None:
                yield path, target, module, file


def _prune_file(store: BaselineStore, target: str, module: str, gone: list[Unused]) -> list[Unused]:
    old = store.load(target, module)
    if old is None:
        return []
    present = _tests(old)
    new = _without(old, {entry.test for entry in gone})
    if _tests(new):
        atomic.write_all(store.changed(module, old, new))
    else:
        _remove(store.root, layout.evidence_path(store.root, target, module))
    return [entry for entry in gone if entry.test in present or (entry.kind == "file" and not present)]


def _prune_cubins(store: BaselineStore, cubins: Iterable[Unused]) -> list[Unused]:
    needed = referenced_cubins(store)
    removed = []
    for sha256, path in stored_cubins(store.root).items():
        entry = Unused("cubin", path)
        if entry in cubins and sha256 not in needed:
            _remove(store.root, path)
            removed.append(entry)
    return removed


def _remove(root: Path, path: Path) -> None:
    """Deletes a file and the folders that it leaves empty."""
    atomic.remove(path)
    folder = path.parent
    while folder != root and not any(folder.iterdir()):
        atomic.remove_folder(folder)
        folder = folder.parent


def _tests(file: EvidenceFile) -> set[str]:
    if isinstance(file, StaticFile):
        return {test for tests in file.toolchains.values() for test in tests}
    return set(file.tests)


def _without(file: EvidenceFile, gone: Collection[str]) -> EvidenceFile:
    if isinstance(file, StaticFile):
        kept = {name: _others(tests, gone) for name, tests in file.toolchains.items()}
        return msgspec.structs.replace(file, toolchains={name: tests for name, tests in kept.items() if tests})
    return referenced_only(msgspec.structs.replace(file, tests=_others(file.tests, gone)))


def _others(tests: dict[str, _T], gone: Collection[str]) -> dict[str, _T]:
    return {test: workloads for test, workloads in tests.items() if test not in gone}


def _cubins(file: EvidenceFile, without: Collection[str] = ()) -> set[str]:
    """Those that the records of a file name, apart from some tests'."""
    if not isinstance(file, TimeFile):
        return set()
    kept = _others(file.tests, without).values()
    return {record.cubin for workloads in kept for record in workloads.values() if record.cubin}
