"""Kernels whose figures changed, looked at once more by their instructions, as many as a few seconds allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.cubin.audited import CodeAt, record_of
from pytest_gpuperf.compile.cubin.changed_code import profiles_of, within_bounds
from pytest_gpuperf.judge.audit import Audit, Judged, KernelPlace, judged
from pytest_gpuperf.model.evidence import StaticProfile, StaticRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict

_ORDER = (Verdict.WORSE, Verdict.SAME, Verdict.BETTER)
"""Which are read first: what got worse, then what may have in a figure that only instructions have."""
Code = Mapping[tuple[str, str, str], Sequence[CodeAt]]


class Looked(NamedTuple):
    """An audit with what instructions tell."""

    audit: Audit
    codes: dict[str, set[str]]
    """Full hashes of the code that was read, by symbol: as tests have them on record."""
    unread: int
    """Changed kernels for which there was no time."""


def look_closer(audit: Audit, new: Code, old: Code | None) -> Looked:
    """Judge changed kernels by their instructions too: with the code of both builds all that static evidence knows.

    Without the ``old`` code, those that got worse are only described.
    """
    changed = [one for one in audit.judged if one.judgement.verdict in _ORDER]
    if old is None:
        changed = [one for one in changed if one.judgement.verdict is Verdict.WORSE]
    changed.sort(key=lambda one: (_ORDER.index(one.judgement.verdict), one.new.kernel.code_bytes, one.new[:4]))
    sides = 1 if old is None else 2
    chosen = within_bounds((number, sides * one.new.kernel.code_bytes) for number, one in enumerate(changed))
    places = {(0, number): _code(new, changed[number].new) for number in chosen}
    if old is not None:
        places |= {(1, number): _code(old, changed[number].old) for number in chosen}
    read = profiles_of(places)
    again = {
        _name(changed[number]): _judged(changed[number], read[0, number], read.get((1, number)))
        for number in chosen
        if (0, number) in read
    }
    codes: dict[str, set[str]] = {}
    for (_, number), profile in read.items():
        codes.setdefault(changed[number].new.symbol, set()).add(profile.code_hash)
    kept = [one._replace(judgement=again.get(_name(one), one.judgement)) for one in audit.judged]
    return Looked(audit._replace(judged=kept), codes, len(changed) - len(again))


def _name(one: Judged) -> tuple[object, ...]:
    return one.new[:4]


def _code(code: Code, place: KernelPlace) -> CodeAt:
    return code[place.file, place.symbol, place.arch][place.number]


def _judged(one: Judged, new: StaticProfile, old: StaticProfile | None) -> Judgement:
    if old is None:
        return msgspec.structs.replace(one.judgement, notes=_local_memory(new))

    def full(place: KernelPlace) -> StaticRecord:
        profile = new if place is one.new else old
        return msgspec.structs.replace(record_of(place.kernel, place.symbol, place.arch), profile=profile)

    return judged(one.old, one.new, full)


def _local_memory(profile: StaticProfile) -> tuple[str, ...]:
    """What reaches the stack frame, which holds spilled registers and local arrays alike."""
    loads, stores = (profile.opcodes.get(name, 0) for name in ("local_load", "local_store"))
    if not loads and not stores:
        return ()
    return (f"{loads} of its {profile.instructions} instructions load from local memory and {stores} store to it",)
