"""Statistics of one batch of samples: centre, mean, spread and outliers.  Pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.errors import GpuperfError

Samples = NDArray[np.float64]

LEAST_OUTLYING = 0.01
"""Samples that are less than 1 % above the third quartile are no outliers, however narrow the quartiles are ..."""
LEAST_OUTLYING_NS = 3000.0
"""... nor are those that are less than 3 us above it.  On idle H200s 10 to 23 % of the launches of a copy, of 4 us as
of 120 us, take 1.3 to 2.3 us longer; another process's turn takes a hundred times that."""
OUTLIER_STEPS = 3.0
"""Interquartile ranges below so many steps of the timer count as so many, for outliers."""
FEW_STEPS = 2.0
"""An interquartile range below so many steps of the timer holds so few readings that their midmean jumps."""
MOST_TIMES_MEDIAN = 20.0


class InvalidSampleError(GpuperfError, ValueError):
    """A batch of samples holds something that is not a time."""


def valid_samples(samples_ns: Sequence[float]) -> Samples:
    """The samples as an array.  Raises ``InvalidSampleError`` if there are none or one is not a time."""
    samples = np.asarray(samples_ns, dtype=np.float64)
    if samples.ndim != 1 or samples.size == 0:
        raise InvalidSampleError("a round needs at least one sample: the timer returned none")
    wrong = np.flatnonzero(~(np.isfinite(samples) & (samples > 0)))
    if wrong.size:
        raise InvalidSampleError(
            f"sample {wrong[0]} of {samples.size} is {samples[wrong[0]]} ns, which is not a time: the timer lost it; "
            f"measure again, or choose another timer with --gpuperf-timer"
        )
    return samples


def midmean(samples: Samples) -> float:
    """Mean of the middle half: a fifth less variance than the median, and not moved by a quarter of outliers."""
    cut = samples.size // 4
    return float(np.partition(samples, (cut, samples.size - cut - 1))[cut : samples.size - cut].mean())


def is_coarse(samples: Samples, step_ns: float) -> bool:
    """Whether the middle half of the samples lies within two steps of the timer."""
    lower, upper = np.quantile(samples, [0.25, 0.75])
    return bool(upper - lower < FEW_STEPS * step_ns)


def core_mean(samples: Samples, step_ns: float) -> float:
    """Mean of the samples from one step below the first quartile to one step above the third.

    The midmean of coarse readings jumps: where the middle half reads one tick, a change of a third of a tick shows as
    none or as two thirds.  Start and end are read at random phases of the clock, so the *mean* of readings is that of
    the times, and the outer steps belong to it.  A plain mean of all would follow slow launches.
    """
    lower, upper = np.quantile(samples, [0.25, 0.75])
    return float(samples[(samples >= lower - step_ns) & (samples <= upper + step_ns)].mean())


def centre(samples: Samples, step_ns: float = 0.0) -> float:
    """Summary of a batch: its midmean, or the ``core_mean`` of coarse readings."""
    return core_mean(samples, step_ns) if is_coarse(samples, step_ns) else midmean(samples)


def winsorised_mean(samples: Samples) -> float:
    """Mean with no sample above twenty times the median: it sees rare slow samples, and scales with them."""
    return float(np.minimum(samples, MOST_TIMES_MEDIAN * np.median(samples)).mean())


def relative_deviation(samples: Samples) -> float:
    """Relative standard deviation by the interquartile range: outliers that the midmean ignores do not count."""
    lower, upper = np.quantile(np.log(samples), [0.25, 0.75])
    return float(upper - lower) / 1.349


def outlier_share(samples: Samples, step_ns: float = 0.0) -> float:
    """Share of samples above the third quartile by more than three interquartile ranges, 1 % and 3 us, 0 to 1."""
    lower, upper = np.quantile(samples, [0.25, 0.75])
    spread = max(upper - lower, OUTLIER_STEPS * step_ns)
    return float(np.mean(samples > upper + max(3 * spread, LEAST_OUTLYING * upper, LEAST_OUTLYING_NS)))
