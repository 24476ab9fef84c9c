"""The tick of a clock is read off its readings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.device.timers.resolution import step_of, tick_of


def readings(step: float, *, count: int = 200, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return step * np.round(generator.uniform(3000, 60_000, count) / step)


@pytest.mark.parametrize("step", [1000.0, 500.0, 32.0, 1.0])
def test_tick_of_a_regular_grid_is_its_step(step: float) -> None:
    assert tick_of(readings(step)) == pytest.approx(step, rel=1e-3)


@given(seed=st.integers(0, 1000))
def test_tick_survives_rounding_to_whole_nanoseconds(seed: int) -> None:
    jitter = np.random.default_rng(seed).integers(-1, 2, 200)
    assert tick_of(readings(32.0, seed=seed) + jitter) == pytest.approx(32.0, abs=0.1)


def test_tick_of_sparse_or_fine_readings_is_that_of_the_grid_they_share() -> None:
    assert tick_of([128.0, 256.0, 416.0, 544.0, 704.0, 832.0]) == pytest.approx(32.0)
    assert tick_of(np.random.default_rng(1).integers(3000, 6000, 100).astype(float)) <= 3


def test_equal_readings_tell_no_tick() -> None:
    with pytest.raises(ValueError, match="all of these are equal"):
        tick_of([640.0, 640.0])


def test_averages_of_many_launches_resolve_below_the_tick_and_single_ones_to_it() -> None:
    assert step_of([2500.0 + 32 * n / 100 for n in (0, 3, 7, 8, 12)], 32.0) < 1
    assert step_of(readings(32.0, count=30), 32.0) == pytest.approx(32.0, abs=0.1)
    assert step_of([640.0, 640.0, 640.0], 32.0) == 32.0
    assert step_of([640.0, 640.3, 640.7], 32.0) == 32.0, "equal but for rounding, one by one"


@given(st.lists(st.floats(0.01, 0.4), min_size=6, max_size=60).filter(lambda gaps: sum(gaps) > 1.1))
def test_a_steady_kernel_s_averages_that_lie_close_together_are_not_taken_for_one_tick(gaps: list[float]) -> None:
    """Of 400 launches of 2.5 us each: taken for steps of 32 ns, such rounds would be refused as too short."""
    assert step_of((2500 + np.cumsum([0.0, *gaps])).tolist(), 32.0) <= 0.5
