"""Whole suites, simulated: the promised error rate holds, regressions are found, and cheaper rules are not as good.

Every simulation is seeded.  The checks that ours passes are run against broken variants too: a check that
lets those pass would prove nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from pytest_gpuperf.judge.block_decision import UNDECIDED, judge_many
from pytest_gpuperf.judge.error_budget import ALPHA, Spending, shard_alpha
from pytest_gpuperf.judge.noninferiority import noninferiority_test
from pytest_gpuperf.judge.policy import Policy

Logs = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Logs]
"""Generator, kernels, blocks to the values of blocks of equal kernels."""

SUITES, KERNELS = 2000, 200
POLICY = Policy(alpha=ALPHA / KERNELS, alpha_faster=1e-2 / KERNELS)
SLOWER, FASTER, SAME, NOT_SLOWER = range(4)
FIRST_BLOCKS = 24


def coins(rng: np.random.Generator, shape: tuple[int, int]) -> Logs:
    return 1.0 - 2.0 * rng.integers(0, 2, shape)


def quiet(rng: np.random.Generator, kernels: int, blocks: int) -> Logs:
    """.1 %, and a timer whose ticks are .1 % of the kernel: most blocks read one of three values."""
    return np.asarray(np.round(rng.normal(0, 0.001, (kernels, blocks)) / 0.001) * 0.001)


def typical(rng: np.random.Generator, kernels: int, blocks: int) -> Logs:
    """.2 % white noise on top of a clock that wanders with an autocorrelation of .95."""
    wander = np.empty((kernels, blocks))
    state = rng.normal(0, 0.002, kernels)
    for block in range(blocks):
        state = 0.95 * state + rng.normal(0, 0.002 * math.sqrt(1 - 0.95**2), kernels)
        wander[:, block] = state
    return np.asarray(coins(rng, (kernels, blocks)) * wander + rng.normal(0, 0.002, (kernels, blocks)))


def noisy(rng: np.random.Generator, kernels: int, blocks: int) -> Logs:
    """.5 % noise of two modes .8 % apart, and one block in fifty hit by something large."""
    modes = np.where(rng.random((kernels, blocks)) < 0.5, 0.004, -0.004) * coins(rng, (kernels, blocks))
    spikes = np.where(rng.random((kernels, blocks)) < 0.02, 0.2, 0.0) * coins(rng, (kernels, blocks))
    return np.asarray(modes + spikes + rng.normal(0, 0.003, (kernels, blocks)))


NOISES: dict[str, Noise] = {"quiet": quiet, "typical": typical, "noisy": noisy}


def codes_of(noise: Noise, shift: float, kernels: int, seed: int, policy: Policy = POLICY) -> NDArray[np.int64]:
    """Decisions on kernels whose candidate is slower by the log ratio ``shift``, in pieces that fit into memory."""
    rng = np.random.default_rng(seed)
    decided = []
    for start in range(0, kernels, 50_000):
        count = min(50_000, kernels - start)
        r = shift + noise(rng, count, FIRST_BLOCKS)
        codes, _ = judge_many(r, policy)
        open_ = np.flatnonzero(codes == UNDECIDED)
        more = shift + noise(rng, open_.size, policy.blocks_max - FIRST_BLOCKS)
        if open_.size:
            codes[open_], _ = judge_many(np.concatenate((r[open_], more), axis=1), policy)
        decided.append(codes)
    return np.concatenate(decided)


def red_suites(codes: NDArray[np.int64]) -> int:
    """Suites with one SLOWER or more."""
    return int((codes.reshape(-1, KERNELS) == SLOWER).any(axis=1).sum())


def tolerable(suites: int, alpha: float = ALPHA) -> int:
    """Red suites that a true rate of ``alpha`` exceeds once in ten thousand simulations."""
    return int(stats.binom.ppf(0.9999, suites, alpha))


@pytest.mark.parametrize("name", NOISES)
def test_two_thousand_suites_without_a_regression_raise_no_alarm(name: str) -> None:
    """All 200 kernels are escalated, as if every screen had failed: the screen itself can accuse nobody."""
    codes = codes_of(NOISES[name], 0.0, SUITES * KERNELS, seed=1)
    assert red_suites(codes) == 0
    assert (codes == FASTER).sum() == 0
    assert (codes == UNDECIDED).mean() <= {"quiet": 0.0, "typical": 0.01, "noisy": 0.05}[name]


@pytest.mark.parametrize("name", NOISES)
def test_in_the_worst_case_all_kernels_at_the_tolerance_alpha_holds(name: str) -> None:
    codes = codes_of(NOISES[name], math.log1p(POLICY.delta), 500 * KERNELS, seed=2)
    assert red_suites(codes) <= tolerable(500)


@pytest.mark.parametrize("workers", [1, 4])
def test_alpha_holds_when_it_is_spent_online_and_over_workers(workers: int) -> None:
    """The worst case again, in which each kernel has the share of its place in its worker's order."""
    rng = np.random.default_rng(3)
    suites, alpha = 600, 0.05
    spending = Spending(alpha, workers)
    red = np.zeros(suites, dtype=bool)
    for place in range(KERNELS):
        policy = dataclasses.replace(POLICY, alpha=spending.share(place // workers + 1))
        codes, _ = judge_many(math.log1p(POLICY.delta) + rng.normal(0, 0.004, (suites, 64)), policy)
        red |= codes == SLOWER
    assert red.sum() <= tolerable(suites, alpha)
    assert red.any(), "a worst case that never reaches the bound tests nothing"


def red_with_shards(shares: list[float], suites: int) -> NDArray[np.bool_]:
    """Suites with a SLOWER although every kernel is at the tolerance, the worst case; a share for each kernel."""
    rng = np.random.default_rng(7)
    red = np.zeros(suites, dtype=bool)
    for share in shares:
        policy = dataclasses.replace(POLICY, alpha=share)
        codes, _ = judge_many(math.log1p(POLICY.delta) + rng.normal(0, 0.004, (suites, 64)), policy)
        red |= codes == SLOWER
    return red


SHARDS = 4


def test_alpha_holds_over_four_shards_of_two_workers_each() -> None:
    """No alarm in any of them; four runs that each spend all of alpha do not keep the promise."""
    suites, alpha = 800, 0.05
    places = [place // (2 * SHARDS) + 1 for place in range(KERNELS)]
    shard = Spending(shard_alpha(SHARDS, alpha), workers=2)
    together = red_with_shards([shard.share(place) for place in places], suites)
    assert together.any(), "a worst case that never reaches the bound tests nothing"
    assert together.sum() <= tolerable(suites, alpha)
    assert together.mean() <= alpha
    apart = red_with_shards([Spending(alpha, workers=2).share(place) for place in places], suites)
    assert apart.sum() > 2 * together.sum()


def blocks_needed(policy: Policy) -> float:
    """Median number of blocks after which a kernel that is 2 % slower is SLOWER; the noise is 0.6 %."""
    r = math.log1p(0.02) + np.random.default_rng(8).normal(0, 0.006, (2000, policy.blocks_max))
    codes, blocks = judge_many(r, policy)
    assert (codes == SLOWER).mean() > 0.95
    return float(np.median(blocks[codes == SLOWER]))


def test_four_shards_cost_no_blocks_and_a_kernel_of_the_same_number_at_most_three() -> None:
    """Its number in its shard is smaller than in the whole run, which gives back more than the division takes."""
    whole, shard = Spending(), Spending(shard_alpha(SHARDS))
    same_number = [dataclasses.replace(POLICY, alpha=one.share(50)) for one in (whole, shard)]
    one_run, same, in_shard = (
        blocks_needed(policy) for policy in (*same_number, dataclasses.replace(POLICY, alpha=shard.share(13)))
    )
    assert one_run < same <= one_run + 3
    assert in_shard <= one_run


@pytest.mark.parametrize(
    ("name", "percent", "power"),
    [("quiet", 2, 1.0), ("typical", 2, 0.999), ("noisy", 2, 0.97), ("quiet", 1, 0.98), ("typical", 1, 0.85)],
)
def test_regressions_are_found(name: str, percent: int, power: float) -> None:
    codes = codes_of(NOISES[name], math.log1p(percent / 100), 4000, seed=4)
    assert (codes == SLOWER).mean() >= power
    assert np.isin(codes, [SAME, NOT_SLOWER]).mean() <= 0.01


@pytest.mark.parametrize("name", NOISES)
def test_gains_are_found(name: str) -> None:
    codes = codes_of(NOISES[name], math.log1p(-0.03), 2000, seed=5)
    assert (codes == SLOWER).sum() == 0
    assert (codes == FASTER).mean() >= {"quiet": 1.0, "typical": 0.99, "noisy": 0.5}[name]


def pipeline(rng: np.random.Generator, shift: float, omega: float, assumed: float, gpu: float = 0.0) -> int:
    """Screen, then paired blocks: a decision's index; ``gpu`` is how much another GPU differs."""
    old = np.exp(rng.normal(0, omega) + rng.normal(0, 0.002, 10)) * 1000
    new = np.exp(shift + gpu + rng.normal(0, omega) + rng.normal(0, 0.002, 4)) * 1000
    if not gpu and noninferiority_test(old.tolist(), new.tolist(), epsilon=0.01, omega=assumed):
        return NOT_SLOWER
    codes, _ = judge_many(shift + rng.normal(0, 0.002, (1, 128)), POLICY)
    return int(codes[0])


@pytest.mark.parametrize(
    ("omega", "assumed", "gpu"), [(0.0015, 0.0015, 0.0), (0.005, 0.0015, 0.0), (0.0015, 0.0015, 0.02)]
)
def test_a_wrong_omega_or_another_gpu_raises_no_alarm(omega: float, assumed: float, gpu: float) -> None:
    rng = np.random.default_rng(6)
    decided = [pipeline(rng, 0.0, omega, assumed, gpu) for _ in range(2000)]
    assert decided.count(SLOWER) == 0
    assert decided.count(UNDECIDED) == 0


@pytest.mark.parametrize(
    ("omega", "assumed", "gpu", "missed"), [(0.0015, 0.0015, 0.0, 0.01), (0.0015, 0.0015, -0.02, 0.01)]
)
def test_the_pipeline_misses_one_percent_no_more_often_than_promised(
    omega: float, assumed: float, gpu: float, missed: float
) -> None:
    rng = np.random.default_rng(7)
    decided = [pipeline(rng, math.log1p(0.01), omega, assumed, gpu) for _ in range(2000)]
    assert sum(code in (SAME, NOT_SLOWER) for code in decided) <= missed * 2000
    assert decided.count(SLOWER) >= 0.95 * 2000


# --- guards: broken variants fail the checks above ------------------------------------------------


def peeking_t(r: Logs, policy: Policy) -> NDArray[np.int64]:
    """Broken: a t test against the tolerance after every block, each at the full share of alpha."""
    n = np.arange(1, r.shape[1] + 1)
    mean = np.cumsum(r, axis=1) / n
    variance = (np.cumsum(r**2, axis=1) - n * mean**2) / np.maximum(n - 1, 1)
    error = np.sqrt(np.maximum(variance, 1e-18) / n)
    limit = stats.t.isf(policy.alpha, np.maximum(n - 1, 1))
    slower = (mean - math.log1p(policy.delta) > limit * error)[:, 2:].any(axis=1)
    return np.where(slower, SLOWER, NOT_SLOWER)


@pytest.mark.parametrize("name", ["quiet", "typical"])
def test_a_peeking_t_test_breaks_alpha_in_the_worst_case(name: str) -> None:
    rng = np.random.default_rng(8)
    r = math.log1p(POLICY.delta) + NOISES[name](rng, 500 * KERNELS, 64)
    assert red_suites(peeking_t(r, POLICY)) > tolerable(500)


def test_samples_as_units_raise_alarms_without_a_regression() -> None:
    """Broken: every one of a block's 20 sample pairs votes, though all share what the block is off by."""
    rng = np.random.default_rng(9)
    blocks = noisy(rng, 20 * KERNELS, 16)
    samples = np.repeat(blocks, 20, axis=1) + rng.normal(0, 0.001, (20 * KERNELS, 320))
    codes, _ = judge_many(samples, dataclasses.replace(POLICY, blocks_max=320))
    assert red_suites(codes) > tolerable(20)
    as_blocks, _ = judge_many(blocks, POLICY)
    assert red_suites(as_blocks) == 0


@pytest.mark.parametrize("name", NOISES)
def test_an_effect_below_the_tolerance_is_accepted(name: str) -> None:
    codes = codes_of(NOISES[name], math.log1p(0.004), 20 * KERNELS, seed=10)
    assert (codes == SLOWER).sum() == 0


def test_without_the_tolerance_small_effects_turn_red() -> None:
    codes = codes_of(typical, math.log1p(0.004), 20 * KERNELS, seed=10, policy=dataclasses.replace(POLICY, delta=0.0))
    assert (codes == SLOWER).sum() > 0
    assert red_suites(codes) > tolerable(20)


def test_without_randomised_order_a_drift_is_called_slower() -> None:
    """Broken: the candidate always runs second, and what runs second is 1 % slower."""
    drift = np.full((KERNELS, 64), 0.01)
    fixed, _ = judge_many(drift, POLICY)
    assert red_suites(fixed) == 1
    randomised, _ = judge_many(coins(np.random.default_rng(11), drift.shape) * drift, POLICY)
    assert red_suites(randomised) == 0
