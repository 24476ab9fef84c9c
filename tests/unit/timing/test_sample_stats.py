"""Centre, correlation, drift, modes and outliers of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from pytest_gpuperf.timing import sample_stats

times = hnp.arrays(np.float64, st.integers(1, 60), elements=st.floats(1.0, 1e9))


def normal(count: int, seed: int, sd: float = 0.005) -> np.ndarray:
    return 10_000 * np.exp(sd * np.random.default_rng(seed).standard_normal(count))


@given(times)
def test_midmean_is_the_trimmed_mean(samples: np.ndarray) -> None:
    assert sample_stats.midmean(samples) == stats.trim_mean(samples, 0.25)


@given(hnp.arrays(np.float64, st.integers(3, 20), elements=st.floats(1.0, 2.0)))
def test_the_line_is_that_of_scipy(values: np.ndarray) -> None:
    assume(np.ptp(values) > 1e-6)
    expected = stats.linregress(np.arange(values.size), values)
    assume(abs(expected.rvalue) < 1 - 1e-9)  # beyond, both are rounding
    slope, p = sample_stats.line(values)
    assert slope == pytest.approx(expected.slope, abs=1e-12)
    assert p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-9)


def test_a_line_through_what_lies_on_one_is_certain() -> None:
    assert sample_stats.line(np.array([1.0, 2.0, 3.0, 4.0])) == (1.0, 0.0)
    assert sample_stats.line(np.ones(5)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("samples", "centre"),
    [([7.0], 7.0), ([1.0, 9.0], 5.0), ([1.0, 2.0, 3.0, 4.0, 100.0], 3.0), ([9.0, 1.0, 2.0, 4.0, 3.0, 8.0, 5.0], 4.4)],
)
def test_midmean_is_the_trimmed_mean_of_r(samples: list[float], centre: float) -> None:
    """``mean(x, trim = .25)`` of R drops floor(n / 4) samples at either end; worked out by hand."""
    assert sample_stats.midmean(np.array(samples)) == pytest.approx(centre)


@given(times, st.randoms())
def test_midmean_does_not_depend_on_order(samples: np.ndarray, shuffle: object) -> None:
    mixed = samples.tolist()
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    assert sample_stats.midmean(np.array(mixed)) == pytest.approx(sample_stats.midmean(samples))


@given(st.integers(0, 1000))
def test_midmean_is_not_moved_by_24_percent_of_wild_samples(seed: int) -> None:
    samples = normal(100, seed)
    wild = samples.copy()
    wild[:24] = 1e9
    lower, upper = np.quantile(samples, [0.25, 0.75])
    assert abs(sample_stats.midmean(wild) - sample_stats.midmean(samples)) < upper - lower


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_lag_one_autocorrelation_is_that_of_the_process(rho: float) -> None:
    noise = np.random.default_rng(3).standard_normal(20_000)
    chain = np.zeros_like(noise)
    for index in range(1, noise.size):
        chain[index] = rho * chain[index - 1] + noise[index]
    assert sample_stats.lag_one_autocorrelation(1e4 + chain) == pytest.approx(rho, abs=0.03)


@pytest.mark.parametrize("samples", [[5.0, 6.0], [5.0, 5.0, 5.0, 5.0]])
def test_no_correlation_is_claimed_without_evidence(samples: list[float]) -> None:
    assert sample_stats.lag_one_autocorrelation(np.array(samples)) == 0.0


def test_drift_is_the_change_from_first_to_last_tenth() -> None:
    ramp = normal(200, 1, sd=0.001) * (1 + 0.02 * np.linspace(0, 1, 200))
    assert sample_stats.drift(ramp) == pytest.approx(0.018, abs=0.001)


@pytest.mark.parametrize("samples", [np.linspace(100, 200, 19), np.full(100, 640.0)])
def test_drift_is_not_assessed_on_few_or_equal_samples(samples: np.ndarray) -> None:
    assert sample_stats.drift(samples) == 0.0


@pytest.mark.parametrize(("minor", "modes"), [(18, 1), (19, 2)])
@pytest.mark.parametrize("slower", [False, True])
def test_the_smaller_group_holds_a_tenth_of_what_is_split(minor: int, modes: int, slower: bool) -> None:
    """Of 200 samples, the slowest ten are left out: 19 are a tenth of the rest, be they the faster or the slower."""
    few_are_slower = [100.0] * (190 - minor) + [110.0] * (minor + 10)
    few_are_faster = [90.0] * minor + [100.0] * (200 - minor)
    assert sample_stats.modes(np.array(few_are_slower if slower else few_are_faster)) == modes


def test_neighbouring_ticks_are_one_mode_and_distant_ones_two() -> None:
    neighbours = np.array([2528.0, 2560.0] * 20)
    assert sample_stats.modes(neighbours, step_ns=32.0) == 1
    assert sample_stats.modes(neighbours, step_ns=1.0) == 2
    assert sample_stats.modes(np.array([2528.0, 2624.0] * 20), step_ns=32.0) == 2


@pytest.mark.parametrize("samples", [np.array([100.0, 200.0] * 9), np.full(100, 640.0)])
def test_modes_are_not_assessed_on_few_or_equal_samples(samples: np.ndarray) -> None:
    assert sample_stats.modes(samples) == 1


def test_outliers_lie_three_interquartile_ranges_above_the_third_quartile() -> None:
    samples = normal(100, 1)
    assert sample_stats.outlier_share(samples) == 0.0
    samples[:15] *= 3
    assert sample_stats.outlier_share(samples) == pytest.approx(0.15)


def test_samples_hardly_above_narrow_quartiles_are_no_outliers() -> None:
    samples = np.array([36_096.0] * 80 + [36_256.0] * 20)
    assert sample_stats.outlier_share(samples, step_ns=32.0) == 0.0
    samples[80:] = 39_000.0
    assert sample_stats.outlier_share(samples, step_ns=32.0) == 0.0
    samples[80:] = 39_200.0
    assert sample_stats.outlier_share(samples, step_ns=32.0) == pytest.approx(0.20)


def test_neighbouring_ticks_are_not_outliers_but_far_ones_are() -> None:
    samples = np.array([640.0] * 80 + [672.0] * 20)
    assert sample_stats.outlier_share(samples, step_ns=32.0) == 0.0
    samples[85:] = 3700.0
    assert sample_stats.outlier_share(samples, step_ns=32.0) == pytest.approx(0.15)


@pytest.mark.parametrize(("spread", "found"), [(0.0, True), (63.0, True), (64.0, False), (200.0, False)])
def test_readings_within_two_steps_are_coarse(spread: float, found: bool) -> None:
    samples = np.array([2528.0] * 10 + [2528.0 + spread] * 10)
    assert sample_stats.coarse(samples, 32.0) == found
    assert not sample_stats.coarse(samples, 0.0)


def test_a_core_mean_takes_the_neighbouring_steps_and_no_slow_launches() -> None:
    samples = np.array([2496.0] * 3 + [2528.0] * 14 + [2560.0] * 3 + [2752.0] * 4)
    assert sample_stats.core_mean(samples, 32.0) == pytest.approx(2528.0)
    assert sample_stats.centre(samples, 32.0) == pytest.approx(2528.0)
    wider = np.linspace(2400.0, 2700.0, 40)
    assert sample_stats.centre(wider, 32.0) == sample_stats.midmean(wider)


LOW, HIGH = np.linspace(99.9, 100.1, 10), np.linspace(101.3, 101.5, 10)


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        ([LOW, HIGH, LOW], True),
        ([LOW, LOW, HIGH], False),  # one change may be a GPU that warms up
        ([LOW, HIGH * 1.04, LOW], False),  # levels too far apart
        ([LOW, LOW, LOW], False),
    ],
)
def test_what_comes_back_to_its_level_alternates(levels: list[np.ndarray], found: bool) -> None:
    assert sample_stats.alternates(np.concatenate(levels)) == found
