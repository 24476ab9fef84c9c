"""Statistics of one batch of samples: centre, serial correlation, drift, modes, outliers.

Pure functions of an array of times; why: docs/explanation/statistics.md, "Why not simply compare two medians".  Two
groups are found as in Otsu, "A threshold selection method from gray-level histograms", IEEE SMC 9 (1979).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

Samples = NDArray[np.float64]

ASSESSABLE = 20
"""Drift and modes are not assessed on fewer samples."""
LEAST_OUTLYING = 0.01
"""Samples that are less than 1 % above the third quartile are no outliers, however narrow the quartiles are ..."""
LEAST_OUTLYING_NS = 3000.0
"""... nor are those that are less than 3 us above it.  On idle H200s 10 to 23 % of the launches of a copy, of 4 us as
of 120 us, take 1.3 to 2.3 us longer; another process's turn takes a hundred times that (docs/results/recordings.md)."""
OUTLIER_STEPS = 3.0
"""Interquartile ranges below so many steps of the timer count as so many, for outliers: on an idle H200 up to a fifth
of the launches of a loop of 2 to 10 us took four to nine steps of 32 ns longer (docs/results/recordings.md)."""
FEW_STEPS = 2.0
"""An interquartile range below so many steps of the timer holds so few readings that their midmean jumps."""
MOST_ALTERNATING = 0.04
"""By so much two levels may differ that a kernel alternates between: what a neighbour does differs by more."""
MOST_TIMES_MEDIAN = 20.0
SLOW_TIMES_MEDIAN = 1.5
_BATCHES = 10
_DRIFT_P = 0.01
_MODE_GAP_SD = 4.0
_MODE_MINOR_SHARE = 0.10
_LEAST_GAP = 0.0025
_QUANTISATION_SD = 1 / math.sqrt(12)


def midmean(samples: Samples) -> float:
    """Mean of the middle half: a fifth less variance than the median, and not moved by a quarter of outliers."""
    cut = samples.size // 4
    return float(np.partition(samples, (cut, samples.size - cut - 1))[cut : samples.size - cut].mean())


def coarse(samples: Samples, step_ns: float) -> bool:
    """True if the middle half of the samples lies within two steps of the timer."""
    lower, upper = np.quantile(samples, [0.25, 0.75])
    return bool(upper - lower < FEW_STEPS * step_ns)


def core_mean(samples: Samples, step_ns: float) -> float:
    """Mean of the samples from one step below the first quartile to one step above the third.

    The midmean of coarse readings jumps: where the middle half reads one tick, a change of a third of a tick shows as
    none or as two thirds.  Start and end are read at random phases of the clock, so the *mean* of readings is that of
    the times, and the outer steps belong to it.  A plain mean of all would follow slow launches: for loops of 2 to
    20 us on an H200 it scattered twice as much from round to round (docs/results/recordings.md).
    """
    lower, upper = np.quantile(samples, [0.25, 0.75])
    return float(samples[(samples >= lower - step_ns) & (samples <= upper + step_ns)].mean())


def centre(samples: Samples, step_ns: float = 0.0) -> float:
    """What a batch is summed up in: its midmean, or the ``core_mean`` of readings that are ``coarse``."""
    return core_mean(samples, step_ns) if coarse(samples, step_ns) else midmean(samples)


def winsorised_mean(samples: Samples) -> float:
    """Mean with no sample above twenty times the median: it sees rare slow samples, and scales with them."""
    return float(np.minimum(samples, MOST_TIMES_MEDIAN * np.median(samples)).mean())


class SlowShare(NamedTuple):
    """The samples of a batch that take far longer than its median."""

    number: int
    times: float
    """Sum of what they take, in medians."""


def slow_share(samples: Samples) -> SlowShare:
    """The samples above one and a half medians."""
    multiples = samples / np.median(samples)
    slow = multiples[multiples > SLOW_TIMES_MEDIAN]
    return SlowShare(int(slow.size), float(slow.sum()))


def lag_one_autocorrelation(samples: Samples) -> float:
    """Correlation of each sample with the next, -1 to 1; 0 for fewer than three samples or no spread."""
    if samples.size < 3:
        return 0.0
    centred = samples - samples.mean()
    energy = float(centred @ centred)
    return float(centred[:-1] @ centred[1:]) / energy if energy > 0 else 0.0


def drift(samples: Samples) -> float:
    """Relative change from the first tenth of the batch to the last, by a line through ten batch medians.

    0 if the slope is not significant (t test, p < .01) or there are fewer than 20 samples.  Medians of
    batches, because tests on raw samples mistake serial correlation for drift.
    """
    if samples.size < ASSESSABLE:
        return 0.0
    medians = np.array([np.median(batch) for batch in np.array_split(samples, _BATCHES)])
    if np.ptp(medians) == 0:
        return 0.0
    slope, p = line(medians)
    return slope * (_BATCHES - 1) / float(medians.mean()) if p < _DRIFT_P else 0.0


def line(values: Samples) -> tuple[float, float]:
    """Slope of the least-squares line through equally spaced values, and its p-value (two-sided t test).

    As ``scipy.stats.linregress``, whose import alone takes as long as the measuring of a workload.
    """
    positions = np.arange(values.size) - (values.size - 1) / 2
    centred = values - values.mean()
    slope = float(positions @ centred) / float(positions @ positions)
    freedom = values.size - 2
    residual = float(((centred - slope * positions) ** 2).sum())
    if residual == 0:
        return slope, 0.0 if slope else 1.0
    t = slope / math.sqrt(residual / freedom / float(positions @ positions))
    return slope, 2 * float(scipy.special.stdtr(freedom, -abs(t)))


class Group(NamedTuple):
    """One of two clear groups of samples."""

    centre: float
    """Geometric mean, in the samples' unit."""
    share: float
    """Share of the samples without the slowest 5 %, 0 to 1."""


def modes(samples: Samples, step_ns: float = 0.0) -> int:
    """2 if the samples fall into two clear ``groups``, else 1."""
    return len(groups(samples, step_ns)) or 1


def groups(samples: Samples, step_ns: float = 0.0) -> tuple[Group, ...]:
    """The two groups that the samples fall into, the faster first; none if they are not clear, or of under 20 samples.

    Otsu's split of the log times without the slowest 5 %; two groups if their means lie more than 4 pooled standard
    deviations and more than 0.25 % apart and the smaller holds a tenth of the samples.  ``step_ns`` is the samples'
    resolution: two neighbouring clock ticks are one group.
    """
    if samples.size < ASSESSABLE:
        return ()
    ordered = np.sort(np.log(samples))[: math.ceil(samples.size * 0.95)]
    split = _otsu(ordered)
    if split == 0:
        return ()
    low, high = ordered[:split], ordered[split:]
    gap = float(high.mean() - low.mean())
    within = math.sqrt((low.size * low.var() + high.size * high.var()) / ordered.size)
    quantisation = step_ns / float(np.median(samples)) * _QUANTISATION_SD
    minor = min(low.size, high.size) / ordered.size
    clear = gap > _MODE_GAP_SD * max(within, quantisation) and gap > _LEAST_GAP
    if not clear or minor < _MODE_MINOR_SHARE:
        return ()
    return tuple(Group(math.exp(one.mean()), one.size / ordered.size) for one in (low, high))


def outlier_share(samples: Samples, step_ns: float = 0.0) -> float:
    """Share of samples above the third quartile by more than three interquartile ranges, 1 % and 3 us, 0 to 1.

    A range below three steps of the timer counts as three: a few ticks more are no outliers.
    """
    lower, upper = np.quantile(samples, [0.25, 0.75])
    spread = max(upper - lower, OUTLIER_STEPS * step_ns)
    return float(np.mean(samples > upper + max(3 * spread, LEAST_OUTLYING * upper, LEAST_OUTLYING_NS)))


def alternates(samples: Samples, step_ns: float = 0.0) -> bool:
    """True if the samples, in the order they were taken, go to and fro between two clear levels at most 4 % apart.

    Such a workload neither drifts nor has outliers: it comes back to where it was.  (On H200s a copy of 153 us
    alternates between 152.4 and 154.4 us every ten to twenty launches, and one of 57 us between 56.3 and 57.9.)
    """
    found = groups(samples, step_ns)
    if not found or found[1].centre > found[0].centre * (1 + MOST_ALTERNATING):
        return False
    slow = samples > math.sqrt(found[0].centre * found[1].centre)
    return int(np.count_nonzero(slow[1:] != slow[:-1])) > 1


def _otsu(ordered: Samples) -> int:
    """Size of the lower group in the split with the largest variance between groups; 0 if all are equal."""
    if ordered[0] == ordered[-1]:
        return 0
    sizes = np.arange(1, ordered.size)
    sums = np.cumsum(ordered)[:-1]
    below = sums / sizes
    above = (ordered.sum() - sums) / (ordered.size - sizes)
    between = sizes * (ordered.size - sizes) * (above - below) ** 2
    return int(sizes[np.argmax(between)])
