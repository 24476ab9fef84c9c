"""Blocks of eight single launches: exact under any disturbance, decided in few blocks, covered by their interval."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_gpuperf.judge.block_decision import UNDECIDED, judge_blocks, judge_many, ratio_interval
from pytest_gpuperf.judge.block_scores import RANKS, process_of
from pytest_gpuperf.judge.clear_case import blocks_to_decide
from pytest_gpuperf.judge.error_budget import Spending
from pytest_gpuperf.judge.log_times import InvalidTimesError
from pytest_gpuperf.judge.policy import CONFIRMATION_ALPHA, TIE, Decision, Policy
from pytest_gpuperf.judge.rank_eprocess import LAUNCHES, PAIRS, orders
from pytest_gpuperf.judge.tail import SHARE

POLICY = Policy(alpha=Spending().share(200), alpha_faster=10 * Spending().share(200))
ORDERS = np.array(orders())
disturbances = st.lists(st.one_of(st.floats(-0.5, 0.5), st.sampled_from([0.0, 0.01])), min_size=8, max_size=8)


def ratios(logs: NDArray[np.float64], places: NDArray[np.int64], effect: float) -> NDArray[np.float64]:
    """The sixteen log ratios of launches whose log times are ``logs``, the candidate's at ``places``."""
    candidate = np.take_along_axis(logs, places, axis=-1) + effect
    rest = np.ones(logs.shape, dtype=bool)
    np.put_along_axis(rest, places, False, axis=-1)
    baseline = logs[rest].reshape(*logs.shape[:-1], LAUNCHES)
    return np.asarray((candidate[..., :, None] - baseline[..., None, :]).reshape(*logs.shape[:-1], PAIRS))


def drawn(rng: np.random.Generator, logs: NDArray[np.float64], effect: float) -> NDArray[np.float64]:
    """Blocks in orders drawn at random."""
    return ratios(logs, ORDERS[rng.integers(0, len(ORDERS), logs.shape[:-1])], effect)


def mean_e(logs: list[float], effect: float, bound: float, rows: NDArray[np.int64] = ORDERS) -> float:
    """Mean e-value of one block over the orders in ``rows``, for the claim that the ratio exceeds ``bound``."""
    found = ratios(np.tile(np.array(logs), (len(rows), 1)), rows, effect)
    return float(np.exp(RANKS.log_e_many((found > bound + TIE).sum(axis=1), np.array(1))).mean())


@given(disturbances, st.floats(-0.02, 0.005))
def test_the_mean_over_all_orders_is_at_most_one_whatever_the_times(logs: list[float], effect: float) -> None:
    assert mean_e(logs, effect, 0.005) <= 1 + 1e-12
    mirrored = [-one for one in logs]  # NOT-SLOWER: the candidate is slower by the bound or more
    assert mean_e(mirrored, effect, 0.005) <= 1 + 1e-12


def test_the_mean_is_one_where_no_two_times_are_equal_and_the_effect_is_the_bound() -> None:
    assert mean_e([0.1 * place for place in range(8)], 0.0, 0.0) == pytest.approx(1.0)


def test_a_fixed_order_is_not_valid_and_the_same_check_finds_it() -> None:
    assert mean_e([0.01 * place for place in range(8)], 0.0, 0.0, ORDERS[-1:]) > 10


@given(st.integers(1, 128), st.integers(0, 2047))
def test_more_evidence_is_never_worth_less(blocks: int, score: int) -> None:
    score = min(score, PAIRS * blocks - 1)
    assert RANKS.log_e(score + 1, blocks) > RANKS.log_e(score, blocks)


@pytest.mark.parametrize(("place", "blocks"), [(1, 2), (20, 4), (200, 5)])
def test_blocks_that_separate_the_sides_decide_in_few_launches(place: int, blocks: int) -> None:
    share = Spending().share(place) * (1 - SHARE)
    assert RANKS.unanimous_blocks(share, 128) == blocks
    assert judge_blocks([[0.02] * PAIRS] * 10, Policy(alpha=share)).blocks == blocks
    confirming = RANKS.unanimous_blocks(CONFIRMATION_ALPHA, 128)
    assert (confirming, RANKS.unanimous_blocks(Policy().beta, 128)) == (2, 2)
    assert 2 * LAUNCHES * (blocks + confirming) <= 56


@pytest.mark.parametrize(
    ("effect", "decision", "blocks"),
    [(0.0, Decision.SAME, 2), (0.01, Decision.SLOWER, 5), (2.0, Decision.SLOWER, 5), (-0.02, Decision.FASTER, 5),
     (0.0075, Decision.SLOWER, 5)],
)  # fmt: skip
def test_quiet_launches_are_decided_as_blocks_of_short_slots_are(
    effect: float, decision: Decision, blocks: int
) -> None:
    found = judge_blocks([[effect] * PAIRS] * 12, POLICY)
    assert (found.decision, found.blocks) == (decision, blocks)
    assert found.ratio == pytest.approx(math.exp(effect))


def test_the_sequence_may_be_looked_at_after_every_block() -> None:
    rng = np.random.default_rng(3)
    blocks = drawn(rng, rng.normal(0, 0.01, (40, 8)), math.log1p(0.02))
    whole = judge_blocks(blocks, POLICY)
    assert whole.decision is Decision.SLOWER
    assert judge_blocks(blocks[: whole.blocks - 1], POLICY).decision is Decision.CONTINUE
    assert judge_blocks(blocks[: whole.blocks], POLICY) == whole


def test_a_tie_speaks_for_nothing() -> None:
    at_delta = math.log1p(POLICY.delta)
    assert judge_blocks([[at_delta] * PAIRS] * 128, POLICY).decision is not Decision.SLOWER
    at_epsilon, hopeless = math.log1p(POLICY.epsilon), dataclasses.replace(POLICY, alpha=1e-300)
    assert judge_blocks([[at_epsilon] * PAIRS] * 12, hopeless).decision is Decision.CONTINUE


@pytest.mark.parametrize("baseline_ns", [1_000_000, 1_007_000, 3_333_000])
def test_rounding_breaks_no_tie_of_a_steady_kernel_at_the_tolerance(baseline_ns: int) -> None:
    """Slower by half a percent to the nanosecond: ln(b / a) is the bound, or next to it."""
    ratio = math.log(baseline_ns * 1.005 / baseline_ns)
    for pairs in (1, PAIRS):
        assert judge_blocks([[ratio] * pairs] * 40, Policy(beta=1e-300)).evidence.log_e_slower < 0


@pytest.mark.parametrize("pairs", [2, 15])
def test_blocks_of_another_size_are_refused(pairs: int) -> None:
    with pytest.raises(InvalidTimesError, match=f"a block of {pairs} pairs"):
        process_of(pairs)


def test_a_ratio_that_is_none_is_named_by_its_block() -> None:
    with pytest.raises(InvalidTimesError, match="block 2 of 2"):
        judge_blocks([[0.0] * PAIRS, [0.0] * 15 + [math.nan]], POLICY)


NOISES = {
    "normal": lambda rng, shape: rng.normal(0, 0.003, shape),
    "drift": lambda rng, shape: np.cumsum(rng.normal(0.001, 0.002, shape), axis=-1),
    "two kinds": lambda rng, shape: np.where(rng.random(shape) < 0.3, 0.05, 0.0) + rng.normal(0, 0.001, shape),
    "ticks": lambda rng, shape: np.round(rng.normal(0, 0.004, shape) / 0.004) * 0.004,
    "cauchy": lambda rng, shape: 0.001 * rng.standard_cauchy(shape),
}


@pytest.mark.parametrize("noise", NOISES)
def test_slower_comes_no_more_often_than_alpha_at_the_tolerance_itself(noise: str) -> None:
    rng = np.random.default_rng(5)
    logs = NOISES[noise](rng, (3000, 16, 8))
    codes, _ = judge_many(drawn(rng, logs, math.log1p(0.005)), Policy(alpha=0.05, beta=1e-9))
    assert (codes == 0).mean() <= 0.05
    assert (codes == 0).any(), "a worst case that never reaches the bound tests nothing"


def test_the_same_launches_in_one_order_raise_alarms() -> None:
    """Broken: the candidate always runs last, and what runs later is slower."""
    logs = np.cumsum(np.full((200, 8, 8), 0.003), axis=-1)
    fixed = ratios(logs, np.broadcast_to(ORDERS[-1], (200, 8, 4)), 0.0)
    assert (judge_many(fixed, POLICY)[0] == 0).all()
    assert not (judge_many(drawn(np.random.default_rng(1), logs, 0.0), POLICY)[0] == 0).any()


@pytest.mark.parametrize("place", [1, 20, 200])
@pytest.mark.parametrize("effect", [0.01, 0.02, 0.5, 2.0, 9.0])
def test_slower_launches_are_found_as_any_workload_of_a_run(place: int, effect: float) -> None:
    rng = np.random.default_rng(7)
    logs = rng.normal(0, 0.001, (300, 16, 8))
    codes, stops = judge_many(drawn(rng, logs, math.log1p(effect)), Policy(alpha=Spending().share(place)))
    assert (codes == 0).mean() >= 0.99
    assert np.median(stops) <= RANKS.unanimous_blocks(Spending().share(place), 128) + 1


def test_equal_launches_are_passed() -> None:
    rng = np.random.default_rng(8)
    codes, stops = judge_many(drawn(rng, rng.normal(0, 0.003, (500, 32, 8)), 0.0), POLICY)
    assert np.isin(codes, (2, 3)).all()
    assert not (codes == UNDECIDED).any()
    assert np.median(stops) <= 4


@pytest.mark.parametrize("noise", ["normal", "drift", "two kinds"])
def test_the_interval_covers_at_the_stopping_time(noise: str) -> None:
    rng = np.random.default_rng(9)
    effect = math.log1p(0.01)
    blocks = drawn(rng, NOISES[noise](rng, (400, 24, 8)), effect)
    _, stops = judge_many(blocks, POLICY)
    intervals = [ratio_interval(row[:stop]) for row, stop in zip(blocks, stops, strict=True)]
    covered = [one is None or (one[0] <= 1.01 * (1 + 1e-12) and one[1] >= 1.01 * (1 - 1e-12)) for one in intervals]
    assert np.mean(covered) >= 0.95
    assert sum(one is not None for one in intervals) > 200


def test_the_interval_needs_two_blocks() -> None:
    assert ratio_interval([[0.01] * PAIRS]) is None
    assert ratio_interval([[0.01] * PAIRS] * 2) == (math.exp(0.01), math.exp(0.01))


# --- a clear case --------------------------------------------------------------------------------


@pytest.mark.parametrize(("effect", "wanted"), [(2.0, 5), (0.02, 5), (0.0, 2), (-0.5, 5), (0.0075, 5)])
def test_a_clear_case_takes_as_many_blocks_as_a_proof(effect: float, wanted: int) -> None:
    assert blocks_to_decide([[effect] * PAIRS], POLICY) == wanted


@settings(max_examples=50)
@given(st.integers(1, 40), st.sampled_from([1, PAIRS]))
def test_no_case_is_clear_whose_blocks_disagree(blocks: int, pairs: int) -> None:
    undecided = [[0.02] * pairs, [-0.02] * pairs] * blocks
    assert blocks_to_decide(undecided, POLICY) == 0


def test_short_blocks_are_clear_only_if_all_of_them_agree() -> None:
    assert blocks_to_decide([0.02] * 3, POLICY) == process_of(1).unanimous_blocks(POLICY.alpha * (1 - SHARE), 128)
    assert blocks_to_decide([0.02] * 3 + [0.004], POLICY) == 0
    assert blocks_to_decide([], POLICY) == 0


def test_scores_that_still_grow_are_clear_and_such_as_have_stopped_growing_are_not() -> None:
    mostly = [0.02] * 15 + [0.0]
    assert blocks_to_decide([mostly, mostly], POLICY) == 5
    assert blocks_to_decide([mostly, [0.02, -0.02] * 8], POLICY) == 0
