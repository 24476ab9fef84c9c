"""Each disturbance is seen, named and answered with advice; a quiet round is not disturbed."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_gpuperf.evidence import DeviceState, Round
from pytest_gpuperf.sampling.health import disturbances, remarks

QUIET = DeviceState(sm_clock_mhz=1980)


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
    assert remarks(a_round(), 32.0) == ()


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


def test_a_clock_change_within_one_percent_and_an_unknown_clock_pass() -> None:
    assert disturbances(a_round(), QUIET, DeviceState(sm_clock_mhz=1965), 32.0) == ()
    assert disturbances(a_round(), DeviceState(), QUIET, 32.0) == ()


def short(midmean: float, spread: float) -> Round:
    return a_round(midmean=midmean, quantiles=(midmean, midmean, midmean, midmean + spread, midmean + spread))


def test_times_below_200_ticks_are_refused() -> None:
    (message,) = disturbances(short(610.0, 0.0), QUIET, QUIET, 32.0)
    assert "610 ns is only 19 steps of 32 ns" in message
    assert "cache='warm'" in message


def test_noise_wider_than_the_tick_resolves_below_it() -> None:
    assert disturbances(short(2500.0, 64.0), QUIET, QUIET, 32.0) == ()


def test_times_of_200_to_1000_ticks_are_remarked_on() -> None:
    assert disturbances(short(9600.0, 0.0), QUIET, QUIET, 32.0) == ()
    (message,) = remarks(short(9600.0, 0.0), 32.0)
    assert "300 steps of the timer resolves about 0.3%" in message
    assert remarks(short(32_000.0, 0.0), 32.0) == ()


def test_a_simulated_timer_without_a_tick_is_fine() -> None:
    assert remarks(short(10.0, 0.0), 0.0) == ()
    assert disturbances(short(10.0, 0.0), QUIET, QUIET, 0.0) == ()


def test_two_modes_are_remarked_on() -> None:
    (message,) = remarks(a_round(modes=2), 32.0)
    assert "two groups (5 % below 49900 ns, 5 % above 50100 ns)" in message
