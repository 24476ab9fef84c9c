"""How much a time shifted, and whether the clock alone explains it."""

from __future__ import annotations

import math

import msgspec
import pytest
from judge_samples import one_round, rounds

from pytest_gpuperf.judge.env_shift import cycles, cycles_ratio, only_clocks_changed
from pytest_gpuperf.judge.log_times import InvalidTimesError, geometric_mean
from pytest_gpuperf.model.timed_round import Round

DELTA = 0.02


def at(time_ns: float, clock: int) -> tuple[Round, ...]:
    return rounds([[time_ns, time_ns]], clock=clock)


def test_cycles_are_the_time_at_the_mean_of_the_clocks_before_and_after() -> None:
    assert cycles(one_round(1000.0, clock=1500)) == 1500.0
    assert cycles(msgspec.structs.replace(one_round(500.0), sm_clock_mhz=(1000, 2000))) == 750.0


def test_without_a_clock_there_are_no_cycles() -> None:
    assert math.isnan(cycles(one_round(1000.0)))
    assert cycles_ratio(rounds([[1000.0]]), at(1000.0, 1500)) is None


def test_any_clock_above_zero_counts() -> None:
    assert cycles_ratio(at(1000.0, 1), at(1000.0, 2)) == pytest.approx(2.0)


def test_a_time_that_hardly_moved_under_a_slower_clock_is_the_clocks() -> None:
    """+0.5 % in time at a clock that fell by 2.5 %: in cycles it is faster."""
    assert only_clocks_changed(at(1000.0, 2000), at(1005.0, 1950), DELTA)


def test_a_clock_that_hardly_fell_explains_nothing() -> None:
    """+1.2 % in time at a clock that fell by 0.5 %."""
    assert not only_clocks_changed(at(1000.0, 2000), at(1012.0, 1990), DELTA)


def test_what_takes_more_cycles_too_is_not_the_clocks() -> None:
    assert not only_clocks_changed(at(1000.0, 2000), at(1100.0, 1900), DELTA)


def test_a_mean_of_what_is_no_time_names_the_rounds() -> None:
    with pytest.raises(InvalidTimesError, match=r"^rounds: entry 2 of 2 is 0\.0 ns"):
        geometric_mean([1.0, 0.0])
