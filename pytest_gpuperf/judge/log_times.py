"""From times to logarithms, the only form in which times are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.model.timed_round import RecordedRound

Logs = NDArray[np.float64]


class InvalidTimesError(ValueError):
    """Something handed to a judge as a time, ratio or rate cannot be one."""


def log_times(times_ns: Sequence[float], what: str) -> Logs:
    """Natural logarithms.  Raises ``InvalidTimesError``, which names ``what``, for none and for what is no time."""
    times = np.asarray(times_ns, dtype=np.float64)
    if times.ndim != 1 or times.size == 0:
        raise InvalidTimesError(f"{what}: at least one time is needed, there is none")
    wrong = np.flatnonzero(~(np.isfinite(times) & (times > 0)))
    if wrong.size:
        raise InvalidTimesError(
            f"{what}: entry {wrong[0] + 1} of {times.size} is {times[wrong[0]]} ns, which is not a time: "
            f"measure again, or record the baseline anew with --update-baselines"
        )
    return np.log(times)


def geometric_mean(times_ns: Sequence[float]) -> float:
    """Nanoseconds.  Raises ``InvalidTimesError`` for what is no time."""
    return math.exp(float(log_times(times_ns, "rounds").mean()))


def mean_time_ns(rounds: Sequence[RecordedRound]) -> float:
    """What one run takes: the geometric mean of its rounds' midmeans.  Raises as ``geometric_mean`` does."""
    return geometric_mean([one.midmean for one in rounds])
