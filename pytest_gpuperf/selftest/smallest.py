"""The smallest slowdown that the gate finds on this machine, from how far blocks scatter.  Pure.

Runs of the gate are drawn from normal blocks of that spread, and decided as the gate decides.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from pytest_gpuperf.judge.decision import MOST_BLOCKS, Decision, decide
from pytest_gpuperf.model.tolerance import Limits

DETECTION = 0.99
RUNS = 1000
STEP = 1.05
MOST_EFFECT = 0.5


def smallest_effect(spread: float, blocks: int, limits: Limits, alpha: float) -> float | None:
    """Least slowdown (a fraction) that 99 of 100 runs call SLOWER; None above 50 %.

    ``spread`` is the standard deviation of a block's log ratio, ``blocks`` what fits into the budget.
    """
    noise = np.random.default_rng(1).normal(0.0, spread, (RUNS, min(blocks, MOST_BLOCKS)))
    most = math.ceil(math.log(MOST_EFFECT / limits.tolerance, STEP))
    low, high = 0, most + 1  # in steps above the tolerance
    while high - low > 1:
        middle = (low + high) // 2
        runs = noise + math.log1p(limits.tolerance * STEP**middle)
        over = (runs > math.log1p(limits.tolerance)).cumsum(axis=1).tolist()
        under = (runs < math.log1p(limits.detect)).cumsum(axis=1).tolist()
        found = sum(_is_slower(*counts, limits, alpha) for counts in zip(over, under, strict=True))
        low, high = (low, middle) if found >= DETECTION * RUNS else (middle, high)
    return limits.tolerance * STEP**high if high <= most else None


def _is_slower(over: Sequence[int], under: Sequence[int], limits: Limits, alpha: float) -> bool:
    """How a run ends, from the numbers of blocks over the tolerance and under ``detect`` after each block."""
    for number, counts in enumerate(zip(over, under, strict=True), start=1):
        decided = _decided(number, *counts, limits, alpha)
        if decided is not None:
            return decided is Decision.SLOWER
    return False


@functools.cache
def _decided(number: int, over: int, under: int, limits: Limits, alpha: float) -> Decision | None:
    """Decision on ``number`` blocks, which depends on nothing but these counts."""
    values = np.log1p([limits.tolerance / 2, (limits.tolerance + limits.detect) / 2, limits.detect * 2])
    return decide(np.repeat(values, [number - over, over + under - number, number - under]).tolist(), limits, alpha)
