"""Two sets of rounds: how far apart they are, and how well that is known.

Rounds of one process share what no round can see (allocation, placement, context state), so processes are the units:
the error of the difference has a part within them and a part between them.  See docs/explanation/statistics.md,
"Unpaired rounds".
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Sequence

import numpy as np
import scipy

from pytest_gpuperf.judge.log_times import Logs, log_times
from pytest_gpuperf.model.timed_round import RecordedRound


@dataclasses.dataclass(frozen=True)
class Spread:
    """The difference of two sets of rounds, in natural logarithms."""

    difference: float
    """Candidate minus baseline."""
    error: float
    """Standard error of the difference."""
    freedom: int
    """Degrees of freedom of its t statistic: rounds minus two; below 1 nothing can be decided."""
    within: float
    """Standard deviation of rounds within a process."""
    between: float
    """Standard deviation between processes as estimated; 0 if no side has two processes."""
    processes: int
    """Processes of the baseline."""

    def quantile(self, upper_tail: float) -> float:
        """Value that the t statistic exceeds with probability ``upper_tail``."""
        return -float(scipy.special.stdtrit(self.freedom, upper_tail))

    def exceeds(self, bound: float, alpha: float) -> bool:
        """Whether the difference is proven to be above ``bound``, one-sided at ``alpha``."""
        return self.freedom >= 1 and self.difference - self.quantile(alpha) * self.error > bound

    def below(self, bound: float, alpha: float) -> bool:
        """Whether the difference is proven to be below ``bound``, one-sided at ``alpha``."""
        return self.freedom >= 1 and self.difference + self.quantile(alpha) * self.error < bound

    def interval(self, level: float) -> tuple[float, float] | None:
        """Two-sided t interval of the ratio; None if there are too few rounds for one."""
        if self.freedom < 1:
            return None
        reach = self.quantile((1 - level) / 2) * self.error
        return math.exp(self.difference - reach), math.exp(self.difference + reach)


def compare_rounds(
    baseline: Sequence[RecordedRound],
    candidate: Sequence[RecordedRound],
    omega: float,
    figure: Callable[[RecordedRound], float] = operator.attrgetter("midmean"),
) -> Spread:
    """Compare ``figure`` of the rounds; ``omega`` is the least standard deviation assumed between recordings.

    The part between processes counts once for either side, as the larger of ``omega`` and its estimate
    (analysis of variance over the processes of both sides).  Raises ``InvalidTimesError`` for what is no time.
    """
    old, new = _by_process(baseline, "baseline", figure), _by_process(candidate, "candidate", figure)
    units = [*old, *new]
    variance = _within(units)
    between = _between([old, new], variance)
    error = variance * (_share(old) + _share(new)) + 2 * max(omega**2, between)
    return Spread(
        difference=_mean(new) - _mean(old), error=math.sqrt(error), freedom=len(baseline) + len(candidate) - 2,
        within=math.sqrt(variance), between=math.sqrt(between), processes=len(old),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ProcessSpread:
    """How far processes that run the same are apart, as a record has it."""

    deviation: float = 0.0
    """Standard deviation of the log of a process's time, less what its rounds contribute."""
    freedom: int = 0
    """Degrees of freedom of that estimate: processes, less one for each session."""


def process_spread(rounds: Sequence[RecordedRound]) -> ProcessSpread:
    """Of recorded rounds: between the processes of each session, since those of another may be another GPU's.

    Raises ``InvalidTimesError`` for what is no time.
    """
    sessions = [[one for one in rounds if one.session == name] for name in {one.session: None for one in rounds}]
    sides = [_by_process(session, "baseline", operator.attrgetter("midmean")) for session in sessions]
    units = [unit for side in sides for unit in side]
    freedom = len(units) - len(sides)
    if freedom < 1:
        return ProcessSpread()
    return ProcessSpread(math.sqrt(_between(sides, _within(units))), freedom)


def _by_process(rounds: Sequence[RecordedRound], side: str, figure: Callable[[RecordedRound], float]) -> list[Logs]:
    logs = log_times([figure(one) for one in rounds], f"{side} rounds")
    groups: dict[tuple[str, int], list[float]] = {}
    for one, value in zip(rounds, logs, strict=True):
        groups.setdefault((one.session, one.process), []).append(float(value))
    return [np.array(values) for values in groups.values()]


def _mean(units: Sequence[Logs]) -> float:
    return float(np.mean([unit.mean() for unit in units]))


def _share(units: Sequence[Logs]) -> float:
    """Variance of the mean of process means due to one unit of variance within processes."""
    return sum(1 / unit.size for unit in units) / len(units) ** 2


def _within(units: Sequence[Logs]) -> float:
    """Variance of rounds within a process; 0 if none has two."""
    residual = sum(unit.size for unit in units) - len(units)
    squares = sum(float(((unit - unit.mean()) ** 2).sum()) for unit in units)
    return squares / residual if residual else 0.0


def _between(sides: Sequence[Sequence[Logs]], within: float) -> float:
    """Variance between processes, estimated on the sides that have at least two; 0 without such a side."""
    sides = [side for side in sides if len(side) > 1]
    if not sides:
        return 0.0
    squares = sum((len(side) - 1) * float(np.var([unit.mean() for unit in side], ddof=1)) for side in sides)
    of_means = squares / sum(len(side) - 1 for side in sides)
    units = [unit for side in sides for unit in side]
    return max(0.0, of_means - within * sum(1 / unit.size for unit in units) / len(units))
