"""Finding and removing baselines that no test has any more.

Only tests of modules that were collected whole can be called unused.  Workload names are known only when a test runs:
unless a caller who saw it run names workloads that are gone, a test is kept or removed whole.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from pytest_gpuperf.baselines import layout, manifest, transaction
from pytest_gpuperf.baselines.cubin_store import stored_cubins
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile
from pytest_gpuperf.baselines.merging import referenced_only
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.baselines.update_lock import Say, silent
from pytest_gpuperf.model.evidence import Key

_T = TypeVar("_T")
_Workload = tuple[str, str]
"""Test and name."""


@dataclasses.dataclass(frozen=True, order=True)
class Unused:
    """One thing that may go.  ``str()`` names it for people."""

    kind: Literal["test", "workload", "file", "cubin", "target", "toolchain"]
    path: Path
    target: str = ""
    """``sm_90`` or ``nvidia-h200``; empty for a cubin."""
    module: str = ""
    test: str = ""
    """The part of the node id after the module, for the kinds ``test`` and ``workload``."""
    workload: str = ""
    toolchain: str = ""

    def __str__(self) -> str:
        if self.kind == "test":
            return f"{self.target}: {self.module}::{self.test} (in {self.path})"
        if self.kind == "workload":
            return f"{self.target}: {self.module}::{self.test} [{self.workload}] (in {self.path})"
        if self.kind == "toolchain":
            return f"{self.target}: records of {self.toolchain}, which the manifest does not declare (in {self.path})"
        if self.kind == "target":
            return f"{self.target}: named in {self.path}, and has no records: they were deleted, or are still to come"
        return f"{self.path} (" + ("no tests in it)" if self.kind == "file" else "machine code that no baseline uses)")


def unused(
    store: BaselineStore,
    collected: Collection[Key | str],
    *,
    modules_collected: Collection[str],
    workloads_gone: Collection[tuple[str, Key]] = (),
) -> list[Unused]:
    """Everything that pruning would remove, sorted.

    ``collected`` has the node ids of all tests (or keys of workloads); ``modules_collected`` the modules of which every
    test was collected, those whose file is gone included.  ``workloads_gone`` are workloads, by target, that tests
    which are still there no longer have.  Raises what reading raises: then nothing can be called unused.
    """
    alive = {entry.node_id if isinstance(entry, Key) else entry for entry in collected}
    store.forget()
    found = []
    referenced: set[str] = set()
    declared = store.toolchains()
    for path, target, module, file in _evidence(store):
        tests: set[str] = set()
        workloads: set[_Workload] = set()
        if module in modules_collected:
            tests = {test for test in _tests(file) if f"{module}::{test}" not in alive}
            named = {(key.test, key.workload) for of, key in workloads_gone if (of, key.module) == (target, module)}
            workloads = {(test, name) for test, name in named & _workloads(file) if test not in tests}
            found += [Unused("test", path, target, module, test) for test in tests]
            found += [Unused("workload", path, target, module, test, name) for test, name in workloads]
            found += [] if _tests(file) else [Unused("file", path, target, module)]
        undeclared = _undeclared(file, declared)
        found += [Unused("toolchain", path, target, module, toolchain=name) for name in undeclared]
        referenced |= _cubins(_without(file, tests, workloads, undeclared))
    found += [Unused("cubin", path) for path, sha256 in stored_cubins(store.root).items() if sha256 not in referenced]
    found += [Unused("target", store.root / manifest.FILE, target) for target in manifest.gone(store.root)]
    return sorted(found)


def referenced_cubins(store: BaselineStore) -> frozenset[str]:
    """SHA-256 of every cubin that some record names."""
    return frozenset[str]().union(*(_cubins(file) for _, _, _, file in _evidence(store)))


def prune(store: BaselineStore, entries: Iterable[Unused], say: Say = silent) -> list[Unused]:
    """Removes what ``unused`` found and returns what it removed: a cubin that got used in between stays.

    Evidence goes before the machine code that it names.  Raises ``BaselineWriteError``, ``BaselineLockedError`` and
    what reading raises.
    """
    groups: dict[tuple[str, str], list[Unused]] = defaultdict(list)
    cubins, targets = [], []
    for entry in entries:
        if entry.kind == "cubin":
            cubins.append(entry)
        elif entry.kind == "target":
            targets.append(entry)
        else:
            groups[entry.target, entry.module].append(entry)
    removed: list[Unused] = []
    with store.exclusive(say):
        for (target, module), gone in sorted(groups.items()):
            removed += _prune_file(store, target, module, gone)
        store.forget()
        removed += _prune_cubins(store, cubins)
        removed += _prune_manifest(store, targets, {target for target, _ in groups})
    return removed


def _evidence(store: BaselineStore) -> Iterator[tuple[Path, str, str, EvidenceFile]]:
    """Path, target, module and content of every evidence file."""
    for target in store.targets():
        for module, path in layout.evidence_files(store.root, target):
            file = store.load(target, module)
            if file is not None:
                yield path, target, module, file


def _prune_file(store: BaselineStore, target: str, module: str, gone: list[Unused]) -> list[Unused]:
    old = store.load(target, module)
    if old is None:
        return []
    present, workloads = _tests(old), _workloads(old)
    new = _without(
        old, {entry.test for entry in gone if entry.kind == "test"},
        {(entry.test, entry.workload) for entry in gone if entry.kind == "workload"},
        {entry.toolchain for entry in gone if entry.kind == "toolchain"},
    )  # fmt: skip
    put_back(store, target, module, old, new)
    return [
        entry
        for entry in gone
        if (entry.kind == "test" and entry.test in present)
        or (entry.kind == "workload" and (entry.test, entry.workload) in workloads)
        or (entry.kind == "file" and not present)
        or (entry.kind == "toolchain" and isinstance(old, StaticFile) and entry.toolchain in old.toolchains)
    ]


def _prune_cubins(store: BaselineStore, cubins: Iterable[Unused]) -> list[Unused]:
    needed = referenced_cubins(store)
    removed = []
    for path, sha256 in stored_cubins(store.root).items():
        entry = Unused("cubin", path)
        if entry in cubins and sha256 not in needed:
            remove_with_empty_folders(store.root, path)
            removed.append(entry)
    return removed


def _prune_manifest(store: BaselineStore, targets: Iterable[Unused], emptied: Collection[str]) -> list[Unused]:
    """Takes off the manifest what is gone from the folder: before, or by the removal of its last file just now."""
    gone = manifest.gone(store.root)
    removed = [entry for entry in targets if entry.target in gone]
    names = {entry.target for entry in removed} | set(emptied).intersection(gone)
    transaction.write_all(store.root, manifest.without_targets(store.root, names))
    left = manifest.read(store.root)
    if left is not None and not left.targets:
        transaction.remove(store.root / manifest.FILE)
    return removed


def put_back(store: BaselineStore, target: str, module: str, old: EvidenceFile | None, left: EvidenceFile) -> None:
    """Leave in a file what is ``left`` of it; none is left without records."""
    if any(left.parts):
        transaction.write_all(store.root, store.changed(module, old, left))
    else:
        remove_with_empty_folders(store.root, layout.evidence_path(store.root, target, module))


def remove_with_empty_folders(root: Path, path: Path) -> None:
    """Deletes a file and the folders that it leaves empty."""
    transaction.remove(path)
    folder = path.parent
    while folder != root and not any(folder.iterdir()):
        transaction.remove_folder(folder)
        folder = folder.parent


def _tests(file: EvidenceFile) -> set[str]:
    return {test for tests in file.parts for test in tests}


def _workloads(file: EvidenceFile) -> set[_Workload]:
    return {(test, name) for _, test, name, _ in file.records()}


def _undeclared(file: EvidenceFile, declared: Collection[str]) -> list[str]:
    """Toolchains of a file that are not among those that the team has declared."""
    names = set(file.toolchains).difference(declared) if isinstance(file, StaticFile) else set()
    return sorted(filter(manifest.is_toolchain, names))  # an unknown compiler can be declared by nobody


def _without(
    file: EvidenceFile, tests: Collection[str], workloads: Collection[_Workload], toolchains: Collection[str] = ()
) -> EvidenceFile:
    if isinstance(file, StaticFile):
        files = {name: of for name, of in file.toolchains.items() if name not in toolchains}
        kept = {name: _others(of, tests, workloads) for name, of in files.items()}
        return msgspec.structs.replace(file, toolchains={name: of for name, of in kept.items() if of})
    return referenced_only(msgspec.structs.replace(file, tests=_others(file.tests, tests, workloads)))


def _others(
    tests: dict[str, dict[str, _T]], gone: Collection[str], workloads: Collection[_Workload]
) -> dict[str, dict[str, _T]]:
    kept = {
        test: {name: record for name, record in of.items() if (test, name) not in workloads}
        for test, of in tests.items()
        if test not in gone
    }
    return {test: of for test, of in kept.items() if of}


def _cubins(file: EvidenceFile) -> set[str]:
    return {record.cubin for *_, record in file.records() if record.cubin}
