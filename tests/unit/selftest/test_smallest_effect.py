"""The smallest slowdown that is found: simulated decisions on blocks of a given spread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_gpuperf.judge.decision import Decision, decide
from pytest_gpuperf.model.limits import TIGHT, Limits
from pytest_gpuperf.selftest.run import ALPHA, smallest_effect


def share_found(effect: float, limits: Limits) -> float:
    """By ``decide`` itself, block by block."""
    random, found, runs = np.random.default_rng(7), 0, 100
    for _ in range(runs):
        r: list[float] = []
        decided = None
        while decided is None and len(r) < 60:
            r.append(random.normal(math.log1p(effect), 0.002))
            decided = decide(r, limits, ALPHA)
        found += decided is Decision.SLOWER
    return found / runs


@pytest.mark.parametrize("limits", [TIGHT, Limits(0.01, 0.02)])
def test_smallest_effect_is_found_by_the_decision_itself(limits: Limits) -> None:
    effect = smallest_effect(0.002, 60, limits, ALPHA)
    assert effect is not None
    assert share_found(effect, limits) >= 0.97
    assert share_found(limits.tolerance + (effect - limits.tolerance) * 0.7, limits) < 0.97


def test_smallest_effect_grows_with_the_spread_and_shrinks_with_the_budget() -> None:
    least, more, short = (smallest_effect(*given, TIGHT, ALPHA) for given in ((0.0005, 60), (0.005, 60), (0.005, 28)))
    assert least == pytest.approx(0.0067, rel=0.05)
    assert least < more < short  # type: ignore[operator]


def test_no_effect_is_found_where_blocks_are_few_or_wild() -> None:
    assert smallest_effect(0.001, 5, TIGHT, ALPHA) is None
    assert smallest_effect(2.0, 28, TIGHT, ALPHA) is None
