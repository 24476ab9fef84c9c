"""Steps of a series."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_gpuperf.judge.change_points import steps_of


def test_a_quiet_series_has_no_steps() -> None:
    found = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        found += bool(steps_of(list(np.exp(draw.normal(0, 0.01, 40)))))
    assert found <= 2


@pytest.mark.parametrize("at", [3, 15, 27])
def test_a_step_is_found_where_it_is(at: int) -> None:
    draw = np.random.default_rng(at)
    values = np.exp(draw.normal(0, 0.002, 30))
    values[at:] *= 1.03
    (step,) = steps_of(list(values))
    assert step.at == at
    assert step.ratio == pytest.approx(1.03, abs=0.003)


def test_two_steps_are_two() -> None:
    values = [10.0, 10.01, 10.0, 9.99, 11.0, 11.01, 10.99, 11.0, 10.0, 10.0, 10.01, 9.99]
    assert [step.at for step in steps_of(values)] == [4, 8]


def test_exact_figures_step_at_each_change() -> None:
    assert [(step.at, step.ratio) for step in steps_of([40, 40, 42, 40], exact=True)] == [(2, 1.05), (3, 40 / 42)]


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [5.0] * 20])
def test_too_little_is_no_step(values: list[float]) -> None:
    assert steps_of(values) == []


def test_figures_have_to_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        steps_of([1.0, 0.0])


def test_a_step_has_the_p_value_of_the_t_test_of_its_two_sides() -> None:
    draw = np.random.default_rng(5)
    values = np.exp(draw.normal(0, 0.02, 9))
    values[4:] *= 1.5
    (step,) = steps_of(list(values))
    before, after = np.log(values[:4]), np.log(values[4:])
    assert step.at == 4
    assert step.p_value == pytest.approx(stats.ttest_ind(before, after).pvalue, rel=1e-9)
    assert step.ratio == pytest.approx(math.exp(after.mean() - before.mean()))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_a_ratio_is_that_of_two_levels_whatever_their_unit(scale: float) -> None:
    values = [scale * value for value in (10.0, 10.01, 10.0, 9.99, 11.0, 11.01, 10.99, 11.0)]
    (step,) = steps_of(values)
    assert (step.at, step.ratio) == (4, pytest.approx(1.1, abs=1e-3))


def test_a_step_too_small_to_tell_is_none_however_sure() -> None:
    values = [1.0, 1.00001] * 20
    assert steps_of([*values, *(1.0019 * value for value in values)]) == []
    assert len(steps_of([*values, *(1.0021 * value for value in values)])) == 1
