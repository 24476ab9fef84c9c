"""One error rate for a run: shares, self-pairs, shifts of the environment."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.judge.error_budget import (
    ALPHA,
    RESERVE,
    Spending,
    SpendingError,
    environment_shift,
    self_pair_alarm,
    spending_of,
)
from pytest_gpuperf.judge.log_times import InvalidTimesError
from pytest_gpuperf.model.result import SelfPairReading


def reading(log_e_slower: float, log_e_faster: float) -> SelfPairReading:
    return SelfPairReading(
        workload="work", ratio=1.0, blocks=8, log_e_slower=log_e_slower, log_e_faster=log_e_faster, seed=1
    )


def spent(spending: Spending, tested: int) -> float:
    """What one worker has spent after so many workloads."""
    return math.fsum(spending.share(index) for index in range(1, tested + 1))


@given(st.integers(1, 16), st.lists(st.integers(0, 500), max_size=16))
def test_shares_spent_online_never_exceed_alpha_over_all_workers(workers: int, tested: list[int]) -> None:
    assert math.fsum(spent(Spending(ALPHA, workers), count) for count in tested[:workers]) <= ALPHA


def test_online_shares_use_alpha_up_in_the_limit() -> None:
    assert 0.9999 * ALPHA < 4 * spent(Spending(ALPHA, 4), 20_000) <= ALPHA


@pytest.mark.parametrize(("index", "blocks"), [(1, 14), (5, 19), (20, 23), (100, 28), (500, 33)])
def test_unanimous_blocks_needed_for_the_ith_workload(index: int, blocks: int) -> None:
    from pytest_gpuperf.judge.block_scores import SIGNS

    needed = -math.log(Spending().share(index))
    assert SIGNS.log_e(blocks - 1, blocks - 1) < needed <= SIGNS.log_e(blocks, blocks)


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"alpha": 1.0}, {"workers": 0}])
def test_spending_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(SpendingError, match=r"in \(0, 1\) and at least one worker, not "):
        Spending(**bad)  # type: ignore[arg-type]


def test_workloads_are_counted_from_one() -> None:
    with pytest.raises(SpendingError, match="counted from 1"):
        Spending().share(0)


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


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_workers_that_replace_crashed_ones_spend_what_was_kept_for_them(workers: int) -> None:
    every = [spending_of(number, workers) for number in range(workers + 30)]
    assert 0.99 * ALPHA < sum(spent(one, 20_000) for one in every) <= ALPHA
    first = every[0].share(1)
    assert all(one.share(1) == first for one in every[:workers])
    assert first == pytest.approx((1 - RESERVE) * Spending(ALPHA, workers).share(1))
    assert every[workers].share(1) == pytest.approx(2 * every[workers + 1].share(1))


def test_an_alarm_and_a_shift_begin_at_and_beyond_their_thresholds() -> None:
    assert self_pair_alarm(reading(math.log(1000.0), 0.0))
    assert environment_shift([], 0.003, {"fma": 0.01}) == ()
    assert environment_shift([1.5, 1.5, 1.5], 0.5) == ()
