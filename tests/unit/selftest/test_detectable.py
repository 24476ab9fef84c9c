"""The smallest effect: what is predicted from blocks of equal kernels is what the gate then finds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pytest_gpuperf.judge.block_decision import judge_many
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.selftest.detectable import TOLERANCES, Detectable, smallest_effect

from pytest_gpuperf.timing.blocks import Noise

ALPHA = 1.5e-6


def found(r: Any, **changes: Any) -> Detectable | None:
    settings = {
        "size": 6,
        "noise": Noise(0.001),
        "block_s": 0.005,
        "placement_sd": 0.0,
        "alpha": ALPHA,
        **changes,
    }
    return smallest_effect("k", 1e5, r, **settings)


def test_too_few_blocks_to_reach_the_threshold_find_nothing() -> None:
    assert found(np.random.default_rng(1).normal(0, 0.001, 100), block_s=10.0) is None


@pytest.mark.parametrize("sd", [0.0005, 0.002, 0.005])
def test_what_is_predicted_is_what_the_gate_finds_and_less_is_not(sd: float) -> None:
    rng = np.random.default_rng(5)
    predicted = found(rng.normal(0, sd, 4000), noise=Noise(sd * math.sqrt(6 / 2.4)), block_s=0.0)
    assert predicted is not None
    assert detection(predicted, predicted.effect) >= 0.925
    assert detection(predicted, 0.9 * predicted.effect) < 0.95


def detection(predicted: Detectable, effect: float) -> float:
    """Share of runs of fresh normal blocks that end SLOWER in two processes."""
    rng = np.random.default_rng(6)
    policy = Policy(delta=predicted.tolerance, epsilon=2 * predicted.tolerance, alpha=ALPHA)
    both = np.ones(4000, dtype=bool)
    for process in (policy, policy.confirming()):
        codes, _ = judge_many(math.log1p(effect) + rng.normal(0, predicted.block_sd, (4000, 128)), process)
        both &= codes == 0
    return float(both.mean())


def test_noisier_kernels_can_be_gated_less_finely() -> None:
    rng = np.random.default_rng(6)
    effects = []
    for sd in (0.0005, 0.002, 0.008):
        one = found(rng.normal(0, sd, 400), noise=Noise(sd * math.sqrt(6 / 2.4)))
        assert one is not None
        effects.append(one.effect)
    assert effects == sorted(effects)


def test_a_tolerance_is_never_below_what_a_process_adds() -> None:
    quiet = np.random.default_rng(7).normal(0, 0.0003, 400)
    free, placed = found(quiet), found(quiet, placement_sd=0.001)
    assert free is not None
    assert placed is not None
    assert free.tolerance < 0.003 <= placed.tolerance


def test_a_bias_between_the_sides_is_not_taken_for_an_effect() -> None:
    biased = found(np.random.default_rng(8).normal(0.004, 0.0003, 400))
    assert biased is not None
    assert biased.tolerance == 0.005


@pytest.mark.parametrize(("r", "changes"), [([0.0] * 19, {}), ([0.0] * 40, {"placement_sd": 0.1})])
def test_nothing_is_claimed_without_blocks_or_a_safe_tolerance(r: list[float], changes: dict[str, float]) -> None:
    assert found(r, **changes) is None


def test_equal_blocks_leave_the_finest_tolerance() -> None:
    one = found([0.0] * 40)
    assert one is not None
    assert one.tolerance == TOLERANCES[0]
    assert one.effect == pytest.approx(TOLERANCES[0], rel=0.03), "every block votes slower"
