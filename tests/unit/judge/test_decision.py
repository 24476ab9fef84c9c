"""The one decision on time: fair bets, their evidence, and what it proves."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_gpuperf.judge.decision import (
    ALPHA,
    LOOKS,
    MEANS_SCALE,
    MOST_BLOCKS,
    PROCESS_DEVIATION,
    Comparison,
    Decision,
    decide,
    interval,
    is_promising,
    is_unanimous,
    log_e,
    log_e_slower,
    over_processes,
    proven_faster,
    share,
    wants_pair,
)
from pytest_gpuperf.model.limits import TIGHT

ratios = st.floats(-0.05, 0.05)


def first(r: list[float], alpha: float = ALPHA, means: list[float] | None = None) -> tuple[Decision | None, int]:
    """The first decision that blocks prove, and after how many of them."""
    for count in range(1, len(r) + 1):
        found = decide(r[:count], TIGHT, alpha, (means or [])[:count])
        if found is not None:
            return found, count
    return None, len(r)


def test_evidence_follows_the_bets() -> None:
    for blocks in range(1, 9):  # of a fair coin they are worth one on average
        money = [math.exp(log_e(signs)) for signs in itertools.product((-1.0, 1.0), repeat=blocks)]
        assert math.fsum(money) / len(money) == pytest.approx(1.0)
    assert log_e([]) == pytest.approx(0.0)
    assert log_e([1.0] * 13) == pytest.approx(math.log(sum((1 + c) ** 13 for c in (0.2, 0.4, 0.6, 0.8, 1)) / 5))
    assert log_e([0.0] * 5) == pytest.approx(0.0)
    assert log_e([-1.0]) < 0
    assert log_e_slower([math.log1p(TIGHT.tolerance)] * 20, TIGHT) == pytest.approx(0.0), "a tie bets nothing"


@pytest.mark.parametrize(("r", "signs", "bet"), [
    ([0.02], [1], 0.5), ([-0.02] * 2, [-1] * 2, 1.5), ([0.02] * 2, [1] * 2, -2.0), ([0.0, 0.02], [-1, 1], 0.1),
])  # fmt: skip
def test_evidence_is_that_of_midmeans_and_means(r: list[float], signs: list[int], bet: float) -> None:
    """A mean bets by how far it is beyond the tolerance, up to all that it may."""
    means = [math.log1p(TIGHT.tolerance) + MEANS_SCALE * bet]
    money = [math.exp(log_e(signs)), math.exp(log_e([min(max(bet, -1), 1)]))]
    assert log_e_slower(r, TIGHT, means) == pytest.approx(math.log((15 * money[0] + money[1]) / 16))


@given(st.lists(ratios, min_size=1, max_size=60))
def test_one_more_slower_block_never_lowers_the_evidence(r: list[float]) -> None:
    assert log_e_slower([*r, 0.05], TIGHT) >= log_e_slower(r, TIGHT) - 1e-9


@pytest.mark.parametrize(("ratio", "decision", "blocks"), [
    (1.0, Decision.SAME, 10), (1.005, Decision.SAME, 10), (0.9955, Decision.SAME, 10), (1.0095, Decision.SLOWER, 12),
    (1.02, Decision.SLOWER, 12), (2.0, Decision.SLOWER, 12), (0.98, Decision.FASTER, 10), (0.5, Decision.FASTER, 10),
])  # fmt: skip
def test_steady_ratios_decide(ratio: float, decision: Decision, blocks: int) -> None:
    """Between the limits both are proven, and a pass waits while SLOWER is as likely."""
    assert first([math.log(ratio)] * MOST_BLOCKS) == (decision, blocks)


def test_rare_slow_launches_are_slower_though_midmeans_are_not() -> None:
    r, means = [0.0] * MOST_BLOCKS, [math.log(1.8)] * MOST_BLOCKS
    assert first(r, means=means)[0] is Decision.SLOWER
    assert first(r)[0] is Decision.SAME
    assert first(r, means=r)[0] is Decision.SAME


@pytest.mark.parametrize(("bets", "decision"), [
    ([50.0, 50.0], Decision.SAME), ([50.0] * 3, None), ([0.07] * 20, Decision.SAME), ([0.09] * 20, None),
])  # fmt: skip
def test_a_pass_waits_while_means_trend_to_slower(bets: list[float], decision: Decision | None) -> None:
    """From e-values of 3 on; no mean bets more than all."""
    means = [math.log1p(TIGHT.tolerance) + MEANS_SCALE * bet for bet in bets]
    assert decide([0.0] * 20, TIGHT, ALPHA, means) is decision


def test_a_smaller_share_takes_more_blocks() -> None:
    counts = [first([0.03] * MOST_BLOCKS, share(tests, 1))[1] for tests in (1, 20, 500)]
    assert counts == sorted(counts)
    assert counts[0] == 13
    assert counts[-1] <= 24


def test_shares_of_a_run_add_up_to_its_error_rate() -> None:
    spent = sum(share(7, number) for number in range(1, 100_000)) * 7
    assert 0.9999 * ALPHA < spent <= ALPHA


@settings(max_examples=20)
@given(st.lists(st.floats(-0.5, 0.5), min_size=40, max_size=60), st.floats(0, 1), st.integers(0, 2**32))
def test_coins_keep_the_promise_for_any_noise(noise: list[float], effect: float, seed: int) -> None:
    """Noise that is the same whichever side came first: its sign is the coin's, at any effect within the tolerance."""
    rng, rate = np.random.default_rng(seed), 0.05
    signs = rng.integers(0, 2, (100, len(noise))) * 2 - 1
    values = math.log1p(TIGHT.tolerance) * effect + signs * np.array(noise)
    red = sum(any(log_e_slower(run[:n], TIGHT) >= -math.log(rate) for n in (20, 30, len(noise))) for run in values)
    assert red <= 100 * rate + 4 * math.sqrt(100 * rate)


def sizes(few: int, many: int) -> pytest.MarkDecorator:
    """So many runs of a simulation, and with ``-m slow`` many."""
    return pytest.mark.parametrize("runs", [few, pytest.param(many, marks=pytest.mark.slow)])


@sizes(40, 2000)
@pytest.mark.parametrize(("sd", "ratio", "least"), [(0.001, 1.01, 0.99), (0.003, 1.01, 0.98), (0.005, 1.01, 0.97),
                                                    (0.005, 1.02, 1.0)])  # fmt: skip
def test_power(sd: float, ratio: float, least: float, runs: int) -> None:
    rng = np.random.default_rng(7)
    taken = math.log(ratio) + sd * rng.standard_normal((runs, MOST_BLOCKS))
    assert sum(first(list(run), share(20, 1))[0] is Decision.SLOWER for run in taken) >= least * runs


@sizes(100, 5000)
def test_no_false_alarm_between_equal_kernels(runs: int) -> None:
    taken = 0.003 * np.random.default_rng(8).standard_normal((runs, MOST_BLOCKS))
    assert all(first(list(run))[0] is not Decision.SLOWER for run in taken)


AT_TOLERANCE, AT_DETECT = math.log1p(TIGHT.tolerance), math.log1p(TIGHT.detect)


@pytest.mark.parametrize(("r", "promising", "unanimous"), [
    ([0.02], True, True), ([0.0], True, True), ([-0.02] * 3, True, True), ([], False, True),
    ([0.02, -0.02] * 10 + [0.02] * 4, False, False), ([AT_TOLERANCE, 0.02], True, False),
    ([AT_DETECT, 0.0], True, False),
])  # fmt: skip
def test_promising_and_unanimous(r: list[float], promising: bool, unanimous: bool) -> None:
    assert (is_promising(r, TIGHT), is_unanimous(r, TIGHT)) == (promising, unanimous)
    assert is_promising(r, TIGHT, [0.3] * 30)


# --- the ratio and its interval ------------------------------------------------------------------


def test_an_interval_takes_seven_blocks_and_covers_the_ratio() -> None:
    assert interval([]) is interval([0.01] * 6) is None
    assert interval([0.001 * n for n in range(7)]) == (1.0, math.exp(0.006))
    assert interval([0.01 + 0.001 * n for n in range(20)]) == (math.exp(0.013), math.exp(0.026))
    rng = np.random.default_rng(9)
    found = [interval(list(0.003 * rng.standard_normal(30))) for _ in range(60)]
    assert sum(one is not None and one[0] <= 1 <= one[1] for one in found) >= 57


# --- pairs of processes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "decision"),
    [([1.01], None), ([1.02, 1.021, 1.02], None), ([1.02, 1.021, 1.02, 1.02], Decision.SLOWER), ([1.008, 1.0], None),
     ([1.012] * 5, None), ([1.012] * 8, Decision.SLOWER), ([1.007, 1.019] * 4, None),
     ([1.007, 1.019] * 8, Decision.SLOWER), ([1.01, 1.0, 1.0], Decision.SAME), ([1.02, 1.0], None),
     ([1.5, 1.52], Decision.SLOWER), ([1.012, 1.016] * 2, None), ([1.01, *[1.008] * 6], None)],
)  # fmt: skip
def test_pairs_of_processes_decide(found: list[float], decision: Decision | None) -> None:
    assert over_processes(found, TIGHT, share(1, 1)) is decision


@pytest.mark.parametrize(("ratios", "wanted"), [
    ([1.01], True), ([1.02] * max(LOOKS), False), ([1.02, 1.01, 1.0], True), ([1.02, 1.0, 1.01, 1.0], False),
    ([1.02] * 4, True),
])  # fmt: skip
def test_no_more_pairs_than_may_decide(ratios: list[float], wanted: bool) -> None:
    assert wants_pair(ratios, TIGHT) is wanted


def test_one_pair_of_processes_proves_a_large_gain_alone() -> None:
    assert [proven_faster(ratio, TIGHT) for ratio in (0.981, 0.9795)] == [False, True]


@sizes(1000, 30_000)
def test_equal_callables_are_red_at_no_more_than_their_share(runs: int) -> None:
    rng, alpha, red = np.random.default_rng(10), 0.01, 0
    for _ in range(runs):
        sd = math.sqrt(2 * PROCESS_DEVIATION**2 / rng.chisquare(2)) * math.sqrt(2)
        found = [math.exp(sd * rng.standard_normal())]
        while found[0] > 1 + TIGHT.tolerance and wants_pair(found, TIGHT):
            found.append(math.exp(sd * rng.standard_normal()))
            decision = over_processes(found, TIGHT, alpha)
            if decision is not None:
                red += decision is Decision.SLOWER
                break
    assert red <= runs * alpha


@pytest.mark.parametrize(("r", "means", "trends"), [
    ([0.02] * 14, [0.02] * 14, True), ([0.02], [0.02], True), ([], [], False), ([0.0] * 2, [0.0] * 2, False),
    ([0.0] * 12, [0.3] * 12, True),
])  # fmt: skip
def test_a_comparison_trends_by_midmeans_and_means(r: list[float], means: list[float], trends: bool) -> None:
    found = Comparison(r=tuple(r), means=tuple(means), seed=1, time_ns=1000.0)
    assert found.trends_slower(TIGHT) is trends
    if len(r) == 14:
        assert (found.decision(TIGHT, ALPHA), found.ratio) == (Decision.SLOWER, pytest.approx(math.exp(0.02)))
