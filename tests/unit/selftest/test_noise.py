"""Nested noise and what follows from it, against simulations of known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pytest_gpuperf.judge.log_times import InvalidTimesError
from pytest_gpuperf.selftest.noise import (
    LEAST_OMEGA,
    MOST_OMEGA,
    KernelNoise,
    Placement,
    nested_noise,
    omega_bound,
    placement,
    placement_sds,
    pooled_sd,
)

from pytest_gpuperf.model.timed_round import Round


def a_round(midmean: float, spread: float = 0.002) -> Round:
    quartile = midmean * spread * 1.349 / 2
    quantiles = (midmean - 2 * quartile, midmean - quartile, midmean, midmean + quartile, midmean + 2 * quartile)
    return Round(session="s", process=0, samples=30, midmean=midmean, median=midmean, quantiles=quantiles,
                 minimum=midmean, maximum=midmean, rho1=0.1)  # fmt: skip


def processes(rng: np.random.Generator, count: int, rounds: int, between: float, within: float) -> list[list[Round]]:
    return [
        [a_round(1e5 * math.exp(shift + rng.normal(0, within))) for _ in range(rounds)]
        for shift in rng.normal(0, between, count)
    ]


def test_the_parts_of_the_noise_are_told_apart() -> None:
    noise = nested_noise("k", processes(np.random.default_rng(1), 400, 4, 0.003, 0.001))
    assert noise.process_sd == pytest.approx(0.003, rel=0.1)
    assert noise.round_sd == pytest.approx(0.001, rel=0.1)
    assert noise.sample_sd == pytest.approx(0.002)
    assert noise.rho1 == pytest.approx(0.1)
    assert noise.duration_ns == pytest.approx(1e5, rel=0.001)


def test_processes_that_differ_by_no_more_than_rounds_do_have_no_spread_of_their_own() -> None:
    noises = [nested_noise("k", processes(np.random.default_rng(seed), 4, 3, 0.0, 0.002)) for seed in range(200)]
    assert np.median([noise.process_sd for noise in noises]) < 0.001
    assert all(noise.process_means_sd >= noise.process_sd for noise in noises)


def test_omega_is_an_upper_bound_nine_times_in_ten() -> None:
    bounds = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        bounds.append(omega_bound([nested_noise("k", processes(rng, 4, 3, 0.003, 0.0005)) for _ in range(5)], 4))
    assert 0.86 <= np.mean(np.array(bounds) >= 0.003) <= 0.96
    assert np.median(bounds) < 0.006, "a bound, but one that is of use"


def a_noise(sd: float) -> KernelNoise:
    return KernelNoise(kernel="k", duration_ns=1e4, sample_sd=sd, rho1=0.0, round_sd=sd, process_sd=sd,
                       process_means_sd=sd)  # fmt: skip


@pytest.mark.parametrize(("sd", "bound"), [(0.0, LEAST_OMEGA), (0.5, MOST_OMEGA)])
def test_omega_stays_in_its_range(sd: float, bound: float) -> None:
    assert omega_bound([a_noise(sd)], 3) == bound


def test_rounds_that_are_no_times_are_refused() -> None:
    with pytest.raises(InvalidTimesError, match="k rounds"):
        nested_noise("k", [[a_round(1.0), a_round(0.0)]] * 2)


def blocks(rng: np.random.Generator, count: int, between: float, within: float) -> list[list[float]]:
    return [(shift + rng.normal(0, within, 24)).tolist() for shift in rng.normal(0, between, count)]


def test_placement_is_found_where_it_stands_out() -> None:
    rng = np.random.default_rng(2)
    kernels = {"placed": placement(blocks(rng, 6, 0.003, 0.001)), "quiet": placement(blocks(rng, 6, 0.0, 0.0003))}
    found = placement_sds(kernels)
    assert found["placed"] == pytest.approx(0.003, rel=0.7)
    assert found["quiet"] < 0.0003


def test_without_placement_effects_next_to_none_is_reported() -> None:
    found = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        found += placement_sds({str(k): placement(blocks(rng, 4, 0.0, 0.001)) for k in range(5)}).values()
    assert np.median(found) < 0.0002


def test_a_common_placement_effect_shows_in_all_kernels() -> None:
    rng = np.random.default_rng(4)
    found = placement_sds({str(k): placement(blocks(rng, 6, 0.002, 0.001)) for k in range(8)})
    assert min(found.values()) == pytest.approx(0.002, rel=0.5)


def test_blocks_that_are_all_equal_place_nothing() -> None:
    assert placement_sds({"k": placement([[0.0, 0.0], [0.0, 0.0]])}) == {"k": 0.0}
    assert not Placement(variance=0.0, by_blocks=0.0, processes=2).stands_out


def test_standard_deviations_pool_by_their_squares() -> None:
    assert pooled_sd([0.003, 0.004]) == pytest.approx(math.sqrt(12.5e-6))
    assert pooled_sd([]) == 0.0
