"""The tail e-process: evidence that a candidate's mean is slower where its midmean is not.

A midmean does not see launches that are rarely slow.  Of each block t is the log ratio of the two sides' means, each
winsorised at twenty times its own median, so that scaling a side's times scales its mean.  A block multiplies the
evidence by ``1 + rate psi(t - ln(1 + delta))`` with ``psi(x) = clip(x / 0.2, -1, 1)``: psi is odd, nowhere falls, and
exchanging the sides turns the sign of what t has besides the effect, so the mean factor is at most 1.  See
docs/explanation/statistics.md, "The tail".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_gpuperf.judge.log_times import Logs

SHARE = 1 / 16
"""Of a workload's alpha that this test has; the votes of midmeans have the rest."""
SCALE = 0.2
"""Log ratio of means at which a block says all it can: 20 % slower is worth as much as five times as slow."""
RATES = (0.25, 0.5, 0.9)
LEANING = math.log(3.0)
"""Evidence with which a pass waits for more blocks ..."""
LEANING_LONG = math.log(1.5)
"""... where blocks are of single launches, and few."""


def tail_worth(t: Logs, delta: float) -> Logs:
    """Natural log of the e-value after each block; ``t`` has blocks along its last axis."""
    psi = np.clip((t - math.log1p(delta)) / SCALE, -1.0, 1.0)
    walks = np.stack([np.cumsum(np.log1p(rate * psi), axis=-1) for rate in RATES])
    return np.asarray(np.logaddexp.reduce(walks, axis=0) - math.log(len(RATES)))


def worth_at_blocks(tails: Sequence[Sequence[float]], delta: float) -> Logs:
    """The same after each block that counts; ``tails`` has its t and those of blocks discarded since the one before."""
    every = np.array([t for of_block in tails for t in of_block], dtype=np.float64)
    ends = np.cumsum([len(of_block) for of_block in tails]) - 1
    return np.asarray(tail_worth(every, delta)[ends]) if every.size else every
