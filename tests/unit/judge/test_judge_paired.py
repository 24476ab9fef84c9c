"""The decision on paired blocks: valid by randomisation alone, and a function of the blocks alone."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_gpuperf.judge.block_decision import UNDECIDED, judge_blocks, judge_many, ratio_interval
from pytest_gpuperf.judge.block_scores import SIGNS
from pytest_gpuperf.judge.error_budget import ALPHA_FASTER, Spending
from pytest_gpuperf.judge.log_times import InvalidTimesError
from pytest_gpuperf.judge.policy import Decision, Policy, PolicyError
from pytest_gpuperf.judge.votes import evidence
from pytest_gpuperf.timing.blocks import block_value

POLICY = Policy(alpha=1e-3 / 500)
PASSES = (Decision.SAME, Decision.NOT_SLOWER, Decision.FASTER)

block_values = st.lists(
    st.one_of(st.floats(-0.02, 0.02), st.sampled_from([0.0, 0.012, 0.02, -0.02, 0.006])), min_size=0, max_size=140
)
drifting = st.builds(lambda a, b: [a * i / 12 + b for i in range(12)], st.floats(-0.05, 0.05), st.floats(-0.02, 0.02))
stepped = st.builds(
    lambda a, b, at: [a if i < at else b for i in range(12)],
    st.floats(-0.02, 0.02), st.floats(-0.02, 0.02), st.integers(0, 12),
)  # fmt: skip
wild = st.lists(st.sampled_from([0.0, 1e-9, 0.004, -0.3, 5.0, 0.02]), min_size=12, max_size=12)
correlated = st.integers(0, 10_000).map(
    lambda seed: list(0.003 * np.cumsum(np.random.default_rng(seed).normal(size=12)))
)
constant = st.floats(-0.05, 0.05).map(lambda value: [value] * 12)
disturbances = st.one_of(drifting, stepped, wild, correlated, constant)
"""What two equal kernels would show: the value of each block before the coin gives it a sign."""

ALL_COINS = 1 - 2 * ((np.arange(2**12)[:, np.newaxis] >> np.arange(12)) & 1).astype(float)
FIXED_ORDER = np.ones_like(ALL_COINS)


def verify_validity(v: Sequence[float], shift: float, coins: np.ndarray, alpha: float = 0.05) -> None:
    """No more than half of all coins make a block vote, no more than ``alpha`` of them make a SLOWER."""
    r = shift + coins * np.array(v)
    policy = Policy(delta=0.005, epsilon=0.01, alpha=alpha)
    assert ((r > math.log1p(policy.delta)).mean(axis=0) <= 0.5).all()
    codes, _ = judge_many(r, policy)
    assert (codes == 0).mean() <= alpha


@settings(max_examples=60, deadline=None)
@given(disturbances, st.floats(-0.01, 0.0049))
def test_randomised_order_is_valid_for_any_disturbance(v: list[float], shift: float) -> None:
    verify_validity(v, shift, ALL_COINS)


def test_a_fixed_order_is_not_valid_and_the_same_check_finds_it() -> None:
    for v in ([0.01] * 12, [0.001 * i for i in range(12)]):
        with pytest.raises(AssertionError):
            verify_validity(v, 0.0, FIXED_ORDER)


@pytest.mark.parametrize(
    ("r", "policy", "decision", "blocks"),
    [
        ([0.02] * 40, POLICY, Decision.SLOWER, 23),
        ([0.02] * 40, Policy(alpha=1e-3), Decision.SLOWER, 13),
        ([0.0] * 40, POLICY, Decision.SAME, 11),
        ([-0.012, 0.001] * 20, POLICY, Decision.NOT_SLOWER, 11),
        ([-0.02] * 40, Policy(alpha_faster=1e-2), Decision.FASTER, 9),
        ([-0.02] * 40, Policy(alpha_faster=1e-2 / 500), Decision.FASTER, 19),
    ],
)
def test_the_first_claim_that_is_proven_decides(
    r: list[float], policy: Policy, decision: Decision, blocks: int
) -> None:
    found = judge_blocks(r, policy)
    assert (found.decision, found.blocks) == (decision, blocks)


def test_faster_is_waited_for_while_all_blocks_vote_it_and_no_longer() -> None:
    patient = dataclasses.replace(POLICY, alpha_faster=1e-2 / 500)
    waiting = judge_blocks([-0.02] * 15, patient)
    assert (waiting.decision, waiting.blocks) == (Decision.CONTINUE, 15)
    dissent = judge_blocks([-0.02] * 15 + [0.0] * 5, patient)
    assert (dissent.decision, dissent.blocks) == (Decision.NOT_SLOWER, 16)
    never = dataclasses.replace(POLICY, alpha_faster=1e-12)
    assert (judge_blocks([-0.02] * 40, never).decision, judge_blocks([-0.02] * 40, never).blocks) == (
        Decision.NOT_SLOWER,
        31,
    )
    assert judge_blocks([-0.02] * 15, patient, stopped=True).decision is Decision.NOT_SLOWER


def test_faster_is_waited_for_long_enough_even_late_in_a_run() -> None:
    for place in (1, 20, 100, 500):
        share = Spending(ALPHA_FASTER).share(place)
        found = judge_blocks([-0.02] * 40, dataclasses.replace(POLICY, alpha_faster=share))
        assert (found.decision, found.blocks) == (Decision.FASTER, SIGNS.unanimous_blocks(share, 128))


def test_slower_is_waited_for_while_its_votes_would_pass_the_lower_threshold_too() -> None:
    """Steadily slower by 0.9 %: more than the tolerance, less than twice as much, and both is proven in time."""
    needed = int(SIGNS.unanimous_blocks(POLICY.alpha, POLICY.blocks_max))
    proven = int(SIGNS.unanimous_blocks(POLICY.beta, POLICY.blocks_max))
    assert proven < needed
    found = judge_blocks([0.009] * 40, POLICY)
    assert (found.decision, found.blocks) == (Decision.SLOWER, needed)
    assert judge_blocks([0.009] * proven, POLICY).decision is Decision.CONTINUE
    dissent = judge_blocks([0.009] * proven + [0.004] + [0.009] * 20, POLICY)
    assert (dissent.decision, dissent.blocks) == (Decision.SAME, proven + 1)
    early = judge_blocks([0.004] + [0.009] * 40, POLICY)
    assert (early.decision, early.blocks) == (Decision.SAME, proven)
    assert judge_blocks([0.009] * proven, POLICY, stopped=True).decision is Decision.SAME


def test_slower_is_not_waited_for_where_no_number_of_blocks_would_prove_it() -> None:
    hopeless = dataclasses.replace(POLICY, alpha=1e-30, blocks_max=30)
    found = judge_blocks([0.009] * 30, hopeless)
    assert (found.decision, found.blocks) == (Decision.SAME, SIGNS.unanimous_blocks(POLICY.beta, 30))


@pytest.mark.parametrize("sd", [0.0002, 0.0005, 0.001])
def test_less_noise_never_hides_a_slowdown_above_the_tolerance(sd: float) -> None:
    """Without waiting for it, SLOWER came in 0, 4 and 72 of 100 such runs: the steadier the kernel, the rarer."""
    r = np.log1p(0.009) + np.random.default_rng(7).normal(0, sd, (500, 128))
    codes, _ = judge_many(r, dataclasses.replace(POLICY, alpha=2.5e-5))
    assert np.mean(codes == 0) >= 0.99


def test_a_tie_votes_for_nothing() -> None:
    at_delta, at_epsilon = math.log1p(0.005), math.log1p(0.01)
    found = evidence([at_delta, at_epsilon, -at_delta, -at_epsilon], POLICY)
    assert found.log_e_slower == evidence([0.02, 0, 0, 0], POLICY).log_e_slower
    mirrored = evidence([-0.02, 0, 0, 0], POLICY)
    assert found.log_e_faster == mirrored.log_e_faster


def test_a_tie_is_no_vote_for_not_slower() -> None:
    """Each block as slow as the allowance to the bit proves nothing; a little less is not slower."""
    patient = Policy(alpha=1e-30, blocks_max=40)
    assert judge_blocks([math.log1p(0.01)] * 40, patient).decision is Decision.INCONCLUSIVE
    assert judge_blocks([math.log1p(0.01) - 1e-9] * 40, patient).decision is Decision.SAME


def test_a_tie_is_no_vote_for_faster() -> None:
    found = judge_blocks([-math.log1p(0.005)] * 40, POLICY)
    assert (found.decision, found.blocks) == (Decision.SAME, 11)


@pytest.mark.parametrize(("blocks", "stopped"), [(15, True), (40, False)])
def test_a_tie_is_no_vote_for_not_faster_however_waiting_for_faster_ends(blocks: int, stopped: bool) -> None:
    """Each block as fast as the allowance to the bit: not slower, and not proven to be the same."""
    found = judge_blocks([-math.log1p(0.01)] * blocks, Policy(alpha_faster=1e-12), stopped=stopped)
    assert found.decision is Decision.NOT_SLOWER


def test_what_is_proven_by_the_last_block_counts() -> None:
    codes, stops = judge_many(np.full((1, 11), -0.02), Policy(alpha_faster=1e-12, blocks_max=11))
    assert (codes.tolist(), stops.tolist()) == ([3], [11])


def test_each_of_many_sequences_waits_for_faster_by_itself() -> None:
    patient = Policy(alpha_faster=1e-12)
    rows = np.full((3, 40), -0.02)
    rows[0, 14], rows[2, 19] = 0.0, 0.0
    _, stops = judge_many(rows, patient)
    assert stops.tolist() == [15, 31, 20]


def test_blocks_run_out_in_the_zone() -> None:
    undecided = [0.0075 + (0.004 if i % 2 else -0.004) for i in range(200)]
    found = judge_blocks(undecided, POLICY)
    assert (found.decision, found.blocks) == (Decision.INCONCLUSIVE, 128)
    assert judge_blocks(undecided[:127], POLICY).decision is Decision.CONTINUE


def test_time_out_is_inconclusive_and_keeps_the_evidence() -> None:
    found = judge_blocks([0.02] * 20, POLICY, stopped=True)
    assert (found.decision, found.blocks) == (Decision.INCONCLUSIVE, 20)
    assert found.evidence.log_e_slower > 0
    assert judge_blocks([], POLICY, stopped=True).decision is Decision.INCONCLUSIVE


@pytest.mark.parametrize("partial", [math.nan, math.inf, -math.inf])
def test_a_block_that_was_cut_short_is_refused_and_not_counted(partial: float) -> None:
    with pytest.raises(InvalidTimesError, match=r"block 3 of 3 .* leave out blocks that were cut short"):
        judge_blocks([0.0, 0.01, partial], POLICY)


@given(block_values, st.integers(0, 140))
def test_the_verdict_is_a_function_of_the_blocks_it_used(r: list[float], cut: int) -> None:
    """Blocks after the decision change nothing, and asking after every block ends where asking once does."""
    whole = judge_blocks(r, POLICY)
    if whole.decision not in (Decision.CONTINUE, Decision.INCONCLUSIVE):
        assert judge_blocks(r[: whole.blocks], POLICY) == whole
        before = judge_blocks(r[: min(cut, whole.blocks - 1)], POLICY)
        assert before.decision is Decision.CONTINUE


@given(block_values, st.floats(0.0, 0.009), st.floats(0.0, 0.009))
def test_a_larger_tolerance_never_turns_a_pass_into_slower(r: list[float], one: float, other: float) -> None:
    small, large = (dataclasses.replace(POLICY, delta=delta) for delta in sorted((one, other)))
    if judge_blocks(r, small).decision in PASSES:
        assert judge_blocks(r, large).decision is not Decision.SLOWER


@given(block_values, st.integers(1, 2000), st.integers(1, 2000))
def test_more_workloads_never_turn_a_pass_into_slower(r: list[float], one: int, other: int) -> None:
    few, many = (dataclasses.replace(POLICY, alpha=1e-3 / m) for m in sorted((one, other)))
    if judge_blocks(r, few).decision in PASSES:
        assert judge_blocks(r, many).decision is not Decision.SLOWER


@given(block_values)
def test_exchanging_baseline_and_candidate_mirrors_evidence_and_interval(r: list[float]) -> None:
    forward, backward = evidence(r, POLICY), evidence([-x for x in r], POLICY)
    assert forward.log_e_slower == backward.log_e_faster
    interval, mirrored = ratio_interval(r), ratio_interval([-x for x in r])
    if interval is None or mirrored is None:
        assert interval is mirrored is None
    else:
        assert mirrored == pytest.approx((1 / interval[1], 1 / interval[0]))


def test_exchanging_baseline_and_candidate_mirrors_the_verdict() -> None:
    even = Policy(alpha=1e-3, alpha_faster=1e-3)
    slower, faster = judge_blocks([0.02] * 40, even), judge_blocks([-0.02] * 40, even)
    assert (slower.decision, faster.decision) == (Decision.SLOWER, Decision.FASTER)
    assert slower.blocks == faster.blocks
    assert slower.ratio == pytest.approx(1 / faster.ratio)


@given(block_values.filter(bool), st.randoms())
def test_the_order_of_blocks_changes_no_interval(r: list[float], random: object) -> None:
    shuffled = list(r)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ratio_interval(shuffled) == ratio_interval(r)


@pytest.mark.parametrize("scale", [1e-3, 7.3, 1e6])
@pytest.mark.parametrize(
    ("shift", "decision"),
    [(0.0, Decision.SAME), (0.02, Decision.SLOWER), (-0.02, Decision.FASTER)],
)
def test_scaling_all_times_leaves_ratio_interval_and_verdict(shift: float, decision: Decision, scale: float) -> None:
    """From the samples of the slots on."""
    slots = 10_000 * np.exp(np.random.default_rng(2).normal(0, 0.002, (64, 4, 6)))
    slots[:, 1:3] *= math.exp(shift)  # ABBA: the candidate's
    plain, scaled = (judge_blocks([block_value("ABBA", c * block) for block in slots], POLICY) for c in (1.0, scale))
    assert plain.decision is scaled.decision is decision
    assert scaled.blocks == plain.blocks
    assert scaled.ratio == pytest.approx(plain.ratio, rel=1e-12)
    assert plain.interval is not None
    assert plain.interval[0] < plain.ratio < plain.interval[1]
    assert scaled.interval == pytest.approx(plain.interval, rel=1e-12)


NOISES = {
    "normal": lambda rng, shape: rng.normal(0, 0.002, shape),
    "lognormal": lambda rng, shape: np.exp(rng.normal(-6.2, 0.6, shape)) - math.exp(-6.2),
    "contaminated": lambda rng, shape: rng.normal(0, 0.002, shape) * np.where(rng.random(shape) < 0.1, 20, 1),
    "discrete": lambda rng, shape: np.round(rng.normal(0, 0.003, shape) / 0.002) * 0.002,
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("shift", [0.0, 0.0099, 0.0198])
def test_the_interval_covers_at_the_stopping_time(noise: str, shift: float) -> None:
    rng = np.random.default_rng(29)
    r = shift + NOISES[noise](rng, (400, 128))
    _, stops = judge_many(r, POLICY)
    covered = 0
    for row, stop in zip(r, stops, strict=True):
        interval = ratio_interval(row[:stop].tolist())
        assert interval is not None
        covered += interval[0] <= math.exp(shift) * (1 + 1e-12) and interval[1] >= math.exp(shift) * (1 - 1e-12)
    assert covered >= 0.95 * 400


def test_an_interval_for_one_look_does_not_cover_at_a_stopping_time() -> None:
    """The usual order-statistic interval, stopped when it first misses the truth, misses it often."""
    rng = np.random.default_rng(31)
    missed = 0
    for row in rng.normal(0, 0.002, (200, 128)):
        for n in range(8, 129):
            reach = math.floor(n / 2 - 0.98 * math.sqrt(n))
            ordered = np.sort(row[:n])
            if not ordered[max(reach, 0)] <= 0 <= ordered[n - 1 - max(reach, 0)]:
                missed += 1
                break
    assert missed > 0.05 * 200


def test_the_interval_needs_eight_blocks() -> None:
    assert ratio_interval([]) is None
    assert ratio_interval([0.0] * 7) is None
    assert ratio_interval([0.0] * 8) == (1.0, 1.0)
    assert ratio_interval(list(np.linspace(-0.01, 0.01, 8))) == (math.exp(-0.01), math.exp(0.01))


def test_many_sequences_are_judged_as_one_by_one() -> None:
    rng = np.random.default_rng(37)
    r = rng.normal(0.006, 0.006, (300, 1)) + rng.normal(0, 0.006, (300, 150))
    codes, stops = judge_many(r, POLICY)
    names = [Decision.SLOWER, Decision.FASTER, Decision.SAME, Decision.NOT_SLOWER]
    for row, code, stop in zip(r, codes, stops, strict=True):
        single = judge_blocks(row.tolist(), POLICY)
        assert single.blocks == stop
        assert single.decision is (Decision.INCONCLUSIVE if code == UNDECIDED else names[code])
    assert set(codes.tolist()) >= {0, 2, UNDECIDED}


def test_no_block_yet_asks_for_one() -> None:
    found = judge_blocks([], POLICY)
    assert (found.decision, found.blocks, found.interval) == (Decision.CONTINUE, 0, None)
    assert math.isnan(found.ratio)


@pytest.mark.parametrize(
    "wrong", [{"delta": 0.01}, {"delta": -0.1}, {"alpha": 0.0}, {"beta": 1.0}, {"blocks_max": 0}, {"alpha_faster": 2}]
)
def test_a_policy_that_can_decide_nothing_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(PolicyError, match="0 <= delta < epsilon"):
        Policy(**wrong)  # type: ignore[arg-type]


def test_the_second_process_needs_less_evidence() -> None:
    assert judge_blocks([0.02] * 40, POLICY.confirming()).blocks == 9
