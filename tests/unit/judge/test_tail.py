"""Means of blocks: exact under any times, blind to no rare slow launches, quiet where both sides have them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_samples import time_case
from numpy.typing import NDArray

from pytest_gpuperf.judge.block_decision import judge_blocks, judge_many
from pytest_gpuperf.judge.error_budget import Spending
from pytest_gpuperf.judge.paired_verdict import judge_pairs
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.tail import RATES, SCALE, SHARE, tail_worth, worth_at_blocks

DELTA = 0.005


def means(rng: np.random.Generator, rows: int, blocks: int, share: float, samples: int = 6) -> NDArray[np.float64]:
    """Winsorised means of blocks in which this share of the samples takes five times as long."""
    slow = rng.binomial(samples, share, (rows, blocks)) / samples
    return np.asarray((1 + 4 * slow) * np.exp(rng.normal(0, 0.001, (rows, blocks))))


@given(st.floats(-3, 3), st.floats(-0.5, math.log1p(DELTA)))
def test_the_mean_factor_over_both_orders_is_at_most_one_for_any_block(v: float, effect: float) -> None:
    factors = np.exp([tail_worth(np.array([effect + sign * v]), DELTA)[0] for sign in (1, -1)])
    assert factors.mean() <= 1 + 1e-12


def test_a_bet_on_the_mean_of_a_skewed_statistic_would_not_be_exact() -> None:
    """Broken: a psi that is not odd, such as a plain exponential, earns on equal kernels."""
    assert np.mean(np.exp([0.5, -0.5])) > 1


def test_the_mixture_is_of_products() -> None:
    t = np.array([0.3, -0.1, 0.05])
    psi = np.clip((t - math.log1p(DELTA)) / SCALE, -1, 1)
    products = [np.prod(1 + rate * psi) for rate in RATES]
    assert tail_worth(t, DELTA)[-1] == pytest.approx(math.log(np.mean(products)))


def test_discarded_blocks_count_for_the_tail_with_the_next_one_that_counts() -> None:
    whole = tail_worth(np.array([0.1, 0.2, -0.3, 0.4]), DELTA)
    assert worth_at_blocks([(0.1,), (0.2, -0.3, 0.4)], DELTA) == pytest.approx(whole[[0, 3]])


@pytest.mark.parametrize("place", [1, 20])
def test_rare_slow_launches_of_the_candidate_are_slower(place: int) -> None:
    """20 % of them five times as long: the midmean sees 0.1 %."""
    rng = np.random.default_rng(1)
    t = np.log(means(rng, 400, 128, 0.2) / means(rng, 400, 128, 0.0))
    codes, stops = judge_many(
        rng.normal(0, 0.001, t.shape), Policy(alpha=Spending().share(place)), tail_worth(t, DELTA)
    )
    assert (codes == 0).mean() >= 0.95
    assert np.median(stops) < 60


@pytest.mark.parametrize("share", [0.02, 0.1, 0.2, 0.4])
def test_equal_tails_raise_no_alarm_and_pass(share: float) -> None:
    rng = np.random.default_rng(2)
    t = np.log(means(rng, 2000, 128, share) / means(rng, 2000, 128, share))
    codes, _ = judge_many(rng.normal(0, 0.001, t.shape), Policy(alpha=Spending().share(1)), tail_worth(t, DELTA))
    assert not (codes == 0).any()
    assert np.isin(codes, (2, 3)).mean() >= 0.999


def test_alpha_holds_where_the_tail_alone_could_prove() -> None:
    rng = np.random.default_rng(3)
    t = np.log(means(rng, 20_000, 128, 0.2) / means(rng, 20_000, 128, 0.2)) + math.log1p(DELTA)
    codes, _ = judge_many(np.full(t.shape, 0.007), Policy(alpha=0.05 / SHARE / 2, beta=1e-300, alpha_faster=1e-300))
    found = (tail_worth(t, DELTA) >= math.log(20)).any(axis=1).mean()
    assert (codes != 1).all()
    assert 0 < found <= 0.05


def test_a_pass_waits_while_the_tail_leans_to_slower_and_is_given_at_the_end() -> None:
    policy = Policy()
    tails = [(0.5,)] * 4 + [(0.0,)] * 40
    calm = judge_blocks([0.0] * 11, policy, tails=[(0.0,)] * 11)
    assert (calm.decision, calm.blocks) == (Decision.SAME, 11)
    waiting = judge_blocks([0.0] * 11, policy, tails=tails[:11])
    assert waiting.decision is Decision.CONTINUE
    assert judge_blocks([0.0] * 11, policy, tails=tails[:11], stopped=True).decision is Decision.SAME
    faster = judge_blocks([-0.02] * 30, policy, tails=[(0.5,)] * 30)
    assert (faster.decision, faster.by_tail) == (Decision.SLOWER, True)


def test_what_the_tail_proves_says_so_and_what_votes_prove_does_not() -> None:
    by_tail = judge_blocks([0.0] * 60, Policy(), tails=[(math.log(1.8),)] * 60)
    assert (by_tail.decision, by_tail.by_tail) == (Decision.SLOWER, True)
    assert by_tail.mean_ratio == pytest.approx(1.8)
    by_votes = judge_blocks([0.02] * 60, Policy(), tails=[(0.02,)] * 60)
    assert (by_votes.decision, by_votes.by_tail) == (Decision.SLOWER, False)


def test_the_two_tests_share_alpha() -> None:
    policy = Policy()
    assert judge_blocks([0.02] * 40, policy).log_e_needed == pytest.approx(-math.log(policy.alpha))
    shared = judge_blocks([0.02] * 40, policy, tails=[(0.0,)] * 40)
    assert math.exp(-shared.log_e_needed) == pytest.approx(policy.alpha * (1 - SHARE))
    single = dataclasses.replace(policy, alpha=policy.alpha * (1 - SHARE))
    assert shared.blocks == judge_blocks([0.02] * 40, single).blocks


def test_what_the_tail_proves_is_told_with_both_ratios_and_its_own_evidence() -> None:
    policy = Policy(alpha=1e-3)
    first = judge_blocks([math.log(1.001)] * 60, policy, tails=[(math.log(1.8),)] * 60)
    case = time_case([[50e3] * 4], [50.05e3] * 4)
    words = (
        "proven to be more than 0.5 % slower in one process, a second has to confirm it: the mean is x1.8 while the "
    )
    few = "21 % of its samples take 5 times as long as most"
    found = judge_pairs(case, policy, first, slow_launches=few).judgement
    assert found.reason.startswith(f"{words}midmean is x1.001: {few}; ")
    assert judge_pairs(case, policy, first).judgement.reason.startswith(f"{words}midmean is x1.001; ")
    assert found.time is not None
    assert (found.time.log_e, found.time.mean_ratio) == (first.tail_log_e, first.mean_ratio)
    assert found.time.log_e_needed == pytest.approx(-math.log(1e-3 * SHARE))
    by_votes = judge_blocks([0.02] * 60, policy, tails=[(0.02,)] * 60)
    told = judge_pairs(case, policy, by_votes).judgement.time
    assert told is not None
    assert (told.log_e, told.log_e_needed) == (by_votes.evidence.log_e_slower, by_votes.log_e_needed)
    assert told.mean_ratio == pytest.approx(math.exp(0.02))
