"""Slower in several pairs of processes: is that more than processes that run the same are apart?

Within a pair of processes the ratio is soon known to a tenth of a per cent, but it holds what its two processes have
for life, such as where their memory lies.  So each pair is one observation, and a t test over the pairs decides.
Two pairs say little about how far pairs scatter: their variance is moderated by what the record's processes were apart,
and by a prior (G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in
microarray experiments", Statistical Applications in Genetics and Molecular Biology 3(1), 2004, section 3).
See docs/explanation/statistics.md, "Paired processes".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from pytest_gpuperf.judge.two_sample import ProcessSpread

PRIOR = ProcessSpread(deviation=0.0011, freedom=2)
"""By the 794 records of the example suite on H200s and H100s: half scatter by less than 0.08 %, a tenth by more than
0.44 %, and so wide a range is worth two degrees of freedom."""
PAIRS_ALPHA = 1e-3
"""Rate at which pairs of equal processes are called slower, and those that differ by the detection bound not slower, by
the spread that is reckoned with."""
MOST_PAIRS = 5
"""Slower in each of so many is proof, however far apart they are: by the records above equal processes come out so in
one of 1,800 (H100) to 3,800 (H200)."""


def proven_by_pairs(ratios: Sequence[float], delta: float, known: ProcessSpread) -> bool:
    """Whether ``ratios``, candidate over baseline of each pair of processes, are above ``1 + delta`` by more than luck.

    ``known`` is the spread of the record's processes.  A single pair proves nothing.
    """
    logs = np.log(np.asarray(ratios, dtype=float)) - math.log1p(delta)
    if len(logs) < 2 or len(logs) >= MOST_PAIRS:
        return len(logs) >= MOST_PAIRS and bool(logs.min() > 0)
    return bool(logs.mean() > _margin(logs, known))


def disproven_by_pairs(ratios: Sequence[float], bound: float, known: ProcessSpread) -> bool:
    """Whether ``ratios``, candidate over baseline of each pair of processes, are below ``1 + bound`` by more than luck.

    One of them is enough where the record has told how little its processes are apart.
    """
    logs = np.log(np.asarray(ratios, dtype=float)) - math.log1p(bound)
    return bool(logs.mean() < -_margin(logs, known))


def lean_slower(ratios: Sequence[float], delta: float) -> bool:
    """Whether ``ratios``, candidate over baseline of each pair of processes, are above ``1 + delta`` in the mean."""
    return bool(np.log(np.asarray(ratios, dtype=float)).mean() > math.log1p(delta))


def _margin(logs: NDArray[np.float64], known: ProcessSpread) -> float:
    """What the mean of so many pairs is off by in one of 1,000 cases, to one side."""
    squares = PRIOR.freedom * PRIOR.deviation**2 + known.freedom * known.deviation**2
    squares += float(((logs - logs.mean()) ** 2).sum()) / 2  # a pair differs by two processes
    freedom = PRIOR.freedom + known.freedom + len(logs) - 1
    error = math.sqrt(2 * squares / freedom / len(logs))
    return float(-scipy.special.stdtrit(freedom, PAIRS_ALPHA) * error)


def in_pairs(ratios: Sequence[float]) -> str:
    """``slower in 3 pairs of processes, by 1.1 to 1.9 %``"""
    least, most = (100 * (one - 1) for one in (min(ratios), max(ratios)))
    return f"slower in {len(ratios)} pairs of processes, by {least:.1f} to {most:.1f} %"
