"""The smallest slowdown that can be gated on this machine, from blocks of kernels paired with themselves.  Pure.

A kernel slower by ``x`` has the same block values, moved by ``ln(1 + x)``.  So the measured values say how often a
block would vote *slower* at each effect, and ``eprocess.crossing_probability`` says exactly how often such votes
reach the threshold; no distribution is assumed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from pytest_gpuperf.evidence import Record
from pytest_gpuperf.judge.eprocess import crossing_probability
from pytest_gpuperf.judge.votes import PairedPolicy
from pytest_gpuperf.sampling.pairs import block_size

DETECTION = 0.95
TOLERANCES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05)
LEAST_BLOCKS = 20
BUDGET_S = 5.0
"""Wall-clock seconds that the gate gives a workload by default."""
SAFE_PLACEMENT_SDS = 3.0
"""A tolerance below so many standard deviations of what a process adds would fail kernels for where they lie."""


class Detectable(Record, frozen=True):
    """The smallest effect that a kernel's gate finds in 95 of 100 runs."""

    kernel: str
    duration_ns: float
    tolerance: float
    """To be set for it (``tolerance=``), a fraction."""
    effect: float
    """A fraction: .002 for +0.2 %."""
    block_sd: float
    """Of block values at this tolerance's block size."""


def smallest_effect(
    kernel: str,
    duration_ns: float,
    r: Sequence[float],
    *,
    size: int,
    sigma: float,
    rho1: float,
    block_s: float,
    placement_sd: float,
    alpha: float,
) -> Detectable | None:
    """The best tolerance and what it finds; None with fewer than 20 blocks or where none is safe.

    ``r`` are block values of the kernel against itself, taken with ``size`` samples a side; ``sigma`` and ``rho1``
    are the pilot's, ``block_s`` is the wall-clock time of a block.  A finer tolerance takes larger blocks: their
    values scatter by less in proportion to the square root, and fewer of them fit into the time budget.  ``alpha`` is
    the workload's share of the run's error rate.
    """
    if len(r) < LEAST_BLOCKS:
        return None
    values = np.asarray(r)
    bias = abs(float(values.mean())) + 2 * float(values.std(ddof=1)) / math.sqrt(values.size)
    found = []
    for tolerance in TOLERANCES:
        if math.log1p(tolerance) < max(SAFE_PLACEMENT_SDS * placement_sd, bias):
            continue
        larger = block_size(sigma, rho1, tolerance / 2) / size
        rate = needed_rate(alpha, _blocks_within_budget(block_s * larger))
        if rate is None:
            continue
        scaled = values / math.sqrt(larger)
        moved = math.log1p(tolerance) - float(np.quantile(scaled, 1 - rate))
        found.append(
            Detectable(
                kernel=kernel, duration_ns=duration_ns, tolerance=tolerance, effect=math.expm1(moved),
                block_sd=float(scaled.std(ddof=1)),
            )
        )  # fmt: skip
    return min(found, key=lambda one: one.effect, default=None)


def _blocks_within_budget(block_s: float) -> int:
    return max(1, min(PairedPolicy().blocks_max, int(BUDGET_S / block_s) if block_s > 0 else PairedPolicy().blocks_max))


@functools.lru_cache(maxsize=64)
def needed_rate(alpha: float, blocks: int, detection: float = DETECTION) -> float | None:
    """Least share of blocks voting *slower* at which both processes find it with probability ``detection``.

    ``blocks`` is how many there may be in each process; None if even a unanimous vote of them does not reach.
    """
    policy = PairedPolicy(alpha=alpha)
    thresholds = [-math.log(each.alpha) for each in (policy, policy.confirming())]

    def detected(rate: float) -> float:
        return math.prod(crossing_probability(rate, threshold, blocks) for threshold in thresholds)

    low, high = 0.5, 1.0
    if detected(high) < detection:
        return None
    while high - low > 1e-4:
        rate = (low + high) / 2
        low, high = (low, rate) if detected(rate) >= detection else (rate, high)
    return high
