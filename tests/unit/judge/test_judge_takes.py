"""Takes of the same counters: medians, ranges, and the bands that ranges ask for."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from pytest_gpuperf.judge.counters import Counts, Metric, replaced, summed_up, widened
from pytest_gpuperf.model.evidence import CacheMode

EXACT = Metric("inst", "instructions")
NEAR = Metric("l2", "L2 sectors", tolerance=0.15, floor=100.0)
SHOWN = Metric("ns", "duration", tolerance=None)


def band_of(rule: Metric, old: Counts) -> Metric:
    (found,) = widened([rule], old)
    return found


def test_equal_takes_have_no_range() -> None:
    assert summed_up([{"inst": 5.0}] * 3) == Counts({"inst": 5.0})


def test_takes_that_differ_are_summed_up_by_median_and_range() -> None:
    takes = [{"inst": 100.0, "l2": 7.0}, {"inst": 104.0, "l2": 7.0}, {"inst": 101.0}]
    assert summed_up(takes) == Counts({"inst": 101.0, "l2": 7.0}, {"inst": (100.0, 104.0)})


def test_a_counter_that_no_take_has_is_in_none() -> None:
    assert summed_up([{}, {}]) == Counts({})


@pytest.mark.parametrize(
    ("ends", "band"), [((100.0, 104.0), 0.12), ((100.0, 100.2), 0.01), ((0.0, 100.0), 3.0)],
    ids=["three times the range", "at least one percent", "anything"],
)  # fmt: skip
def test_band_of_an_exact_counter_that_is_not(ends: tuple[float, float], band: float) -> None:
    assert band_of(EXACT, Counts({"inst": 100.0}, {"inst": ends})).tolerance == pytest.approx(band)


def test_a_wide_band_is_not_made_narrower() -> None:
    assert band_of(NEAR, Counts({"l2": 1000.0}, {"l2": (999.0, 1001.0)})) == NEAR


def test_a_counter_without_a_range_keeps_its_rule_and_so_does_one_that_only_informs() -> None:
    assert widened([EXACT, SHOWN], Counts({"inst": 1.0, "ns": 5.0}, {"ns": (1.0, 9.0)})) == [EXACT, SHOWN]


def test_a_median_of_zero_has_a_floor_for_a_band() -> None:
    rule = band_of(EXACT, Counts({"inst": 0.0}, {"inst": (0.0, 2.0)}))
    assert rule == dataclasses.replace(EXACT, floor=6.0)
    assert not rule.beyond(0.0, 6.0)
    assert rule.beyond(0.0, 7.0)


def test_a_counter_that_only_its_range_is_known_of_has_a_floor_for_a_band() -> None:
    assert band_of(EXACT, Counts({}, {"inst": (1.0, 3.0)})) == dataclasses.replace(EXACT, floor=6.0)


def test_counts_of_a_record_are_its_counters_and_their_ranges() -> None:
    record = Counts({"inst": 100.0, "l2": 7.0}, {"inst": (99.0, 101.0)})
    recorded = SimpleNamespace(counters=dict(record.values), counter_ranges=dict(record.ranges))
    assert Counts.of(recorded) == record


WARM_ONE = {"profiler__replayer_passes": 1.0}
WARM_MANY = {"profiler__replayer_passes": 16.0}


def test_replacing_forgets_the_ranges_of_what_is_replaced() -> None:
    old = Counts({"l2": 10.0, "dram": 3.0}, {"l2": (9.0, 12.0), "dram": (2.0, 3.0)})
    new = Counts({"l2": 20.0})
    assert replaced(old, new, "cold") == Counts({"l2": 20.0, "dram": 3.0}, {"dram": (2.0, 3.0)})


@pytest.mark.parametrize(
    ("cache", "passes", "stays"), [("cold", WARM_MANY, True), ("warm", WARM_MANY, False), ("warm", WARM_ONE, True),
                                 ("warm", {}, False)],
    ids=["cold", "warm, other passes", "warm, as many passes", "warm, passes not known"],
)  # fmt: skip
def test_traffic_of_a_warm_workload_goes_with_the_passes_it_was_taken_in(
    cache: CacheMode, passes: dict[str, float], stays: bool
) -> None:
    old = Counts({"lts__t_bytes.sum": 7.0, "inst": 5.0, **passes}, {"lts__t_bytes.sum": (6.0, 7.0)})
    counts = replaced(old, Counts({"dram__bytes_read.sum": 3.0, **WARM_ONE}), cache)
    assert counts.values["inst"] == 5.0
    assert ("lts__t_bytes.sum" in counts.values, "lts__t_bytes.sum" in counts.ranges) == (stays, stays)


@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_a_recording_without_counters_takes_none_away(cache: CacheMode) -> None:
    old = Counts({"dram__bytes_read.sum": 3.0, **WARM_ONE}, {"dram__bytes_read.sum": (2.0, 4.0)})
    assert replaced(old, Counts({}), cache) == old
