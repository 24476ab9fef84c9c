"""Where a series of figures changes its level: to report, never to gate.

Seeded binary segmentation (Kovacs, Li, Buehlmann and Munk, 2022): of intervals of many lengths the split with the
smallest p-value of Student's t-test, if that is below a bound shared by all splits (Bonferroni); then the same on
either side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 1e-3
"""Chance that a series without a step has one found in it, if its points scatter normally."""
LEAST_POINTS = 3
"""On either side of a step of figures that scatter."""
LEAST_STEP = 0.002
"""Log ratio: a smaller step of times is not told."""


class LevelStep(NamedTuple):
    at: int
    """Index of the first point on the new level."""
    ratio: float
    """New level over old one."""
    p_value: float
    """0 where there is no scatter."""


def steps_of(values: Sequence[float], *, exact: bool = False) -> list[LevelStep]:
    """Steps of a series of positive figures, in order; of ``exact`` ones, which do not scatter, each change is one.

    Raises ``ValueError`` for a figure that is not positive.
    """
    if any(not value > 0 for value in values):
        raise ValueError("change points need positive figures")
    if exact:
        pairs = enumerate(itertools.pairwise(values), start=1)
        return [LevelStep(at, after / before, 0.0) for at, (before, after) in pairs if before != after]
    if not values:
        return []
    logs = [math.log(value) for value in values]
    cuts = sorted(_cuts(logs, 0, len(logs), LEVEL / len(logs) ** 2))
    edges = [0, *(at for at, _ in cuts), len(logs)]
    means = [sum(logs[low:high]) / (high - low) for low, high in itertools.pairwise(edges)]
    steps = zip(cuts, itertools.pairwise(means), strict=True)
    return [LevelStep(at, math.exp(new - old), p) for (at, p), (old, new) in steps if abs(new - old) >= LEAST_STEP]


def _cuts(logs: Sequence[float], low: int, high: int, level: float) -> list[tuple[int, float]]:
    """Indexes where a new level begins, between ``low`` and ``high``, with their p-values."""
    best = min((found for begin, end in _intervals(low, high) if (found := _split(logs, begin, end))), default=None)
    if best is None or best[0] > level:
        return []
    p, at = best
    return [*_cuts(logs, low, at, level), (at, p), *_cuts(logs, at, high, level)]


def _intervals(low: int, high: int) -> Iterator[tuple[int, int]]:
    """The whole, and parts of half the length each time that overlap by half: a short excursion fills one of them."""
    length = high - low
    while length >= 2 * LEAST_POINTS:
        yield from ((begin, begin + length) for begin in range(low, high - length + 1, max(1, length // 2)))
        length = length * 2 // 3


def _split(logs: Sequence[float], low: int, high: int) -> tuple[float, int] | None:
    """The smallest p-value of a split of one interval, and where; None without scatter worth telling."""
    from scipy.special import stdtr  # noqa: PLC0415 half a second, for long histories alone

    part = np.asarray(logs[low:high])
    if np.ptp(part) < LEAST_STEP:
        return None
    left = np.arange(LEAST_POINTS, len(part) - LEAST_POINTS + 1)
    right = len(part) - left
    centred = part - part.mean()
    sums, squares = np.cumsum(centred)[left - 1], float(centred @ centred)
    between = sums**2 / left + sums**2 / right
    within = np.maximum(squares - between, 1e-15)
    t = np.abs(sums / left + sums / right) / np.sqrt(within / (len(part) - 2) * (1 / left + 1 / right))
    p = 2 * stdtr(len(part) - 2, -t)
    best = int(np.argmin(p))
    return float(p[best]), low + int(left[best])
