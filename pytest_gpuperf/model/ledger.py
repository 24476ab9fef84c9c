"""What a ledger keeps of each pairing, so that runs add to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_gpuperf.model.base_record import Record

FIRST_BLOCKS, FIRST_LONG_BLOCKS = 7, 1
"""Blocks of a pairing that its note is of: fewer than any verdict takes, so when it stopped has no say; and odd."""


class PairingNote(Record, frozen=True):
    """What one process found when it paired a workload."""

    opponent: str
    """``StaticProfile.code_hash`` of the machine code that it was paired with."""
    log_ratio: float
    """Median of the first blocks' log ratios, candidate over opponent."""
    blocks: int
    """All that counted."""
    seed: int
    """Of the coin that ordered the slots: no pairing is noted twice."""


class LedgerLine(Record, frozen=True):
    """One line of the ledger: a note, and what it is of."""

    schema: int
    date: str
    """UTC, ISO 8601, seconds."""
    commit: str
    """Of the tests' repository; empty outside of one."""
    dirty: bool
    device: str
    """``nvidia-h200``"""
    workload: str
    """``str`` of its key."""
    candidate: str
    """``StaticProfile.code_hash`` of the machine code that was tried."""
    work: str
    """Launch and arguments of the candidate, as a hash: other work is another series."""
    note: PairingNote


def note_of(opponent: str, ratios: Sequence[Sequence[float]], seed: int) -> PairingNote | None:
    """The note on a pairing whose blocks have these log ratios of pairs; None if there are too few of them."""
    long = bool(ratios) and len(ratios[0]) > 1
    first = [_median(block) for block in ratios[: FIRST_LONG_BLOCKS if long else FIRST_BLOCKS]]
    if len(first) < (FIRST_LONG_BLOCKS if long else FIRST_BLOCKS) or not opponent:
        return None
    return PairingNote(opponent=opponent, log_ratio=round(_median(first), 9), blocks=len(ratios), seed=seed)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    found = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return found if math.isfinite(found) else 0.0
