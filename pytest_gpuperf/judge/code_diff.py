"""How the machine code of a workload differs between two states of the baselines, in the figures of the gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from pytest_gpuperf.judge.static_rules import OCCUPANCY, REGISTERS, SPILL_LOADS, SPILL_STORES, less_is_better
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.model.workload_records import WorkloadRecords

SPILLED = "spilled bytes"
_FIRST = (REGISTERS.what, SPILLED, OCCUPANCY.what)
"""Figures that a reader asks for first; the others follow in the order of the gate's rules."""


class CodeDiff(NamedTuple):
    """How the machine code of a workload differs for one architecture."""

    arch: str
    toolchain: str
    """Of the later state."""
    changes: tuple[Change, ...]
    """Empty: the machine code differs, and no figure of it."""


def code_diffs(key: Key, old: WorkloadRecords, new: WorkloadRecords) -> tuple[CodeDiff, ...]:
    """One for each architecture and toolchain that differs."""
    found = [_code_diff(key, arch, toolchains, *records) for arch, toolchains, *records in _code_pairs(old, new)]
    return tuple(one for one in found if one is not None)


def _code_pairs(
    old: WorkloadRecords, new: WorkloadRecords
) -> Iterator[tuple[str, tuple[str, str], StaticRecord, StaticRecord]]:
    """Records of one toolchain; and of two, where an architecture has lost the one and gained the other."""
    lost, gained = old.static.keys() - new.static.keys(), new.static.keys() - old.static.keys()
    for arch, toolchain in sorted(old.static.keys() & new.static.keys()):
        one, other = old.static[arch, toolchain], new.static[arch, toolchain]
        if one != other:
            yield arch, (toolchain, toolchain), one, other
    for arch in sorted({arch for arch, _ in lost}):
        was, now = [at for at in lost if at[0] == arch], [at for at in gained if at[0] == arch]
        if len(was) == len(now) == 1:
            yield arch, (was[0][1], now[0][1]), old.static[was[0]], new.static[now[0]]


def _code_diff(
    key: Key, arch: str, toolchains: tuple[str, str], old: StaticRecord, new: StaticRecord
) -> CodeDiff | None:
    """None if the code, its launch and its figures are the same; an edited record may have others of the same code."""
    unhashed = msgspec.structs.replace(old, profile=msgspec.structs.replace(old.profile, code_hash=""))
    changes = _with_spilled_bytes(old, new, compare_static(key, arch, unhashed, new).changes)
    changes += text_changes(("kernel", old.kernel, new.kernel), ("configuration", old.config, new.config))
    if old.grid is not None and new.grid is not None:
        changes += text_changes(("grid", _dimensions(old.grid), _dimensions(new.grid)))
    if not changes and old.profile.code_hash == new.profile.code_hash:
        return None
    changes.sort(key=lambda change: _FIRST.index(change.what) if change.what in _FIRST else len(_FIRST))
    return CodeDiff(arch, toolchains[1], (*text_changes(("compiler", *toolchains)), *changes))


def _with_spilled_bytes(old: StaticRecord, new: StaticRecord, changes: Iterable[Change]) -> list[Change]:
    """Stores and loads as one figure, unless their sum hides that they changed."""
    before, after = old.profile.spill_bytes, new.profile.spill_bytes
    if before is None or after is None or before == after:
        return list(changes)
    total = Change(what=SPILLED, before=before, after=after, direction=less_is_better(before, after))
    return [total, *(one for one in changes if one.what not in (SPILL_STORES.what, SPILL_LOADS.what))]


def text_changes(*figures: tuple[str, str, str]) -> list[Change]:
    """Of name, before and after: those that differ."""
    return [Change(what=what, before=before, after=after) for what, before, after in figures if before != after]


def _dimensions(sizes: Iterable[int]) -> str:
    return "x".join(map(str, sizes))
