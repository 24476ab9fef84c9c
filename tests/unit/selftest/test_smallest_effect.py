"""The smallest slowdown that is found: simulated decisions on blocks of a given spread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_gpuperf.judge.decision import Decision, decide
from pytest_gpuperf.model.limits import LIMITS, Limits
from pytest_gpuperf.selftest.run import ALPHA, smallest_effect

TIGHT = LIMITS


def share_found(effect: float, spread: float, limits: Limits, runs: int = 200) -> float:
    """By ``decide`` itself, block by block."""
    random, found = np.random.default_rng(7), 0
    for _ in range(runs):
        r: list[float] = []
        decided = None
        while decided is None and len(r) < 60:
            r.append(random.normal(math.log1p(effect), spread))
            decided = decide(r, limits, ALPHA)
        found += decided is Decision.SLOWER
    return found / runs


@pytest.mark.parametrize("limits", [TIGHT, Limits(0.01, 0.02)])
def test_smallest_effect_is_found_by_the_decision_itself(limits: Limits) -> None:
    effect = smallest_effect(0.002, 60, limits, ALPHA)
    assert effect is not None
    assert share_found(effect, 0.002, limits) >= 0.97
    assert share_found(limits.tolerance + (effect - limits.tolerance) * 0.7, 0.002, limits) < 0.97


def test_smallest_effect_grows_with_the_spread_and_shrinks_with_the_budget() -> None:
    found = [smallest_effect(spread, 60, TIGHT, ALPHA) for spread in (0.0005, 0.002, 0.005, 0.02)]
    assert found == sorted(found, key=lambda effect: effect or 1.0)
    assert found[0] == pytest.approx(0.0067, rel=0.05)
    short, long = (smallest_effect(0.005, blocks, TIGHT, ALPHA) or 1.0 for blocks in (28, 128))
    assert short > long


def test_no_effect_is_found_where_blocks_are_few_or_wild() -> None:
    assert smallest_effect(0.001, 5, TIGHT, ALPHA) is None
    assert smallest_effect(2.0, 28, TIGHT, ALPHA) is None
