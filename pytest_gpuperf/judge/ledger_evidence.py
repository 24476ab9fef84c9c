"""Evidence of many runs of one workload: slower by less than a run can see, and slow drift from commit to commit.

A run is the unit: where a cubin lies in a process is the same for all blocks of it, and moves the time by some
hundredths of a percent, so blocks of one run prove nothing at a tolerance of as much.  Each process has one vote, which
is *slower* if the median of its first seven blocks is above the tolerance.  If the code is not slower than that, the
vote is at most a fair coin: by the coin that orders the slots, and by placement that favours no side.

Votes on one candidate feed the sign e-process of ``eprocess``: it may be looked at after every run, and running again
is more evidence and not another chance.  Votes on the candidates of one commit after the other feed an e-detector
(Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", 2022): the sum,
over all runs with which a drift may have begun, of the e-values since.  Without drift it reaches 1/alpha within n runs
with a probability of at most n alpha.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from pytest_gpuperf.judge.eprocess import log_e_many

TOLERANCE = 0.0005
ALPHA = 1e-3
"""Rate of a false *slower* of one candidate, however often it is run."""
ALPHA_DRIFT = 1e-4
"""Rate of a false drift, per run."""
BETS = (0.75, 0.95)
"""Shares of *slower* votes that the detector bets on, half of its wealth on each."""


@dataclasses.dataclass(frozen=True)
class Vote:
    """One process's word on one candidate."""

    candidate: str
    """Names what was tried: equal for equal machine code."""
    commit: str
    log_ratio: float


@dataclasses.dataclass(frozen=True)
class SlowerByRuns:
    """A candidate that many runs together prove slower."""

    votes: int
    ratio: float
    """Median over the votes."""
    log_e: float


@dataclasses.dataclass(frozen=True)
class SlowDrift:
    """Slow growth from commit to commit."""

    votes: int
    """From its beginning on."""
    since: str
    """Commit of the first run with which it is likeliest to have begun."""
    until: str
    ratio: float
    """Of the last votes: the median of up to seven."""


def slower_by_runs(votes: Sequence[Vote], tolerance: float = TOLERANCE) -> SlowerByRuns | None:
    """Whether the last candidate is proven slower than ``tolerance`` by its runs together; ``votes`` in their order."""
    mine = [vote.log_ratio for vote in votes if vote.candidate == votes[-1].candidate]
    if not mine:
        return None
    slower = np.cumsum(np.array(mine) > math.log1p(tolerance), dtype=np.int64)
    most = float(log_e_many(slower, np.arange(1, len(mine) + 1)).max())  # whenever one looked, it stays proven
    if most < -math.log(ALPHA):
        return None
    return SlowerByRuns(len(mine), math.exp(_median(mine)), most)


def drift(votes: Sequence[Vote], tolerance: float = TOLERANCE) -> SlowDrift | None:
    """Whether the candidates became slower than ``tolerance``, from commit to commit; ``votes`` in their order.

    Only votes of several candidates can drift.
    """
    above = math.log1p(tolerance)
    slower = [vote.log_ratio > above for vote in votes]
    if len({vote.candidate for vote in votes}) < 2 or not _detected(slower):
        return None
    first = max(range(len(slower)), key=lambda start: _log_wealth(slower[start:]))
    last = [vote.log_ratio for vote in votes[-7:]]
    return SlowDrift(len(slower) - first, votes[first].commit, votes[-1].commit, math.exp(_median(last)))


def _detected(slower: Sequence[bool]) -> bool:
    """Whether the detector has reached its threshold by now, and stands there or above."""
    sums = [0.0 for _ in BETS]
    for vote in slower:
        sums = [(one + 1) * 2 * (bet if vote else 1 - bet) for one, bet in zip(sums, BETS, strict=True)]
    return sum(sums) / len(sums) >= 1 / ALPHA_DRIFT


def _log_wealth(slower: Sequence[bool]) -> float:
    """Of the better bet, from here on."""
    votes, runs = sum(slower), len(slower)
    return max(votes * math.log(2 * bet) + (runs - votes) * math.log(2 * (1 - bet)) for bet in BETS)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
