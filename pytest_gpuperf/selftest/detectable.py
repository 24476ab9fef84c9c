"""The smallest slowdown that can be gated on this machine, from blocks of kernels paired with themselves.  Pure.

Runs of the gate are drawn from the measured values, moved by ``ln(1 + x)`` and judged; no distribution is assumed.
"""

from __future__ import annotations

import math

import numpy as np

from pytest_gpuperf.judge.block_decision import judge_many
from pytest_gpuperf.judge.block_scores import Ratios, checked
from pytest_gpuperf.judge.log_times import Logs
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.timing.blocks import Noise, block_size

DETECTION = 0.95
TOLERANCES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05)
LEAST_BLOCKS = 20
LEAST_LONG_BLOCKS = 5
BUDGET_S = 5.0
"""Wall-clock seconds that the gate gives a workload by default."""
RUNS = 2000
SEED = 1
PRECISION = 0.02
"""Relative, of the effect."""
MOST_EFFECT = 0.5
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
    """Standard deviation of block values at this tolerance's block size."""


def smallest_effect(
    kernel: str,
    duration_ns: float,
    r: Ratios,
    *,
    size: int,
    noise: Noise | None,
    block_s: float,
    placement_sd: float,
    alpha: float,
) -> Detectable | None:
    """The best tolerance and what it finds; None with fewer than 20 blocks, 5 of long launches, or where none is safe.

    ``r`` are block values of the kernel against itself, taken with ``size`` samples a side, or of long launches those
    of their pairs; ``noise`` is the pilot's, None for long launches, whose blocks are all of one size;
    ``block_s`` the wall-clock time of a block, ``alpha`` the workload's share of the run's error rate.  A finer
    tolerance takes larger blocks: their values scatter by less, by the square root, and fewer fit into the budget.
    """
    if len(r) < (LEAST_BLOCKS if noise is not None else LEAST_LONG_BLOCKS):
        return None
    values = checked(r)
    centres = np.median(values, axis=1)
    bias = abs(float(centres.mean())) + 2 * float(centres.std(ddof=1)) / math.sqrt(centres.size)
    best: Detectable | None = None
    for tolerance in TOLERANCES:
        if math.log1p(tolerance) < max(SAFE_PLACEMENT_SDS * placement_sd, bias):
            continue
        if best is not None and best.effect <= tolerance:
            break
        larger = block_size(noise, tolerance / 2) / size if noise is not None else 1.0
        policy = Policy(delta=tolerance, epsilon=2 * tolerance, alpha=alpha, blocks_max=_most(block_s * larger))
        scaled = values / math.sqrt(larger)
        effect = detected_effect(scaled, policy)
        if effect is not None and (best is None or effect < best.effect):
            spread = float(np.median(scaled, axis=1).std(ddof=1))
            best = Detectable(
                kernel=kernel, duration_ns=duration_ns, tolerance=tolerance, effect=effect, block_sd=spread
            )
    return best


def _most(block_s: float) -> int:
    """Blocks that the gate takes at most: by number or by its time budget."""
    most = Policy().blocks_max
    return max(1, min(most, int(BUDGET_S / block_s))) if block_s > 0 else most


def detected_effect(values: Logs, policy: Policy) -> float | None:
    """Least effect (a fraction) that is SLOWER in both processes in 95 of 100 runs; None above 50 %."""
    draws = np.random.default_rng(SEED).choice(checked(values), (RUNS, policy.blocks_max))
    low, high = policy.delta, MOST_EFFECT
    if _detection(draws, high, policy) < DETECTION:
        return None
    while high / low > 1 + PRECISION:
        effect = math.sqrt(low * high)
        low, high = (low, effect) if _detection(draws, effect, policy) >= DETECTION else (effect, high)
    return high


def _detection(draws: Logs, effect: float, policy: Policy) -> float:
    """Probability that a run ends SLOWER in the first process and in the confirming one."""
    moved = draws + math.log1p(effect)
    return math.prod(float((judge_many(moved, each)[0] == 0).mean()) for each in (policy, policy.confirming()))
