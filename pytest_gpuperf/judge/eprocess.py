"""The sign e-process: evidence from votes, exact and valid whenever one looks.

Under the null hypothesis a vote is at most a fair coin, whatever came before it.  The e-value of ``k`` votes in ``n``
blocks is the wealth of a gambler who starts with 1 and bets fairly against the null, averaged over all rates in
(1/2, 1): the probability that it ever reaches ``x`` is at most 1/x (Ville's inequality; Shafer, "Testing by betting",
JRSS A 184, 2021; Ramdas et al., "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38,
2023).  See docs/explanation/statistics.md, "Why at most one run in a thousand has a false alarm".
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from pytest_gpuperf.judge.log_times import Logs

Counts = NDArray[np.int64]

_TINY = 1e-290
"""Below this the incomplete beta function loses digits; the hypergeometric form takes over."""


def log_e_many(votes: Counts, blocks: Counts) -> Logs:
    """Natural logs of the e-values of ``votes`` in so many ``blocks``, 0 <= votes <= blocks; arrays broadcast.

    E = 2 int_{1/2}^1 (2q)^k (2(1-q))^(n-k) dq = 2^(n+1) B(k+1, n-k+1) I_{1/2}(n-k+1, k+1).
    """
    k, n = np.asarray(votes, dtype=np.float64), np.asarray(blocks, dtype=np.float64)
    tail = scipy.special.betainc(n - k + 1, k + 1, 0.5)
    lost = tail < _TINY
    usual = (n + 1) * math.log(2) + scipy.special.betaln(k + 1, n - k + 1) + np.log(np.where(lost, 1.0, tail))
    if not lost.any():
        return np.asarray(usual)
    # Few votes in a thousand blocks or more.  I_{1/2}(a, b) = 2^-(a+b) F(a+b, 1; a+1; 1/2) / (a B(a, b)).
    series = scipy.special.hyp2f1(n + 2, 1.0, n - k + 2, 0.5)
    return np.where(lost, np.log(np.where(lost, series, 1.0)) - np.log(n - k + 1) - math.log(2), usual)
