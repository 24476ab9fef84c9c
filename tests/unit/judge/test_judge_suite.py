"""One error rate for a run: shares, self-pairs, shifts of the environment, discoveries for reports."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_gpuperf.judge.error_budget import (
    ALPHA,
    RESERVE,
    Spending,
    SpendingError,
    e_bh,
    environment_shift,
    fixed_share,
    self_pair_alarm,
    spending_of,
    total_spent,
)
from pytest_gpuperf.judge.log_times import InvalidTimesError
from pytest_gpuperf.model.result import SelfPairReading


def reading(log_e_slower: float, log_e_faster: float) -> SelfPairReading:
    return SelfPairReading(
        workload="work", ratio=1.0, blocks=8, log_e_slower=log_e_slower, log_e_faster=log_e_faster, seed=1
    )


@given(st.integers(1, 5000))
def test_06_09_fixed_shares_add_up_to_alpha(hypotheses: int) -> None:
    assert fixed_share(ALPHA, hypotheses) * hypotheses == pytest.approx(ALPHA)


def test_no_workload_has_no_share() -> None:
    with pytest.raises(SpendingError):
        fixed_share(ALPHA, 0)


@given(st.integers(1, 16), st.lists(st.integers(0, 500), max_size=16))
def test_06_09_shares_spent_online_never_exceed_alpha_over_all_workers(workers: int, tested: list[int]) -> None:
    spending = Spending(ALPHA, workers)
    assert total_spent([(spending, count) for count in tested[:workers]]) <= ALPHA


def test_06_09_online_shares_use_alpha_up_in_the_limit() -> None:
    spent = total_spent([(Spending(ALPHA, 4), 20_000)] * 4)
    assert 0.9999 * ALPHA < spent <= ALPHA


@pytest.mark.parametrize(("index", "blocks"), [(1, 14), (5, 19), (20, 23), (100, 28), (500, 33)])
def test_06_09_unanimous_blocks_needed_for_the_ith_workload(index: int, blocks: int) -> None:
    from pytest_gpuperf.judge.eprocess import log_e

    needed = -math.log(Spending().share(index))
    assert log_e(blocks - 1, blocks - 1) < needed <= log_e(blocks, blocks)


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"alpha": 1.0}, {"workers": 0}])
def test_spending_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(SpendingError):
        Spending(**bad)  # type: ignore[arg-type]


def test_workloads_are_counted_from_one() -> None:
    with pytest.raises(SpendingError, match="counted from 1"):
        Spending().share(0)


def test_workers_that_did_not_share_are_found_out() -> None:
    with pytest.raises(SpendingError, match="not made for one run"):
        total_spent([(Spending(ALPHA, 1), 3), (Spending(ALPHA, 1), 3)])
    with pytest.raises(SpendingError, match="not made for one run"):
        total_spent([(Spending(ALPHA, 2), 3), (Spending(2 * ALPHA, 2), 3)])
    assert total_spent([]) == 0


def test_a_kernel_that_differs_from_itself_invalidates_the_run() -> None:
    assert not self_pair_alarm(reading(math.log(999), 0.0))
    assert self_pair_alarm(reading(math.log(1001), 0.0))
    assert self_pair_alarm(reading(0.0, math.log(1001)))


def test_a_shift_of_the_environment_is_seen_by_canaries_and_by_the_whole_suite() -> None:
    assert environment_shift([0.001, -0.002, 0.0, 0.001], 0.003, {"copy": 0.002, "fma": -0.002}) == ()
    assert environment_shift([], 0.003, {"copy": 0.0, "fma": math.log(1.02)}) == (
        "the canary kernel fma, which no change of yours touches, moved by +2.0 %",
    )
    assert (
        "copy, which no change of yours touches, moved by -3.0 %"
        in environment_shift([], 0.003, {"copy": math.log(0.97)})[0]
    )
    assert "half of the 3 workloads moved by +3.0 %" in environment_shift([math.log(1.03)] * 3, 0.003)[0]
    assert "-2.9 %" in environment_shift([-math.log(1.03)] * 3, 0.003)[0]


def test_one_slow_workload_of_many_is_no_shift_of_the_environment() -> None:
    assert environment_shift([0.5, 0.0, 0.0], 0.003) == ()
    assert environment_shift([0.5, 0.5], 0.003) == ()


def test_what_is_no_ratio_is_refused() -> None:
    with pytest.raises(InvalidTimesError, match="difference is nan"):
        environment_shift([math.nan], 0.003)
    with pytest.raises(InvalidTimesError, match="canary is inf"):
        environment_shift([], 0.003, {"fma": math.inf})
    with pytest.raises(InvalidTimesError, match="NaN"):
        e_bh([0.0, math.nan])


@given(st.lists(st.floats(-5.0, 15.0), max_size=40), st.sampled_from([0.01, 0.05, 0.2]))
def test_06_09_e_bh_is_benjamini_hochberg_on_the_inverse_e_values(log_e: list[float], rate: float) -> None:
    found = e_bh(log_e, rate)
    if not log_e:
        assert found == ()
        return
    adjusted = stats.false_discovery_control(np.minimum(1.0, np.exp(-np.array(log_e))), method="bh")
    clear = np.abs(adjusted - rate) > 1e-9
    if clear.all():
        assert found == tuple(np.flatnonzero(adjusted <= rate).tolist())


def test_06_09_e_bh_on_a_worked_example() -> None:
    """p = .01 .02 .03 .04 .05: adjusted by Benjamini and Hochberg all are .05, by Holm .05 .08 .09 .09 .09."""
    log_e = [-math.log(p) for p in (0.01, 0.02, 0.03, 0.04, 0.05)]
    assert e_bh(log_e, 0.0501) == (0, 1, 2, 3, 4)
    assert e_bh(log_e, 0.0499) == ()
    assert e_bh(log_e[::-1], 0.0501) == (0, 1, 2, 3, 4)
    assert e_bh([math.log(1000), 0.0, math.log(1000)], 0.05) == (0, 2)


def holm(p: np.ndarray, rate: float) -> set[int]:
    """Indices rejected by Holm's step-down, from its definition."""
    rejected: set[int] = set()
    for rank, index in enumerate(np.argsort(p, kind="stable")):
        if p[index] > rate / (p.size - rank):
            break
        rejected.add(int(index))
    return rejected


@given(st.lists(st.floats(0.0, 15.0), min_size=1, max_size=40))
def test_06_09_the_gates_threshold_is_stricter_than_holm_and_than_the_report(log_e: list[float]) -> None:
    p = np.exp(-np.array(log_e))
    gated = {index for index, value in enumerate(p) if value <= fixed_share(0.05, p.size) * (1 - 1e-9)}
    assert gated <= holm(p, 0.05) <= set(e_bh(log_e, 0.05 * (1 + 1e-9)))


def test_06_09_e_bh_keeps_false_discoveries_below_its_rate() -> None:
    """Half of 40 workloads are slower; the others toss fair coins.  Average share of false discoveries."""
    from pytest_gpuperf.judge.eprocess import log_e_many

    rng = np.random.default_rng(41)
    rates = np.repeat([0.5, 0.95], 20)
    shares = []
    for _ in range(400):
        votes = (rng.random((40, 24)) < rates[:, np.newaxis]).sum(axis=1)
        found = e_bh(log_e_many(votes, np.array(24)).tolist(), 0.05)
        shares.append(sum(index < 20 for index in found) / max(len(found), 1))
    assert np.mean(shares) <= 0.05


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_workers_that_replace_crashed_ones_spend_what_was_kept_for_them(workers: int) -> None:
    every = [spending_of(number, workers) for number in range(workers + 30)]
    spent = sum(one.spent(20_000) for one in every)
    assert 0.99 * ALPHA < spent <= ALPHA
    first = every[0].share(1)
    assert all(one.share(1) == first for one in every[:workers])
    assert first == pytest.approx((1 - RESERVE) * Spending(ALPHA, workers).share(1))
    assert every[workers].share(1) == pytest.approx(2 * every[workers + 1].share(1))
