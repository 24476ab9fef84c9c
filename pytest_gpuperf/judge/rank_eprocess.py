"""The rank e-process: evidence from blocks of eight single launches, exact and valid whenever one looks.

A block has four launches of each side in one of the 70 possible orders, all equally likely.  Its score is U, the number
of its 16 pairs (one launch of each side) that speak for a claim: Mann and Whitney, "On a test of whether one of two
random variables is stochastically larger than the other", Annals of Mathematical Statistics 18 (1947).  Under the null
hypothesis U is at most what a random order gives, so ``exp(rate U) / M(rate)`` has a mean of at most 1, where M is the
mean of ``exp(rate U)`` over the 70 orders.  The product over blocks depends on the sum of their scores alone; products
at four rates are mixed.  See docs/explanation/statistics.md, "Long launches".
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pytest_gpuperf.judge.log_times import Logs

LAUNCHES = 4
"""Of each side in a block."""
PAIRS = LAUNCHES**2
"""Of one launch of each side: the largest score of a block."""
RATES = (2.0, 1.0, 0.5, 0.25)
WEIGHTS = (0.4, 0.3, 0.2, 0.1)
"""Of the products at these rates, fixed before any block: the steeper ones decide where all pairs agree."""


def log_e_many(scores: NDArray[np.int64], blocks: NDArray[np.int64]) -> Logs:
    """Natural logs of the e-values of summed ``scores`` in so many ``blocks``; arrays broadcast."""
    score, number = np.asarray(scores, dtype=np.float64), np.asarray(blocks, dtype=np.float64)
    terms = [math.log(w) + rate * score - number * _log_mean(rate) for w, rate in zip(WEIGHTS, RATES, strict=True)]
    return np.asarray(special.logsumexp(np.stack(np.broadcast_arrays(*terms)), axis=0))


@functools.cache
def orders() -> tuple[tuple[int, ...], ...]:
    """The places of the candidate's launches among the eight, in every possible order."""
    return tuple(itertools.combinations(range(2 * LAUNCHES), LAUNCHES))


@functools.cache
def _log_mean(rate: float) -> float:
    """ln M(rate): over the orders, of launches whose times rise from the first to the last."""
    first = sum(range(LAUNCHES))
    return float(special.logsumexp([rate * (sum(places) - first) for places in orders()])) - math.log(len(orders()))
