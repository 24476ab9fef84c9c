"""The screen: a stored baseline against fresh rounds, allowed to acquit and to nothing else.

A one-sided t test of "slower by ``epsilon`` or more" on round midmeans (non-inferiority).  Too small an
``omega`` can let a regression pass; it can never fail a kernel, because ESCALATE only means that a better
test has to decide.  See docs/explanation/statistics.md, "The screen".
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Sequence

from scipy import special

from pytest_gpuperf.judge.log_times import log_times

OMEGA = 0.005
"""Spread between recordings on one GPU assumed without a machine profile."""


class Screening(enum.Enum):
    PASS = "pass"
    ESCALATE = "escalate"


@dataclasses.dataclass(frozen=True)
class Screen:
    """What the screen says, and from which figures."""

    decision: Screening
    difference: float
    """Mean log time of the candidate minus that of the baseline."""
    bound: float
    """Upper confidence bound of the difference at ``1 - beta``; infinite with too few rounds."""


def screen(
    baseline: Sequence[float], candidate: Sequence[float], *, epsilon: float, omega: float = OMEGA, beta: float = 0.005
) -> Screen:
    """PASS if the candidate is proven to be slower by less than ``epsilon``, at an error rate of ``beta``.

    ``baseline`` and ``candidate`` are round midmeans in nanoseconds; ``omega`` is the standard deviation of
    log times between recordings.  Raises ``InvalidTimesError`` for what is no time.
    """
    old, new = log_times(baseline, "baseline rounds"), log_times(candidate, "candidate rounds")
    difference = float(new.mean() - old.mean())
    freedom = old.size + new.size - 2
    if freedom < 1 or old.size < 2:
        return Screen(Screening.ESCALATE, difference, math.inf)
    squares = float(((old - old.mean()) ** 2).sum() + ((new - new.mean()) ** 2).sum())
    error = math.sqrt(squares / freedom * (1 / old.size + 1 / new.size) + 2 * omega**2)
    bound = difference + float(special.stdtrit(freedom, 1 - beta)) * error
    passed = bound < math.log1p(epsilon)
    return Screen(Screening.PASS if passed else Screening.ESCALATE, difference, bound)
