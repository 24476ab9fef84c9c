"""Static records that a change brought along: believed as far as the machine code beside them bears them out.

A pull request may edit the figures on record so that worse code passes.  Hash, registers, shared memory, barriers,
instructions and occupancy are made anew from the stored cubin.  Spilled bytes and the stack frame are in the
assembler's log alone: ``gpuperf diff`` shows the reviewer that they moved.  Where the launch on record is not today's,
its occupancy proves nothing, and the code on record is asked for the one that it has under today's.
"""

from __future__ import annotations

import math

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.layout import evidence_path
from pytest_gpuperf.compile.compile_errors import BadCubin, OtherCode
from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.compile.cubin.stored_code import read_stored
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge import static_rules
from pytest_gpuperf.judge.static_verdict import HASHED, RESTORE, contradictions
from pytest_gpuperf.model.evidence import Key, Occupancy, StaticProfile, StaticRecord

_READ = (
    *HASHED, static_rules.OCCUPANCY, static_rules.INSTRUCTIONS, static_rules.LOCAL_LOADS, static_rules.LOCAL_STORES,
    static_rules.FP64, static_rules.TENSOR,
)  # fmt: skip
"""Figures that the cubin alone tells."""


def why_not_proven(worker: Worker, key: Key, arch: str, old: StaticRecord, new: StaticRecord) -> str:
    """Why nothing is to be compared with a record; empty if it is the project's own, or its cubin bears it out.

    ``new`` is what passes against it.
    Raises ``ToolchainMissing``, and ``BaselineError`` for a path that is none.
    """
    file = evidence_path(worker.store.root, arch, key.module)
    if worker.trust.believes(file):
        return ""
    try:
        cubin = worker.store.cubin(old.cubin)
        symbol, cache = old.symbol or old.kernel, worker.compile_cache
        profile = read_stored(cubin, symbol, arch, old.profile.code_hash, cache).profile
        code = msgspec.structs.replace(old, profile=profile, occupancy=_occupancy(old, profile, arch))
        lost = _lost_occupancy(old, profile, arch, new)
    except (BaselineError, BadCubin, OtherCode, ValueError) as problem:
        why = f"its machine code does not prove it: {problem}"
    else:
        why = contradictions(old, code, _READ) or lost
    return f"{file}: under CI a record that came with this change has to be proven, and {why}" if why else ""


def _occupancy(old: StaticRecord, profile: StaticProfile, arch: str) -> Occupancy | None:
    """Under the recorded launch; None where there was none.  Raises ``ValueError`` for one that cannot be."""
    if old.block is None or old.occupancy is None:
        return None
    return occupancy(profile, arch, math.prod(old.block), old.dynamic_shared_bytes)


def _lost_occupancy(old: StaticRecord, profile: StaticProfile, arch: str, new: StaticRecord) -> str:
    """What ``new`` lost beside the code on record under the launch of ``new``, where the recorded one is another."""
    launch = new.block, new.dynamic_shared_bytes
    if new.block is None or (old.occupancy is not None and (old.block, old.dynamic_shared_bytes) == launch):
        return ""
    resident = occupancy(profile, arch, math.prod(new.block), new.dynamic_shared_bytes)
    rule = static_rules.OCCUPANCY
    before, now = rule.read(msgspec.structs.replace(old, occupancy=resident)), rule.read(new)
    if before is None or now is None or before == now or rule.trend(before, now) != "worse":
        return ""
    return f"launched as today its code has an occupancy of {before:g} %, and today's has {now:g} %: {RESTORE}"
