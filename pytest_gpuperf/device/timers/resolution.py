"""The step of a clock, read off what it said.

Measured, never assumed: GPUs tick in 32 ns or in 1 us, by their generation and the tool that reads them.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ROUNDING_NS = 0.5
"""Two readings closer than this are one: event times pass through a 32-bit float of milliseconds."""
JITTER_NS = 1.0
"""CUPTI converts ticks to whole nanoseconds, so a reading may sit this far off the grid."""
TICK_SLACK_NS = 0.5
"""By so much readings of one workload may stray further from the grid of a tick that was measured on others."""
_CANDIDATES = 64


def tick_of(samples_ns: Sequence[float]) -> float:
    """The step of the clock that read ``samples_ns``, in nanoseconds.

    The step of the coarsest grid that holds all of them, or else the smallest positive gap between sorted unique
    samples.  The gap alone misleads: a 32 ns clock, rounded to whole nanoseconds, shows gaps of 1, 31, 32 and 33.
    Wants 50 or more readings of intervals of varied length.  Raises ``ValueError`` if all are equal.
    """
    values = _distinct(np.sort(np.asarray(samples_ns, dtype=np.float64)))
    if values.size < 2:
        raise ValueError("a tick needs readings of at least two different lengths; all of these are equal")
    gaps = np.unique(np.round(np.diff(values), 3))
    candidates = np.unique(np.concatenate((gaps, np.diff(gaps))))
    coarse = candidates[candidates > 8 * JITTER_NS][:_CANDIDATES] if values.size > 4 else gaps[:1]
    grids = [float(step) for step in coarse if _on_grid(values, float(step))]
    if not grids:
        return float(gaps[0])
    # averaged over all gaps: rounding of a single gap does not count
    return float((values[-1] - values[0]) / np.round(np.diff(values) / max(grids)).sum())


def step_of(samples_ns: Sequence[float], tick_ns: float) -> float:
    """Resolution of these samples, in nanoseconds: at most the clock's ``tick_ns``.

    A timer that averages N launches in one sample resolves to a part of its tick; the samples show it, unless they are
    all equal but for rounding.  Samples that lie close together over more than rounding spans have no step to be seen.
    """
    ordered = np.sort(np.asarray(samples_ns, dtype=np.float64))
    distinct = _distinct(ordered)
    if distinct.size > 1:  # few on the grid of the clock would show their rounding alone
        on_grid = tick_ns > 8 * JITTER_NS and _on_grid(distinct, tick_ns, TICK_SLACK_NS)
        return tick_ns if on_grid else min(tick_ns, tick_of(samples_ns))
    apart = ordered.size and ordered[-1] - ordered[0] > 2 * ROUNDING_NS
    return min(tick_ns, ROUNDING_NS) if apart else tick_ns


def _distinct(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drops readings that differ from their predecessor by rounding only."""
    keep = np.concatenate(([True], np.diff(ordered) > ROUNDING_NS)) if ordered.size else np.zeros(0, dtype=bool)
    return ordered[keep]


def _on_grid(values: NDArray[np.float64], step: float, slack_ns: float = 0.0) -> bool:
    offsets = values - values[0]
    return bool(np.ptp(offsets - step * np.round(offsets / step)) <= 2 * JITTER_NS + slack_ns)
