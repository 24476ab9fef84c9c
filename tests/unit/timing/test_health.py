"""Each disturbance is seen, named and answered with advice; a quiet round is not disturbed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.model.timed_round import DeviceState, Round
from pytest_gpuperf.timing.health import Batch, disturbed_by, remarks
from pytest_gpuperf.timing.health import disturbances as disturbances_of

QUIET = DeviceState(sm_clock_mhz=1980)
EVEN = np.full(120, 50_000.0)
"""Samples of one group."""


def disturbances(
    round: Round, before: DeviceState, after: DeviceState, step_ns: float, *, outliers: float = 0.0, **more: Any
) -> tuple[str, ...]:
    return disturbances_of(Batch(round, before, after, step_ns, outliers, more.pop("pauses_ns", ())), **more)


def a_round(**changes: Any) -> Round:
    fields: dict[str, Any] = {
        "session": "s",
        "process": 0,
        "samples": 30,
        "midmean": 50_000.0,
        "median": 50_000.0,
        "quantiles": (49_900.0, 49_950.0, 50_000.0, 50_050.0, 50_100.0),
        "minimum": 49_800.0,
        "maximum": 50_200.0,
    }
    return Round(**{**fields, **changes})


def test_a_quiet_round_is_not_disturbed() -> None:
    assert disturbances(a_round(), QUIET, QUIET, 32.0) == ()
    assert remarks(a_round(), EVEN, 32.0) == ()


@pytest.mark.parametrize(
    ("changes", "after", "outliers", "words"),
    [
        ({}, DeviceState(throttle_reasons=("power cap",)), 0.0, ["throttled (power cap)", "--lock-gpu-clocks"]),
        ({}, DeviceState(sm_clock_mhz=1800), 0.0, ["1980 to 1800 MHz", "warm the GPU up"]),
        ({}, DeviceState(other_processes=(42, 7)), 0.0, ["pid 7, 42", "CUDA_VISIBLE_DEVICES"]),
        ({"drift": -0.011}, QUIET, 0.0, ["drifted by -1.10%", "measure again"]),
        ({}, QUIET, 0.2, ["20% of the samples are outliers", "close it"]),
    ],
)
def test_disturbances_are_named_with_advice(
    changes: dict[str, Any], after: DeviceState, outliers: float, words: list[str]
) -> None:
    (message,) = disturbances(a_round(**changes), QUIET, after, 32.0, outliers=outliers)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("changes", "after", "outliers", "most"),
    [
        ({}, QUIET, 0.0, 0.0),
        ({"drift": -0.011}, QUIET, 0.0, 0.011),
        ({"drift": 0.0025}, QUIET, 0.0, 0.0),
        ({"drift": -0.011}, QUIET, 0.2, math.inf),
        ({}, DeviceState(throttle_reasons=("power cap",)), 0.0, math.inf),
        ({}, DeviceState(sm_clock_mhz=1800), 0.0, math.inf),
    ],
)
def test_what_a_drift_can_have_done_is_known_and_what_others_did_is_not(
    changes: dict[str, Any], after: DeviceState, outliers: float, most: float
) -> None:
    batch = Batch(a_round(**changes), QUIET, after, 32.0, outliers)
    assert disturbed_by(batch) == most
    assert disturbed_by(batch._replace(pauses_ns=(2e6,))) == math.inf


@pytest.mark.parametrize(("drift", "found"), [(0.0025, 0), (-0.0025, 0), (0.0026, 1), (-0.0026, 1)])
def test_a_drift_of_more_than_a_quarter_percent_disturbs(drift: float, found: int) -> None:
    assert len(disturbances(a_round(drift=drift), QUIET, QUIET, 32.0)) == found


@pytest.mark.parametrize(("share", "found"), [(0.10, 0), (0.101, 1)])
def test_more_than_a_tenth_of_outliers_disturbs(share: float, found: int) -> None:
    assert len(disturbances(a_round(), QUIET, QUIET, 32.0, outliers=share)) == found


def test_a_clock_change_within_one_percent_and_an_unknown_clock_pass() -> None:
    assert disturbances(a_round(), QUIET, DeviceState(sm_clock_mhz=1965), 32.0) == ()
    assert disturbances(a_round(), DeviceState(), QUIET, 32.0) == ()


def short(midmean: float, spread: float) -> Round:
    return a_round(midmean=midmean, quantiles=(midmean, midmean, midmean, midmean + spread, midmean + spread))


def test_times_below_200_ticks_are_refused() -> None:
    (message,) = disturbances(short(610.0, 0.0), QUIET, QUIET, 32.0)
    assert "610 ns is only 19 steps of 32 ns" in message
    assert "cache='warm'" in message


@pytest.mark.parametrize(("steps", "refused", "remarked"), [(199, 1, 0), (200, 0, 1), (999, 0, 1), (1000, 0, 0)])
def test_a_time_is_refused_below_200_ticks_and_remarked_on_below_1000(steps: int, refused: int, remarked: int) -> None:
    one = short(steps * 32.0, 0.0)
    assert len(disturbances(one, QUIET, QUIET, 32.0)) == refused
    assert len(remarks(one, EVEN, 32.0)) == remarked


@pytest.mark.parametrize(("steps", "refused", "remarked"), [(36, 1, 0), (37, 0, 1), (182, 0, 1), (183, 0, 0)])
def test_time_stamps_at_random_phases_average_out(steps: int, refused: int, remarked: int) -> None:
    """Thirty samples: two standard errors of their mean are a step over the root of thirty."""
    one = short(steps * 32.0, 0.0)
    assert len(disturbances(one, QUIET, QUIET, 32.0, averages=True)) == refused
    assert len(remarks(one, EVEN, 32.0, averages=True)) == remarked


def test_what_alternates_neither_drifts_nor_has_outliers() -> None:
    drifting = a_round(drift=0.02)
    assert len(disturbances(drifting, QUIET, QUIET, 32.0, outliers=0.2)) == 2
    assert disturbances(drifting, QUIET, QUIET, 32.0, outliers=0.2, alternating=True) == ()
    assert disturbances(drifting, QUIET, DeviceState(sm_clock_mhz=1800), 32.0, alternating=True) != ()


@pytest.mark.parametrize(
    ("pauses", "words"), [((2.4e6,), "once, for up to 2.4 ms"), ((3e5, 4e5), "2 times, for up to 0.4")]
)
def test_a_pause_with_work_in_the_queue_is_another_process(pauses: tuple[float, ...], words: str) -> None:
    (message,) = disturbances(a_round(), QUIET, QUIET, 32.0, pauses_ns=pauses)
    assert words in message
    assert "another process computes on it" in message


def test_noise_wider_than_the_tick_resolves_below_it() -> None:
    assert disturbances(short(2500.0, 64.0), QUIET, QUIET, 32.0) == ()


def test_times_of_200_to_1000_ticks_are_remarked_on() -> None:
    assert disturbances(short(9600.0, 0.0), QUIET, QUIET, 32.0) == ()
    (message,) = remarks(short(9600.0, 0.0), EVEN, 32.0)
    assert "300 steps of the timer resolves about 0.3%" in message
    assert remarks(short(32_000.0, 0.0), EVEN, 32.0) == ()


def test_a_simulated_timer_without_a_tick_is_fine() -> None:
    assert remarks(short(10.0, 0.0), EVEN, 0.0) == ()
    assert disturbances(short(10.0, 0.0), QUIET, QUIET, 0.0) == ()


def test_two_modes_are_remarked_on() -> None:
    place = np.arange(120)
    even = 50_000.0 + place % 2
    (message,) = remarks(a_round(), even + np.where(place % 10 < 3, 1000.0, 0.0), 32.0)
    assert "two groups, 74% around 50001 ns and 26% around 51000 ns: look for" in message
    assert remarks(a_round(), even, 32.0) == ()
