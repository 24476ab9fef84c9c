"""The sign e-process: evidence from votes, exact and valid whenever one looks.

Under the null hypothesis a vote is at most a fair coin, whatever came before it.  The e-value of ``k`` votes in ``n``
blocks is the wealth of a gambler who starts with 1 and bets fairly against the null, averaged over all rates in
(1/2, 1): the probability that it ever reaches ``x`` is at most 1/x (Ville's inequality; Shafer, "Testing by betting",
JRSS A 184, 2021; Ramdas et al., "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38,
2023).  See docs/explanation/statistics.md, "Why at most one run in a thousand has a false alarm".
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy
from numpy.typing import NDArray

from pytest_gpuperf.judge.log_times import Logs

Counts = NDArray[np.int64]

_LEAST_TABLE = 256
"""Tables are made for powers of two from here on, so that a growing sequence finds its table made."""
_TINY = 1e-290
"""Below this the incomplete beta function loses digits; the hypergeometric form takes over."""


class InvalidVotesError(ValueError):
    """Counts that cannot be votes in blocks."""


def log_e(votes: int, blocks: int) -> float:
    """Natural log of the e-value of ``votes`` in ``blocks``.  Raises ``InvalidVotesError``."""
    if not 0 <= votes <= blocks:
        raise InvalidVotesError(f"{votes} votes in {blocks} blocks: votes lie between 0 and the number of blocks")
    return float(log_e_many(np.array(votes), np.array(blocks)))


def log_e_many(votes: Counts, blocks: Counts) -> Logs:
    """The same for arrays, which broadcast; the caller has checked 0 <= votes <= blocks.

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


@functools.lru_cache(maxsize=4)
def _table(size: int) -> Logs:
    """log_e of k votes in n blocks at [n, k], for n up to ``size``; -inf where k > n."""
    n, k = np.meshgrid(np.arange(size + 1), np.arange(size + 1), indexing="ij")
    return np.where(k <= n, log_e_many(np.minimum(k, n), n), -np.inf)


@functools.lru_cache(maxsize=256)
def _needed(log_threshold: float, size: int) -> Counts:
    reached = _table(size)[1:] >= log_threshold
    needed = np.where(reached.any(axis=1), reached.argmax(axis=1), np.iinfo(np.int64).max)
    needed.flags.writeable = False
    return needed


def votes_needed(log_threshold: float, most: int) -> Counts:
    """Least votes in 1, 2, ... ``most`` blocks that reach ``log_threshold``, unreachable where none do; read-only."""
    return _needed(log_threshold, max(_LEAST_TABLE, 1 << (most - 1).bit_length()))[:most]
