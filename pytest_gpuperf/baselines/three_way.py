"""Baselines of two branches and of where they parted, merged record by record.  Pure.

A record that one side changed is taken from it.  One that both changed stays as ours, and is named: neither side has
evidence of the merged code.  Rounds of equal records are kept of both; of their counters and figures each is taken from
the side that changed it, and stays as ours where both did.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile, TimeFile
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.merging import merge_time
from pytest_gpuperf.baselines.rounding import with_counts
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import Key, StaticRecord, TimeRecord
from pytest_gpuperf.model.verdict import BESIDE_FIELDS

_Name = tuple[str, str, str]
"""Toolchain, empty for a time; test; workload."""
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Versions(Generic[_T]):
    """What git has of one file; None where it was not there."""

    base: _T | None
    """Where the sides parted; None as well if that is not known."""
    ours: _T | None
    theirs: _T | None

    def __iter__(self) -> Iterator[_T | None]:
        return iter((self.base, self.ours, self.theirs))


class Resolved(NamedTuple):
    """One file, merged."""

    file: EvidenceFile | None
    """None if no record is left."""
    changed_by_both: tuple[Key, ...] = ()
    """Records that are ours, and should be recorded anew."""
    removed_by_one: tuple[Key, ...] = ()
    """Records that one side removed and the other changed; they are as on our side."""


@dataclasses.dataclass(frozen=True)
class _Picked(Generic[_T]):
    records: dict[_Name, _T]
    differ: list[_Name]
    """Changed by both sides; ours is in ``records``, if there is one."""


def merge_static(versions: Versions[StaticFile], target: str, module: str) -> Resolved:
    """Static evidence of one architecture and module."""
    base, ours, theirs = (_by_name(file.records() if file else ()) for file in versions)
    picked = _pick(base, ours, theirs)
    toolchains: dict[str, dict[str, dict[str, StaticRecord]]] = {}
    for (toolchain, test, workload), record in picked.records.items():
        toolchains.setdefault(toolchain, {}).setdefault(test, {})[workload] = record
    file = StaticFile(target=target, toolchains=toolchains, schema=SCHEMA_VERSION)
    return _resolved(file, module, picked.differ, ours, theirs)


def merge_times(versions: Versions[TimeFile], target: str, module: str) -> Resolved:
    """Time evidence of one GPU model and module.  Raises ``UnwritableEvidenceError``."""
    base, ours, theirs = (_by_name(file.records() if file else ()) for file in versions)
    picked = _pick(base, ours, theirs)
    alike = {name for name in picked.differ if name in ours and name in theirs and _alike(ours[name], theirs[name])}
    tests: dict[str, dict[str, TimeRecord]] = {}
    for (_, test, workload), record in picked.records.items():
        tests.setdefault(test, {})[workload] = record
    sessions = [file.sessions if file else () for file in versions]
    file = merge_time(
        TimeFile(target=target, sessions=sessions[1], tests=tests, schema=SCHEMA_VERSION),
        target,
        [(_key(module, name), _changed_by(theirs[name], base.get(name), ours[name])) for name in sorted(alike)],
        sessions[2],
    )
    return _resolved(file, module, [name for name in picked.differ if name not in alike], ours, theirs)


def merge_manifests(versions: Versions[Manifest]) -> Manifest:
    """Of each list what no side took off; of each other field what one side changed, else ours.

    There is one of them at least.  An architecture that a run of one side was asked for is not named by kernels alone.
    """
    base, ours, theirs = versions
    one = ours or theirs
    assert one is not None
    fields: dict[str, object] = {}
    for name in one.__struct_fields__:
        was, mine, other = (getattr(file, name, None) for file in (base, ours or one, theirs or one))
        fields[name] = (
            _names(was or (), mine, other)
            if isinstance(mine, tuple) and isinstance(other, tuple)
            else other if mine == was else mine
        )  # fmt: skip
    merged = msgspec.structs.replace(one, **fields)
    asked = {
        arch for side in (ours, theirs) if side for arch in side.architectures if arch not in side.named_by_kernels
    }
    return msgspec.structs.replace(
        merged, named_by_kernels=tuple(arch for arch in merged.named_by_kernels if arch not in asked)
    )


def _names(base: tuple[str, ...], ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    kept = {name for name in {*ours, *theirs} if (name in ours and name in theirs) or name not in base}
    return tuple(sorted(kept, key=lambda name: layout.arch_order(name) if layout.is_arch(name) else (0, name)))


def _pick(base: Mapping[_Name, _T], ours: Mapping[_Name, _T], theirs: Mapping[_Name, _T]) -> _Picked[_T]:
    picked = _Picked[_T]({}, [])
    for name in sorted({*ours, *theirs, *base}):
        was, mine, other = base.get(name), ours.get(name), theirs.get(name)
        if mine not in (was, other) and other != was:
            picked.differ.append(name)
        record = other if mine == was else mine
        if record is not None:
            picked.records[name] = record
    return picked


def _alike(ours: TimeRecord, theirs: TimeRecord) -> bool:
    """Whether the two differ by what was measured alone: rounds of such records can stand side by side.

    Never of callables, whose machine code is not known.
    """
    bare = [
        msgspec.structs.replace(one, rounds=(), counters={}, counter_ranges={}, beside=None) for one in (ours, theirs)
    ]
    return bare[0] == bare[1] and ours.identity.same_execution(theirs.identity)


def _changed_by(theirs: TimeRecord, was: TimeRecord | None, ours: TimeRecord) -> TimeRecord:
    """Their record without the counters and figures beside its time that it only kept, and those that ours changed."""
    base = Counts({}) if was is None else Counts.of(was)
    counts = Counts.of(theirs)
    counts = Counts({}) if counts == base else replaced(counts, _changed_counts(Counts.of(ours), base))
    if theirs.beside is None:
        return with_counts(theirs, counts)
    old, mine = (Beside() if one is None or one.beside is None else one.beside for one in (was, ours))
    kept = {
        name: None
        for name in BESIDE_FIELDS.values()
        if getattr(theirs.beside, name) == getattr(old, name) or getattr(mine, name) not in (None, getattr(old, name))
    }
    return with_counts(msgspec.structs.replace(theirs, beside=msgspec.structs.replace(theirs.beside, **kept)), counts)


def _changed_counts(counts: Counts, base: Counts) -> Counts:
    """Those that are not as in ``base``."""
    names = {
        name
        for name, value in counts.values.items()
        if (value, counts.ranges.get(name)) != (base.values.get(name), base.ranges.get(name))
    }
    values = {name: value for name, value in counts.values.items() if name in names}
    return Counts(values, {name: ends for name, ends in counts.ranges.items() if name in names})


def _resolved(
    file: EvidenceFile, module: str, differ: list[_Name], ours: Mapping[_Name, object], theirs: Mapping[_Name, object]
) -> Resolved:
    both = {_key(module, name) for name in differ if name in ours and name in theirs}
    removed = {_key(module, name) for name in differ} - both
    return Resolved(file if any(file.parts) else None, tuple(sorted(both)), tuple(sorted(removed)))


def _key(module: str, name: _Name) -> Key:
    return Key(module=module, test=name[1], workload=name[2])


def _by_name(records: Iterable[tuple[str, str, str, _T]]) -> dict[_Name, _T]:
    return {(toolchain, test, workload): record for toolchain, test, workload, record in records}
