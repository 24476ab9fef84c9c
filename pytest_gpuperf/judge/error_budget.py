"""One error rate for a whole run: how it is shared out, and what the run as a whole shows.

The probability of one or more false SLOWER among all workloads of a run is at most the sum of their shares (union
bound).  See docs/explanation/statistics.md, "Why at most one run in a thousand has a false alarm" and "What the run
says of the machine".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from pytest_gpuperf.judge import env_shift
from pytest_gpuperf.judge.canary_shift import CANARY_SHIFT
from pytest_gpuperf.judge.log_times import InvalidTimesError
from pytest_gpuperf.model.result import SelfPairReading

ALPHA = 1e-3
"""Rate of runs with a false SLOWER, all workloads of a run together."""
ALPHA_FASTER = 1e-2
"""Rate of runs with a false FASTER, all workloads of a run together."""
RESERVE = 1 / 16
"""Part of a run's error rates that is kept for workers of pytest-xdist which replace crashed ones."""
SELF_PAIR_E = 1000.0
"""E-value at which a launch that was paired with itself counts as different from itself."""
SUITE_SHIFT_OMEGAS = 3.0
"""Spreads between recordings by which half of the workloads have to move to be worth a word."""


class SpendingError(ValueError):
    """Shares that would add up to more than the run's error rate, or that cannot be computed."""


@dataclasses.dataclass(frozen=True)
class Spending:
    """Shares for workloads that come one after another, their number unknown.

    The i-th gets 6 alpha / (pi^2 i^2); these add up to alpha over all i.  Under pytest-xdist each of
    ``workers`` processes spends an equal part of alpha by itself, so that they need not talk.
    """

    alpha: float = ALPHA
    workers: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1 or self.workers < 1:
            raise SpendingError(f"an error rate in (0, 1) and at least one worker, not {self.alpha}, {self.workers}")

    def share(self, index: int) -> float:
        """Share of the ``index``-th workload of one worker, counted from 1.  Raises ``SpendingError``."""
        if index < 1:
            raise SpendingError(f"workloads are counted from 1, not {index}")
        return 6 * self.alpha / (self.workers * math.pi**2 * index**2)


def shard_alpha(shards: int, alpha: float = ALPHA) -> float:
    """What each of ``shards`` parts of a run spends of its error rate: they add up to it.  Raises ``SpendingError``."""
    if shards < 1:
        raise SpendingError(f"a run has at least one shard, not {shards}")
    return alpha / shards


def spending_of(worker: int, workers: int, alpha: float = ALPHA) -> Spending:
    """What pytest-xdist's worker number ``worker`` spends, counted from 0, in a run of ``workers``.

    A worker that replaces a crashed one has a number beyond the others.  These share 15/16 of alpha equally, and the
    k-th replacement has 2^-k of the rest: all add up to alpha at most.  Raises ``SpendingError``.
    """
    if worker < workers:
        return Spending(alpha * (1 - RESERVE), workers)
    return Spending(alpha * RESERVE * 2.0 ** -(worker - workers + 1))


def self_pair_alarm(reading: SelfPairReading) -> bool:
    """Whether a kernel paired against itself came out different: then the run proves nothing."""
    return max(reading.log_e_slower, reading.log_e_faster) >= math.log(SELF_PAIR_E)


def environment_shift(
    differences: Sequence[float], omega: float, canaries: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """Signs that the machine and not a kernel changed, as sentences; empty if there are none.

    ``differences`` are those of log times against the record of all workloads of the run, ``canaries`` those of the
    plugin's own kernels by name.  Nothing is subtracted anywhere, or a regression of the whole suite would vanish.
    """
    found = []
    moved = canaries or {}
    for name, value in zip(moved, _finite(tuple(moved.values()), "canary"), strict=True):
        if abs(value) > CANARY_SHIFT:
            found.append(
                f"the canary kernel {name}, which no change of yours touches, moved by {env_shift.percent(value)}"
            )
    values = _finite(differences, "difference")
    middle = float(np.median(values)) if values.size >= 3 else 0.0
    if abs(middle) > SUITE_SHIFT_OMEGAS * omega:
        found.append(f"half of the {values.size} workloads moved by {env_shift.percent(middle)} or more")
    return tuple(found)


def _finite(values: Sequence[float], what: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = np.asarray(values, dtype=np.float64)
    if not np.isfinite(found).all():
        raise InvalidTimesError(f"a {what} is {found[~np.isfinite(found)][0]}, which is no log ratio of times")
    return found
