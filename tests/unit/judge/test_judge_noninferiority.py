"""The screen acquits or escalates; it is the textbook t test with a shift and an allowance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_gpuperf.judge.log_times import InvalidTimesError, log_times
from pytest_gpuperf.judge.noninferiority import noninferiority_test

times = st.lists(st.floats(900.0, 1100.0), min_size=2, max_size=12)


@given(times, times, st.floats(0.001, 0.2))
def test_without_omega_the_screen_is_the_shifted_pooled_t_test(
    old: list[float], new: list[float], epsilon: float
) -> None:
    a, b = np.log(old), np.log(new)
    shifted = b.mean() - math.log1p(epsilon)
    if a.std() + b.std() < 1e-6:
        return
    reference = stats.ttest_ind_from_stats(
        shifted, b.std(ddof=1), b.size, a.mean(), a.std(ddof=1), a.size, equal_var=True, alternative="less"
    )
    if abs(reference.pvalue - 0.005) > 1e-9:
        assert noninferiority_test(old, new, epsilon=epsilon, omega=0.0, beta=0.005) == bool(reference.pvalue < 0.005)


def test_worked_example() -> None:
    old, new = [100.0, 100.2, 99.9, 100.1], [100.3, 100.5]
    a, b = np.log(old), np.log(new)
    pooled = (3 * a.var(ddof=1) + b.var(ddof=1)) / 4
    error = math.sqrt(pooled * (1 / 4 + 1 / 2) + 2 * 0.001**2)
    bound = math.expm1(b.mean() - a.mean() + 4.604094871415897 * error)
    assert bound > 0.01
    assert not noninferiority_test(old, new, epsilon=0.01, omega=0.001)
    assert not noninferiority_test(old, new, epsilon=bound * (1 - 1e-9), omega=0.001)
    assert noninferiority_test(old, new, epsilon=bound * (1 + 1e-9), omega=0.001)


def test_the_screen_has_no_way_to_fail_anybody() -> None:
    assert noninferiority_test([100.0] * 10, [200.0] * 4, epsilon=0.01, omega=0.001) is False


def test_two_rounds_against_one_is_the_least_that_can_pass() -> None:
    assert noninferiority_test([100.0, 100.0], [100.0], epsilon=0.5, omega=0.001)
    assert not noninferiority_test([100.0], [100.0], epsilon=0.5, omega=0.001)
    assert not noninferiority_test([100.0], [100.0, 100.0], epsilon=math.inf, omega=0.001)


def test_zero_variance_without_omega_decides_by_the_difference() -> None:
    assert noninferiority_test([100.0] * 3, [100.9] * 2, epsilon=0.01, omega=0.0)
    assert not noninferiority_test([100.0] * 3, [101.1] * 2, epsilon=0.01, omega=0.0)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 0.0, -5.0])
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_what_is_no_time_is_refused_by_name(wrong: float, side: str) -> None:
    good, bad = [100.0, 101.0], [100.0, wrong]
    with pytest.raises(InvalidTimesError, match=rf"{side} rounds: entry 2 of 2 is .* not a time"):
        noninferiority_test(
            bad if side == "baseline" else good,
            bad if side == "candidate" else good,
            epsilon=0.01,
        )


def test_no_times_at_all_are_refused() -> None:
    with pytest.raises(InvalidTimesError, match="at least one"):
        log_times([], "baseline rounds")


@given(times, times, st.floats(0.01, 100.0), st.floats(0.001, 0.5))
def test_scaling_all_times_changes_nothing(old: list[float], new: list[float], scale: float, epsilon: float) -> None:
    within, beyond = (noninferiority_test(old, new, epsilon=epsilon * factor) for factor in (1 - 1e-6, 1 + 1e-6))
    scaled = noninferiority_test([scale * x for x in old], [scale * x for x in new], epsilon=epsilon)
    assert within <= scaled <= beyond


def test_the_screen_misses_a_regression_of_epsilon_no_more_often_than_beta() -> None:
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(4000):
        old = np.exp(rng.normal(0, 0.002) + rng.normal(0, 0.001, 10)) * 1000
        new = np.exp(rng.normal(0, 0.002) + rng.normal(0, 0.001, 4)) * 1010
        missed += noninferiority_test(old.tolist(), new.tolist(), epsilon=0.01, omega=0.002)
    assert missed <= 4000 * 0.005 + 3 * math.sqrt(4000 * 0.005)
