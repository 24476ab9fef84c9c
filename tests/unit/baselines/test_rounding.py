"""What a recording keeps of its figures: every one is rounded, each to its own digits, and none that is stored."""

from __future__ import annotations

import math

import msgspec
import pytest
from baseline_samples import make_round, make_session, make_time

from pytest_gpuperf.baselines.rounding import (
    round_record,
    round_session,
    round_time,
    significant,
    with_counts,
)
from pytest_gpuperf.judge.counters import Counts
from pytest_gpuperf.model.time_record import RecordedRound, Round


def rounded(entry: Round, tick_ns: float = 32.0) -> RecordedRound:
    session = make_session(tick_ns=tick_ns)
    [found] = round_record(make_time(session, rounds=[entry]), {session.id: session}).rounds
    return found


def test_of_a_round_its_midmean_is_kept_rounded_to_its_noise() -> None:
    raw = msgspec.structs.replace(make_round(make_session()), midmean=51234.5678, sm_clock_mhz=(1980, 1965))
    assert rounded(raw) == RecordedRound(session=make_session().id, midmean=51230.0, sm_clock_mhz=(1980, 1965))


def test_the_noise_of_a_round_is_its_interquartile_range() -> None:
    raw = msgspec.structs.replace(make_round(make_session()), midmean=51234.5678)
    coarse = msgspec.structs.replace(raw, quantiles=(51000.0, 51100.0, 51110.0, 51300.0, 51400.0))
    fine = msgspec.structs.replace(raw, quantiles=(51000.0, 51210.0, 51215.0, 51219.0, 59000.0))
    assert rounded(coarse).midmean == 51230.0, "200 ns: to tens"
    assert rounded(fine).midmean == 51234.6, "9 ns, whatever the ends: to tenths"
    lopsided = msgspec.structs.replace(raw, quantiles=(51000.0, 51100.0, 51199.0, 51200.0, 51400.0))
    assert rounded(lopsided).midmean == 51235.0, "100 ns, whatever the middle: to ones"


def test_a_session_keeps_four_digits_of_its_clock() -> None:
    raw = make_session(tick_ns=32.123456, overhead_ns=1234.5678)
    found = round_session(raw)
    assert (found.tick_ns, found.overhead_ns) == (32.12, 1235.0)
    assert round_session(found) == found


def test_ratios_have_six_digits_and_counts_all_of_them() -> None:
    values = {"ratio": 1.23456789123, "count": 12_345_678_901.0, "a.sum": 123456789.512}
    counts = Counts(values, {"ratio": (0.111111111111, 1.55555555555)})
    found = with_counts(make_time(make_session(), counters={"old": 1.0}), counts)
    assert found.counters == {"ratio": 1.23457, "count": 12_345_678_901.0, "a.sum": 123456790.0}
    assert found.counter_ranges == {"ratio": (0.111111111, 1.55555556)}


@pytest.mark.parametrize(
    ("time_ns", "noise_ns", "digits"),
    [
        (1234.56789, 10.0, 1234.6),  # an error of 0.5 ns would be a twentieth of the noise, and not below it
        (1234.56789, 10.1, 1235.0),
        (1234.56789, 9.9, 1234.6),
        (9.87654321, 0.11, 9.877),
        (1.0, 0.5, 1.0),
        (0.512345678, 0.011, 0.5123),
        (12345.678, 1e9, 12350.0),  # four digits at least
        (12345.678912, 1e-9, 12345.68),  # seven at most
    ],
)
def test_a_time_has_the_digits_that_its_noise_leaves(time_ns: float, noise_ns: float, digits: float) -> None:
    assert round_time(time_ns, noise_ns) == digits


@pytest.mark.parametrize(
    ("time_ns", "noise_ns"),
    [(-5.123456789, 1.0), (0.0, 1.0), (math.inf, 1.0), (5.123456789, 0.0), (5.123456789, math.inf)],
)
def test_what_has_no_noise_or_is_no_time_keeps_seven_digits(time_ns: float, noise_ns: float) -> None:
    assert round_time(time_ns, noise_ns) == significant(time_ns, 7)


def test_a_time_that_is_not_a_number_stays_one_for_the_checks() -> None:
    assert math.isnan(round_time(math.nan, 1.0))
    assert math.isnan(significant(math.nan, 4))


@pytest.mark.parametrize(
    ("value", "digits", "found"), [(1234.5, 2, 1200.0), (0.00098765, 3, 0.000988), (-1234.5, 4, -1234.0), (7.0, 1, 7.0)]
)
def test_significant_digits_are_counted_from_the_first(value: float, digits: int, found: float) -> None:
    assert significant(value, digits) == found
