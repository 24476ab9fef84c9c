"""The e-process: its values, its martingale property and its exact error rates."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import integrate

from pytest_gpuperf.judge.block_scores import SIGNS
from pytest_gpuperf.judge.eprocess import log_e_many

REFERENCE = {
    (1, 1): 0.405465108108,
    (0, 1): -0.693147180560,
    (5, 10): -0.995852554710,
    (10, 10): 5.226235312863,
    (17, 20): 4.472039715490,
    (23, 23): 13.457478443486,
    (100, 128): 19.779814093364,
}

counts = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(("votes", "blocks"), REFERENCE)
def test_log_e_matches_the_reference_values(votes: int, blocks: int) -> None:
    assert SIGNS.log_e(votes, blocks) == pytest.approx(REFERENCE[votes, blocks], abs=1e-11)


@pytest.mark.parametrize(("votes", "blocks"), [(0, 1), (3, 7), (20, 40), (39, 40), (64, 128), (5, 128), (128, 128)])
def test_log_e_matches_quadrature(votes: int, blocks: int) -> None:
    integral, _ = integrate.quad(
        lambda q: 2 * (2 * q) ** votes * (2 * (1 - q)) ** (blocks - votes), 0.5, 1, epsabs=0, epsrel=1e-11, limit=200
    )
    assert SIGNS.log_e(votes, blocks) == pytest.approx(math.log(integral), abs=1e-9)


def exactly(votes: int, blocks: int) -> float:
    """The same from the finite sum, in arbitrary precision: I_1/2(n-k+1, k+1) is a binomial tail."""
    with mpmath.workdps(60):
        tail = mpmath.mpf(sum(math.comb(blocks + 1, j) for j in range(votes + 1))) / mpmath.mpf(2) ** (blocks + 1)
        beta = mpmath.beta(votes + 1, blocks - votes + 1)
        return float(mpmath.log(mpmath.mpf(2) ** (blocks + 1) * beta * tail))


@given(counts)
@example((0, 2000))
@example((1, 2000))
@example((400, 2000))
@example((2000, 2000))
@example((0, 963))
def test_log_e_matches_arbitrary_precision_up_to_2000_blocks(count: tuple[int, int]) -> None:
    assert SIGNS.log_e(*count) == pytest.approx(exactly(*count), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("blocks", [1, 2, 11, 128, 900, 1100, 2000])
def test_log_e_is_finite_and_rises_with_every_vote(blocks: int) -> None:
    values = log_e_many(np.arange(blocks + 1), np.array(blocks))
    assert np.isfinite(values).all()
    assert (np.diff(values) > 0).all()


def test_no_block_is_no_evidence() -> None:
    assert SIGNS.log_e(0, 0) == pytest.approx(0.0, abs=1e-12)


def test_the_wealth_is_a_fair_game_at_every_count() -> None:
    for blocks in range(201):
        votes = np.arange(blocks + 1)
        now = np.exp(log_e_many(votes, np.array(blocks)))
        voted = np.exp(log_e_many(votes + 1, np.array(blocks + 1)))
        silent = np.exp(log_e_many(votes, np.array(blocks + 1)))
        np.testing.assert_allclose((voted + silent) / 2, now, rtol=1e-11)


@given(counts)
def test_another_vote_never_lowers_the_evidence(count: tuple[int, int]) -> None:
    votes, blocks = count
    assert SIGNS.log_e(votes + 1, blocks + 1) >= SIGNS.log_e(votes, blocks)


@pytest.mark.parametrize(
    ("threshold", "blocks", "votes"),
    [(5e5, 23, 23), (5e5, 24, 24), (5e5, 32, 30), (5e5, 48, 42), (5e5, 64, 53), (5e5, 96, 74), (5e5, 128, 95),
     (200, 11, 11), (200, 16, 15), (200, 32, 26), (200, 64, 47), (200, 128, 85)],
)  # fmt: skip
def test_votes_needed(threshold: float, blocks: int, votes: int) -> None:
    assert SIGNS.needed(math.log(threshold), 128)[blocks - 1] == votes


@pytest.mark.parametrize(
    ("threshold", "blocks"), [(40, 8), (100, 9), (200, 11), (1e3, 13), (5e4, 19), (5e5, 23), (5e6, 27)]
)
def test_first_unanimous_crossing(threshold: float, blocks: int) -> None:
    needed = SIGNS.needed(math.log(threshold), 128)
    assert next(n for n in range(1, 129) if needed[n - 1] <= n) == blocks
    assert SIGNS.unanimous_blocks(1 / threshold, 128) == blocks


def test_too_few_blocks_prove_nothing_however_they_vote() -> None:
    assert SIGNS.unanimous_blocks(1 / 5e5, 22) == math.inf
    assert SIGNS.unanimous_blocks(1 / 5e5, 23) == 23


@given(st.integers(1, 600), st.floats(0.0, 20.0))
def test_votes_needed_is_where_log_e_crosses_whatever_the_length_asked_for(blocks: int, log_threshold: float) -> None:
    least = int(SIGNS.needed(log_threshold, blocks)[-1])
    if least <= blocks:
        assert SIGNS.log_e(least, blocks) >= log_threshold
    assert least == 0 or SIGNS.log_e(min(least - 1, blocks), blocks) < log_threshold


def crossing_probability(rate: float, log_threshold: float, most: int) -> float:
    """Exact probability that votes of this rate reach the threshold within ``most`` blocks, block by block."""
    alive = np.zeros(most + 2)
    alive[0] = 1.0
    crossed = 0.0
    for least in SIGNS.needed(log_threshold, most):
        alive = alive * (1 - rate) + np.concatenate(([0.0], alive[:-1])) * rate
        first = min(int(least), alive.size)
        crossed += float(alive[first:].sum())
        alive[first:] = 0.0
    return crossed


@pytest.mark.parametrize("threshold", [1e1, 1e2, 1e3, 1e4, 1e5, 5e5, 1e6, 1e7])
def test_a_fair_coin_crosses_no_more_often_than_the_bound(threshold: float) -> None:
    probability = crossing_probability(0.5, math.log(threshold), 256)
    assert 0 < probability <= 1 / threshold


def test_within_256_blocks_the_bound_is_half_used() -> None:
    assert crossing_probability(0.5, math.log(5e5), 256) * 5e5 == pytest.approx(0.55, abs=0.01)


def test_the_exact_probability_is_that_of_all_sequences() -> None:
    """All 2^12 sequences of votes, counted one by one."""
    needed = SIGNS.needed(math.log(20), 12)
    votes = (np.arange(2**12)[:, np.newaxis] >> np.arange(12)) & 1
    crossed = (np.cumsum(votes, axis=1) >= needed).any(axis=1)
    assert crossing_probability(0.5, math.log(20), 12) == pytest.approx(crossed.mean(), rel=1e-12)


@pytest.mark.parametrize("rate", [0.6, 0.75, 0.9, 0.99])
def test_exact_power_equals_monte_carlo(rate: float) -> None:
    rng = np.random.default_rng(17)
    votes = rng.random((20_000, 128)) < rate
    crossed = (np.cumsum(votes, axis=1) >= SIGNS.needed(math.log(5e5), 128)).any(axis=1).mean()
    exact = crossing_probability(rate, math.log(5e5), 128)
    assert crossed == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000) + 1e-9)


def test_certain_votes_cross_with_certainty_once_there_are_enough() -> None:
    assert crossing_probability(1.0, math.log(5e5), 22) == 0
    assert crossing_probability(1.0, math.log(5e5), 23) == 1


@pytest.mark.parametrize("most", [1, 2, 255, 256, 257, 513])
def test_as_many_numbers_of_votes_are_given_as_were_asked_for(most: int) -> None:
    assert SIGNS.needed(math.log(20), most).size == most
