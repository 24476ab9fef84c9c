"""Scores of blocks, and the e-process that they feed: votes of short blocks, rank sums of long ones.

A block is the log ratios, candidate over baseline, of its pairs: one of a block of short slots, whose score is a vote
(``eprocess``), and sixteen of a block of eight single launches, whose score is their number (``rank_eprocess``).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.judge import eprocess, rank_eprocess
from pytest_gpuperf.judge.log_times import InvalidTimesError, Logs

Ratios = Sequence[float] | Sequence[Sequence[float]] | Logs
"""Log ratios of blocks: one of each, or those of its pairs."""
Scores = NDArray[np.int64]
_LEAST_TABLE = 128
"""Tables are made for powers of two from here on, so that a growing sequence finds its table made."""


@dataclasses.dataclass(frozen=True)
class EProcess:
    """What scores of blocks are worth."""

    most: int
    """Largest score of a block."""
    log_e_many: Callable[[Scores, Scores], Logs]
    """Natural log of the e-value of summed scores in so many blocks."""

    def log_e(self, score: int, blocks: int) -> float:
        return float(self.log_e_many(np.array(score), np.array(blocks)))

    def needed(self, log_threshold: float, most: int) -> Scores:
        """Least sum of scores in 1, 2, ... ``most`` blocks that reaches ``log_threshold``; read-only.

        Unreachable where none does.
        """
        return _needed(self, log_threshold, max(_LEAST_TABLE, 1 << (most - 1).bit_length()))[:most]

    def unanimous_blocks(self, alpha: float, most: int) -> float:
        """Least number of blocks that prove a claim at ``alpha`` if all of them agree; infinite above ``most``."""
        full = self.most * np.arange(1, most + 1)
        enough = np.flatnonzero(self.needed(-math.log(alpha), most) <= full)
        return float(enough[0] + 1) if enough.size else math.inf


@functools.lru_cache(maxsize=8)
def _table(process: EProcess, size: int) -> Logs:
    """Log e-value at [blocks, score], for blocks up to ``size``; -inf where there is no such score."""
    blocks, scores = np.meshgrid(np.arange(size + 1), np.arange(process.most * size + 1), indexing="ij")
    most = process.most * blocks
    return np.where(scores <= most, process.log_e_many(np.minimum(scores, most), blocks), -np.inf)


@functools.lru_cache(maxsize=512)
def _needed(process: EProcess, log_threshold: float, size: int) -> Scores:
    reached = _table(process, size)[1:] >= log_threshold
    needed = np.where(reached.any(axis=1), reached.argmax(axis=1), np.iinfo(np.int64).max)
    needed.flags.writeable = False
    return needed


SIGNS = EProcess(1, eprocess.log_e_many)
RANKS = EProcess(rank_eprocess.PAIRS, rank_eprocess.log_e_many)


def process_of(pairs: int) -> EProcess:
    """The e-process of blocks of so many pairs.  Raises ``InvalidTimesError`` if there is none."""
    for process in (SIGNS, RANKS):
        if process.most == pairs:
            return process
    raise InvalidTimesError(f"a block of {pairs} pairs: it has one, or {RANKS.most} of eight single launches")


def checked(r: Ratios) -> Logs:
    """Log ratios as blocks x pairs.  Raises ``InvalidTimesError`` for a value that is not finite."""
    values = np.asarray(r, dtype=np.float64)
    values = values.reshape(len(values), -1) if values.size else np.empty((0, 1))
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size:
        block, pair = wrong[0]
        raise InvalidTimesError(
            f"block {block + 1} of {len(values)} has the log ratio {values[block, pair]}, which is no ratio of times: "
            f"leave out blocks that were cut short"
        )
    return values
