"""Static records that a change brought along: believed as far as the machine code beside them bears them out.

A pull request may edit the figures on record so that worse code passes.  Hash, registers, shared memory, barriers,
instructions and occupancy are made anew from the stored cubin.  Spilled bytes and the stack frame are in the
assembler's log alone: ``gpuperf diff`` shows the reviewer that they moved.
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
from pytest_gpuperf.judge.static_verdict import HASHED, contradictions
from pytest_gpuperf.model.evidence import Key, Occupancy, StaticProfile, StaticRecord

_READ = (
    *HASHED, static_rules.OCCUPANCY, static_rules.INSTRUCTIONS, static_rules.LOCAL_LOADS, static_rules.LOCAL_STORES,
    static_rules.FP64, static_rules.TENSOR,
)  # fmt: skip
"""Figures that the cubin alone tells."""


def why_not_proven(worker: Worker, key: Key, arch: str, old: StaticRecord) -> str:
    """Why nothing is to be compared with a record; empty if it is the project's own, or its cubin bears it out.

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
    except (BaselineError, BadCubin, OtherCode, ValueError) as problem:
        why = f"its machine code does not prove it: {problem}"
    else:
        why = contradictions(old, code, _READ)
    return f"{file}: under CI a record that came with this change has to be proven, and {why}" if why else ""


def _occupancy(old: StaticRecord, profile: StaticProfile, arch: str) -> Occupancy | None:
    """Under the recorded launch; None where there was none.  Raises ``ValueError`` for one that cannot be."""
    if old.block is None or old.occupancy is None:
        return None
    return occupancy(profile, arch, math.prod(old.block), old.dynamic_shared_bytes)
