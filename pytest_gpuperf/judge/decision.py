"""The one decision on time: what paired blocks prove, and what several pairs of processes prove together.

A block is one exchange of a baseline and a candidate, in an order drawn by a coin.  Its log ratio is a bet on each of
three claims, and the bets on a claim are fair or worse while the claim is false, whatever noise the times have.  So the
money that such bets make is an e-value: it ever reaches ``1/a`` with a probability of at most ``a`` (Ville's
inequality), however often one looks.  See docs/explanation/statistics.md.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from pytest_gpuperf.model.evidence import Record
from pytest_gpuperf.model.limits import Limits

ALPHA = 1e-3
"""Rate of runs with a false SLOWER, all workloads of a run together."""
CONFIRMING_ALPHA = 1e-2
"""Rate of false SLOWER of a second process by itself."""
PASSING = math.log(200)
"""Natural log of the e-value that SAME and FASTER take: wrong for at most 0.5 % of the kernels at the limit."""
RATES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the money that are bet on each block; the evidence is the mean over them."""
MOST_BLOCKS = 128
TIE = 1e-12
"""Log ratios this close to a limit are equal to it: rounding breaks no tie."""
MEANS_SHARE = 1 / 16
"""Of the error rate: that of the ratios of means, which see rare slow launches.  Midmeans have the rest."""
MEANS_SCALE = 0.2
"""Log ratio of means at which a block bets all it may."""
TRENDING = math.log(3)
"""Log e-value of the means from which a pass waits for more blocks."""
PROCESS_DEVIATION, PROCESS_FREEDOM = 0.0011, 2
"""Prior on how far processes that run the same are apart: standard deviation of a log time, and what it is worth in
degrees of freedom.  By 794 recordings in five processes each, on H200s and H100s: half scatter by less than 0.08 %
(H200) or 0.14 % (H100), a tenth by more than 0.26 or 0.56 %, one in 100 by more than 1.2 %."""
LOOKS = MappingProxyType({2: 1 / 16, 4: 3 / 16, 8: 5 / 16, 16: 7 / 16})
"""Numbers of pairs of processes after which a callable may be SLOWER, each with its share of alpha.  The first shows
large losses alone; after the last a callable stays undecided."""


class Decision(enum.Enum):
    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"


def share(tests: int, workload: int) -> float:
    """Error rate of the ``workload``-th workload (from 1) of one test in a run that collected so many ``tests``.

    Each test has ``ALPHA / tests``, and its workloads 6 / (pi^2 i^2) of that: these add up to 1 over all i.
    """
    return ALPHA / max(tests, 1) * 6 / (math.pi * workload) ** 2


def log_e(bets: ArrayLike) -> float:
    """Natural log of the e-value of bets between -1 and 1, each fair or worse if the claim is false."""
    with np.errstate(divide="ignore"):  # a bet of all that was lost
        money = np.log1p(np.multiply.outer(RATES, np.asarray(bets, dtype=np.float64))).sum(axis=1)
    return float(np.logaddexp.reduce(money)) - math.log(len(RATES))


def log_e_slower(r: ArrayLike, limits: Limits, means: ArrayLike = ()) -> float:
    """Natural log of the e-value of *slower by more than the tolerance*, from log ratios of midmeans and of means."""
    bound = math.log1p(limits.tolerance)
    of_midmeans = log_e(_sign(np.asarray(r) - bound))
    if not np.size(means):
        return of_midmeans
    of_means = log_e(np.clip((np.asarray(means) - bound) / MEANS_SCALE, -1, 1))
    return float(np.logaddexp(of_midmeans + math.log(1 - MEANS_SHARE), of_means + math.log(MEANS_SHARE)))


def decide(r: Sequence[float], limits: Limits, alpha: float, means: Sequence[float] = ()) -> Decision | None:
    """What the log ratios (candidate over baseline) of the blocks so far prove; None: another block is wanted.

    ``alpha`` is the error rate of SLOWER.  ``means`` are the log ratios of the blocks' means, where they were taken.
    A pass waits while SLOWER is as likely, and while the means trend to slower.
    """
    values = np.asarray(r, dtype=np.float64)
    slower = log_e_slower(values, limits, means)
    if slower >= -math.log(alpha):
        return Decision.SLOWER
    tolerance, detect = math.log1p(limits.tolerance), math.log1p(limits.detect)
    if log_e(_sign(detect - values)) < PASSING or slower >= PASSING:
        return None
    if np.size(means) and log_e(np.clip((np.asarray(means) - tolerance) / MEANS_SCALE, -1, 1)) >= TRENDING:
        return None
    return Decision.FASTER if log_e(_sign(-tolerance - values)) >= PASSING else Decision.SAME


def is_promising(r: Sequence[float], limits: Limits, means: Sequence[float] = ()) -> bool:
    """Whether blocks that decide nothing yet speak for a claim rather than against both."""
    values = np.asarray(r, dtype=np.float64)
    return max(log_e_slower(values, limits, means), log_e(_sign(math.log1p(limits.detect) - values))) > 0


def is_unanimous(r: Sequence[float], limits: Limits) -> bool:
    """Whether all blocks say the same: slower than tolerated, or not as slow as must be detected."""
    values = np.asarray(r, dtype=np.float64)
    return bool((values > math.log1p(limits.tolerance)).all() or (values < math.log1p(limits.detect)).all())


class Comparison(Record, frozen=True):
    """What the paired blocks of one process, or of one pair of processes, showed."""

    r: tuple[float, ...]
    """Log ratio (candidate over baseline) of each block, in their order."""
    means: tuple[float, ...]
    """The same of the blocks' means."""
    seed: int
    """Of the coin that ordered the slots."""
    time_ns: float
    """Geometric mean of the candidate's midmeans in the blocks, nanoseconds per run."""
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0
    """Wall-clock time, pilot included."""

    @property
    def ratio(self) -> float:
        """Candidate over baseline: exp of the median block."""
        return math.exp(float(np.median(self.r)))

    def decision(self, limits: Limits, alpha: float) -> Decision | None:
        return decide(self.r, limits, alpha, self.means)

    def trends_slower(self, limits: Limits) -> bool:
        """Whether the blocks speak for *slower* rather than against it."""
        return log_e_slower(self.r, limits, self.means) > 0


def interval(r: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the median ratio that holds whenever one stops; None for too few blocks.

    It is made of order statistics: two one-sided e-values of signs, each at half of 5 %, are inverted.
    """
    values = np.sort(np.asarray(r, dtype=np.float64))
    size = values.size
    for agreeing in range(size // 2, size + 1):
        if log_e(np.repeat([1.0, -1.0], [agreeing, size - agreeing])) >= math.log(2 / 0.05):
            return math.exp(values[size - agreeing]), math.exp(values[agreeing - 1])
    return None


def over_processes(ratios: Sequence[float], limits: Limits, alpha: float) -> Decision | None:
    """What several pairs of processes prove of a callable; None: another pair is wanted.

    ``ratios`` are candidate over baseline, one of each pair; the first is that of the process that gates, the others
    are of fresh ones.  What a process has for life (where its memory lies, which plan a library chose) is in all of its
    times, so a pair is one observation.  SLOWER is a one-sided t test of all pairs, which shares ``alpha`` between the
    looks at it; a pass is one of the fresh pairs at 0.5 %, and waits while they are as likely slower than tolerated.
    The variance is moderated by a prior (G. K. Smyth, Statistical Applications in Genetics and Molecular Biology 3(1),
    2004).
    """
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    look = LOOKS.get(logs.size)
    if look is not None and logs.mean() - _margin(logs, alpha * look) > math.log1p(limits.tolerance):
        return Decision.SLOWER
    fresh = logs[1:]
    if not fresh.size:
        return None
    margin = _margin(fresh, math.exp(-PASSING))
    is_fast = fresh.mean() + margin < math.log1p(limits.detect)
    is_slow = fresh.mean() - margin > math.log1p(limits.tolerance)
    return Decision.SAME if is_fast and not is_slow else None


def proven_faster(ratio: float, limits: Limits) -> bool:
    """Whether one pair of processes proves the candidate faster by more than the tolerance, at 0.5 %."""
    logs = np.log(np.asarray([ratio], dtype=np.float64))
    return bool(logs[0] + _margin(logs, math.exp(-PASSING)) < -math.log1p(limits.tolerance))


def wants_pair(ratios: Sequence[float], limits: Limits) -> bool:
    """Whether another pair may decide: up to the last look, and no more once three fresh ones are not slower."""
    fresh = np.log(np.asarray(ratios[1:], dtype=np.float64))
    return len(ratios) < max(LOOKS) and (fresh.size < 3 or bool(fresh.mean() > math.log1p(limits.tolerance)))


def _margin(logs: NDArray[np.float64], alpha: float) -> float:
    """What the mean of so many pairs is above the truth by in a share ``alpha`` of the cases."""
    within = float(((logs - logs.mean()) ** 2).sum()) / 2  # a pair differs by two processes
    freedom = PROCESS_FREEDOM + logs.size - 1
    variance = (PROCESS_FREEDOM * PROCESS_DEVIATION**2 + within) / freedom
    return float(-scipy.special.stdtrit(freedom, alpha)) * math.sqrt(2 * variance / logs.size)


def _sign(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(values) <= TIE, 0.0, np.sign(values))
