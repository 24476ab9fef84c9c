"""Unpaired verdicts: honest about processes, spent over looks, blind below a few percent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_samples import noisy, rounds
from scipy import stats

from pytest_gpuperf.judge.log_times import InvalidTimesError
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.two_sample import Spread, compare_rounds
from pytest_gpuperf.judge.unpaired import LOOKS, WEIGHTS, Unpaired, judge_unpaired
from pytest_gpuperf.model.timed_round import Round

QUIET = [[100.0, 100.1]] * 5
RESTLESS = [[100.0] * 2, [101.0] * 2, [99.0] * 2, [100.8] * 2, [99.2] * 2]
POLICY = Policy()


def after(
    times: list[float], policy: Policy = POLICY, baseline: list[list[float]] = QUIET, *, same_gpu: bool = True
) -> Unpaired:
    return judge_unpaired(rounds(baseline), rounds([times], session="new"), policy, same_gpu=same_gpu)


def sequential(old: tuple[Round, ...], new: tuple[Round, ...], policy: Policy) -> Decision:
    """Measure as long as another look is wanted, as a caller does."""
    wanted = LOOKS[0]
    while True:
        found = judge_unpaired(old, new[:wanted], policy)
        if found.decision is not Decision.CONTINUE:
            return found.decision
        wanted = found.rounds_wanted


def test_ten_percent_longer_is_slower_at_the_first_look() -> None:
    found = after([110.0, 110.1])
    assert found.decision is Decision.SLOWER
    assert found.ratio == pytest.approx(1.1, abs=1e-3)
    assert found.rounds_wanted == 0


def test_ten_percent_shorter_is_faster() -> None:
    assert after([90.0, 90.1]).decision is Decision.FASTER


def test_an_equal_time_is_not_slower() -> None:
    assert after([100.0, 100.1]).decision is Decision.NOT_SLOWER


def test_inside_the_zone_it_asks_for_the_next_look_and_ends_inconclusive() -> None:
    looks = {n: after([103.0] * n, baseline=RESTLESS) for n in (1, 2, 3, 4, 8, 15, 16, 30)}
    assert [look.rounds_wanted for look in looks.values()] == [2, 4, 4, 8, 16, 16, 0, 0]
    assert looks[15].decision is Decision.CONTINUE
    assert looks[16].decision is Decision.INCONCLUSIVE


def test_what_looks_faster_is_looked_at_again_before_it_is_called_not_slower() -> None:
    assert after([97.0] * 2).decision is Decision.CONTINUE
    assert after([97.0] * 16).decision is Decision.NOT_SLOWER


def test_rounds_between_two_looks_are_not_peeked_at() -> None:
    found = after([100.0, 100.1, 150.0])
    assert found.rounds_used == 2
    assert found.ratio == pytest.approx(1.0, abs=1e-3)


def test_the_looks_spend_alpha_exactly_once() -> None:
    assert sum(WEIGHTS) == pytest.approx(1.0)
    assert len(WEIGHTS) == len(LOOKS)


@pytest.mark.parametrize(("look", "share"), [(2, 0.1), (4, 0.2), (8, 0.3), (16, 0.4)])
@pytest.mark.parametrize(("times", "side", "decided"), [(103.0, 1, Decision.SLOWER), (97.0, -1, Decision.FASTER)])
def test_a_look_decides_at_its_own_share_of_alpha(
    look: int, share: float, times: float, side: int, decided: Decision
) -> None:
    """The p-value of a look lies just below or just above its share: only then, or not, does it decide."""
    spread = after([times] * look).spread
    beyond = (side * spread.difference - math.log1p(0.02)) / spread.error
    p = float(stats.t.sf(beyond, spread.freedom))
    for factor, is_decided in ((1.01, True), (0.99, False)):
        alpha = factor * p / share
        found = after([times] * look, Policy(alpha=alpha, alpha_faster=alpha))
        assert (found.decision is decided) is is_decided


def test_another_gpu_is_never_slower_or_faster() -> None:
    assert after([200.0] * 16, same_gpu=False).decision is Decision.INCONCLUSIVE
    assert after([50.0] * 16, same_gpu=False).decision is Decision.NOT_SLOWER
    assert after([50.0] * 2, same_gpu=False).decision is Decision.NOT_SLOWER, "it need not wait for FASTER"


def test_tolerance_and_allowance_have_floors() -> None:
    bold = Policy(delta=0.0, epsilon=0.001, omega=0.0)
    assert after([101.9] * 16, bold).decision is after([101.9] * 16).decision
    assert after([101.9] * 16, bold).spread.error >= math.sqrt(2) * 0.003


def test_a_wider_tolerance_is_respected() -> None:
    assert after([110.0, 110.1], Policy(delta=0.1, epsilon=0.2)).decision is Decision.NOT_SLOWER


def test_the_error_counts_processes_and_not_rounds() -> None:
    """Five processes that differ by 1 % and hardly vary inside: the error is that of one more process."""
    old = [[100.0] * 20, [101.0] * 20, [99.0] * 20, [100.5] * 20, [99.5] * 20]
    spread = compare_rounds(rounds(old), rounds([[100.0] * 16], session="new"), 0.003)
    between = float(np.std(np.log([100.0, 101.0, 99.0, 100.5, 99.5]), ddof=1))
    assert spread.between == pytest.approx(between, rel=1e-9)
    assert spread.error == pytest.approx(math.sqrt(2) * between, rel=1e-9)
    assert spread.processes == 5


def test_the_between_part_is_the_analysis_of_variance_estimate() -> None:
    old = [[100.0, 101.0], [102.0, 103.5], [99.0, 99.2]]
    groups = [np.log(group) for group in old]
    mean_squares_between = 2 * np.var([group.mean() for group in groups], ddof=1)
    within = np.mean([group.var(ddof=1) for group in groups])
    statistic, _ = stats.f_oneway(*groups)
    assert mean_squares_between / within == pytest.approx(statistic)
    spread = compare_rounds(rounds(old), rounds([[100.0]], session="new"), 0.0)
    assert spread.between**2 == pytest.approx((mean_squares_between - within) / 2)
    assert spread.within**2 == pytest.approx(within)


def test_one_process_on_either_side_leaves_the_allowance_alone() -> None:
    spread = compare_rounds(rounds([[100.0, 100.4]]), rounds([[100.0, 100.4]], session="new"), 0.003)
    assert spread.between == 0
    assert spread.error == pytest.approx(math.sqrt(spread.within**2 * (1 / 2 + 1 / 2) + 2 * 0.003**2))


def test_equal_process_numbers_of_two_sessions_are_two_processes() -> None:
    old = (*rounds([[100.0, 100.0]], session="a"), *rounds([[104.0, 104.0]], session="b"))
    assert compare_rounds(old, rounds([[100.0]], session="new"), 0.0).processes == 2


def test_a_single_round_a_side_decides_nothing() -> None:
    spread = compare_rounds(rounds([[100.0]]), rounds([[200.0]], session="new"), 0.003)
    assert not spread.exceeds(0.0, 0.1)
    assert not spread.below(1.0, 0.1)
    assert spread.interval(0.95) is None
    single = after([200.0])
    assert (single.decision, single.rounds_used, single.rounds_wanted) == (Decision.CONTINUE, 1, 2)


def spread_of(freedom: int) -> Spread:
    return Spread(difference=0.1, error=0.001, freedom=freedom, within=0.001, between=0.0, processes=1)


def test_one_degree_of_freedom_decides_and_none_does_not() -> None:
    assert (spread_of(1).exceeds(0.0, 0.1), spread_of(0).exceeds(0.0, 0.1)) == (True, False)
    assert (spread_of(1).below(0.2, 0.1), spread_of(0).below(0.2, 0.1)) == (True, False)
    assert spread_of(1).interval(0.95) is not None
    assert spread_of(0).interval(0.95) is None


def test_the_interval_is_that_of_a_t_statistic() -> None:
    low, high = spread_of(10).interval(0.95) or (0.0, 0.0)
    reach = stats.t.ppf(0.975, 10) * 0.001
    assert (math.log(low), math.log(high)) == pytest.approx((0.1 - reach, 0.1 + reach))


def test_a_side_of_two_processes_tells_how_processes_differ() -> None:
    old = [[100.0, 100.2], [101.0, 101.2]]
    assert compare_rounds(rounds(old), rounds([[100.0]], session="new"), 0.0).between == pytest.approx(
        0.007, abs=0.0005
    )


def test_the_error_within_shrinks_with_rounds_and_processes() -> None:
    """Each side's mean of process means varies by the sum of 1/rounds over the squared number of processes."""
    old, new = [[100.0, 101.0], [100.0, 101.0, 100.5, 100.5]], [[100.0, 101.0, 100.5]]
    spread = compare_rounds(rounds(old), rounds(new, session="new"), 0.0)
    assert spread.between == 0
    assert spread.error == pytest.approx(spread.within * math.sqrt((1 / 2 + 1 / 4) / 4 + 1 / 3))
    assert spread.freedom == 7


def test_single_rounds_of_several_processes_have_no_scatter_within() -> None:
    spread = compare_rounds(rounds([[100.0], [101.0]]), rounds([[100.0]], session="new"), 0.003)
    assert spread.within == 0
    assert spread.error == pytest.approx(math.sqrt(2) * spread.between)


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(InvalidTimesError, match="candidate rounds"):
        after([100.0, math.nan])
    with pytest.raises(InvalidTimesError, match="baseline rounds"):
        judge_unpaired((), rounds([[1.0]]), POLICY)


@given(st.lists(st.floats(80.0, 130.0), min_size=2, max_size=16), st.floats(0.01, 1000.0))
def test_scaling_all_times_leaves_ratio_interval_and_decision(times: list[float], scale: float) -> None:
    plain = after(times)
    scaled = after([scale * x for x in times], baseline=[[scale * x for x in group] for group in QUIET])
    assert scaled.decision is plain.decision
    assert scaled.ratio == pytest.approx(plain.ratio, rel=1e-9)
    assert scaled.interval == pytest.approx(plain.interval, rel=1e-9)


@pytest.mark.parametrize("between", [0.001, 0.003, 0.005])
def test_no_false_slower_while_processes_differ_by_half_a_percent(between: float) -> None:
    rng = np.random.default_rng(5)
    decisions = [
        sequential(
            rounds(noisy(rng, 5, 2, between=between, within=0.002)),
            rounds(noisy(rng, 1, 16, between=between, within=0.002), session="new"),
            POLICY,
        )
        for _ in range(1000)
    ]
    assert decisions.count(Decision.SLOWER) == 0
    assert decisions.count(Decision.NOT_SLOWER) >= 950


@pytest.mark.parametrize("between", [0.001, 0.003, 0.005])
def test_ten_percent_longer_is_slower_in_one_process(between: float) -> None:
    rng = np.random.default_rng(7)
    decisions = [
        sequential(
            rounds(noisy(rng, 5, 2, between=between, within=0.002)),
            rounds(noisy(rng, 1, 16, between=between, within=0.002, shift=0.1), session="new"),
            POLICY,
        )
        for _ in range(1000)
    ]
    assert decisions.count(Decision.SLOWER) > 990


def test_at_the_tolerance_itself_alpha_holds() -> None:
    """The worst case the tolerance allows: exactly 2 % slower, .3 % between processes; 20 000 drawn at once."""
    rng = np.random.default_rng(11)
    draws, alarms = 20_000, 0
    old = rng.normal(0, 0.003, (draws, 5, 1)) + rng.normal(0, 0.002, (draws, 5, 2))
    new = rng.normal(0, 0.003, (draws, 1)) + rng.normal(0, 0.002, (draws, 16)) + math.log(1.02)
    suspicious = np.flatnonzero(new.mean(axis=1) - old.mean(axis=(1, 2)) > math.log(1.02) + 3 * 0.003)
    for index in suspicious:
        found = sequential(rounds(np.exp(old[index])), rounds([np.exp(new[index])], session="new"), POLICY)
        alarms += found is Decision.SLOWER
    assert suspicious.size > 50
    assert alarms <= draws * POLICY.alpha + 3 * math.sqrt(draws * POLICY.alpha)


def test_rounds_as_units_would_raise_false_alarms() -> None:
    """Guard: a t test that takes every round as independent fails the simulation that ours passes."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(1000):
        old, new = noisy(rng, 2, 20, between=0.01, within=0.001), noisy(rng, 1, 16, between=0.01, within=0.001)
        a, b = np.log(old).ravel(), np.log(new).ravel()
        alarms += bool(stats.ttest_ind(b - math.log1p(0.02), a, alternative="greater").pvalue < POLICY.alpha)
    assert alarms > 20
