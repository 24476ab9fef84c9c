"""The non-inferiority test: a stored baseline against fresh rounds, allowed to pass a kernel and never to fail one.

A one-sided t test of "slower by ``epsilon`` or more" on round midmeans; what is not proven here goes on to a better
test.  See docs/explanation/statistics.md, "The screen: a non-inferiority test on rounds".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import scipy

from pytest_gpuperf.judge.log_times import log_times

OMEGA = 0.005
"""Spread between recordings on one GPU assumed without a machine profile."""


def noninferiority_test(
    baseline: Sequence[float], candidate: Sequence[float], *, epsilon: float, omega: float = OMEGA, beta: float = 0.005
) -> bool:
    """Whether the candidate is proven to be slower by less than ``epsilon``, at an error rate of ``beta``.

    If it is not, a better test has to decide.  ``baseline`` and ``candidate`` are round midmeans in nanoseconds;
    ``omega`` is the standard deviation of log times between recordings.  Raises ``InvalidTimesError`` for what is no
    time.
    """
    old, new = log_times(baseline, "baseline rounds"), log_times(candidate, "candidate rounds")
    freedom = old.size + new.size - 2
    if freedom < 1 or old.size < 2:
        return False
    squares = float(((old - old.mean()) ** 2).sum() + ((new - new.mean()) ** 2).sum())
    error = math.sqrt(squares / freedom * (1 / old.size + 1 / new.size) + 2 * omega**2)
    difference = float(new.mean() - old.mean())
    return difference + float(scipy.special.stdtrit(freedom, 1 - beta)) * error < math.log1p(epsilon)
