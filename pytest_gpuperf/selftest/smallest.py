"""The smallest slowdown that the gate finds on this machine, from how far blocks scatter.  Pure.

Runs of the gate are drawn from normal blocks of that spread, and decided as the gate decides.
"""

from __future__ import annotations

import bisect
import functools
import math

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.judge.decision import MOST_BLOCKS, Decision, decide
from pytest_gpuperf.model.limits import Limits

DETECTION = 0.99
RUNS = 1000
MOST_EFFECT = 0.5
STEP = 1.05
"""Ratio of one effect that is tried to the next smaller one."""


def smallest_effect(spread: float, blocks: int, limits: Limits, alpha: float) -> float | None:
    """Least slowdown (a fraction) that 99 of 100 runs call SLOWER; None above 50 %.

    ``spread`` is the standard deviation of a block's log ratio, ``blocks`` what fits into the budget.
    """
    noise = np.random.default_rng(1).normal(0.0, spread, (RUNS, min(blocks, MOST_BLOCKS)))
    effects = limits.tolerance * STEP ** np.arange(1, math.ceil(math.log(MOST_EFFECT / limits.tolerance, STEP)) + 1)
    first = bisect.bisect_left(
        effects, DETECTION * RUNS, key=lambda effect: _found(noise + math.log1p(effect), limits, alpha)
    )
    return float(effects[first]) if first < effects.size else None


def _found(runs: NDArray[np.float64], limits: Limits, alpha: float) -> int:
    """Number of runs (rows of log ratios of blocks) that end as SLOWER."""
    over = (runs > math.log1p(limits.tolerance)).cumsum(axis=1).tolist()
    under = (runs < math.log1p(limits.detect)).cumsum(axis=1).tolist()
    found = 0
    for run in zip(over, under, strict=True):
        blocks = enumerate(zip(*run, strict=True), start=1)
        decisions = (_decided(number, *counts, limits, alpha) for number, counts in blocks)
        found += next(filter(None, decisions), None) is Decision.SLOWER
    return found


@functools.cache
def _decided(number: int, over: int, under: int, limits: Limits, alpha: float) -> Decision | None:
    """Decision on ``number`` blocks, which depends on nothing but these counts."""
    values = np.log1p([limits.tolerance / 2, (limits.tolerance + limits.detect) / 2, limits.detect * 2])
    return decide(np.repeat(values, [number - over, over + under - number, number - under]).tolist(), limits, alpha)
