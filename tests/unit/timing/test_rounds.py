"""Rounds on a simulated GPU: how many samples they have, what they are summed up to, and what disturbs them."""

from __future__ import annotations

import numpy as np
import pytest
from bench import Bench, jitter

from pytest_gpuperf.model.device_facts import DeviceState
from pytest_gpuperf.timing import samples as stats
from pytest_gpuperf.timing.rounds import LEAST_SAMPLES, SAMPLES, Rounds, disturbances, sample_rounds, warm_up

QUIET = DeviceState(sm_clock_mhz=1980)


def taken(bench: Bench, **options: float) -> Rounds:
    given = {"duration_ns": bench.base_ns, "budget_s": 5.0, **options}
    return sample_rounds(bench, bench, bench.sides[0], 3, clock=bench.clock, **given)  # type: ignore[arg-type]


def test_rounds_have_their_samples_and_drop_the_first() -> None:
    bench = Bench()
    found = taken(bench)
    assert (found.samples, found.rounds) == (3 * SAMPLES, (1e5,) * 3)
    assert (found.time_ns, found.disturbed) == (pytest.approx(1e5), ())
    assert [slot.dropped for (slot,) in bench.calls[-3:]] == [1] * 3


@pytest.mark.parametrize(("each_s", "size"), [(0.05, 30), (0.1, 14), (10.0, LEAST_SAMPLES)])
def test_a_short_budget_has_fewer_samples(each_s: float, size: int) -> None:
    """Of five seconds, the warm-up takes two batches of six samples or one."""
    found = taken(Bench(each_s=each_s))
    assert abs(found.samples / 3 - size) <= (0 if size in (30, LEAST_SAMPLES) else 2)


def test_long_launches_are_taken_one_by_one_and_none_is_dropped() -> None:
    bench = Bench(base_ns=2e7, each_s=0.02)
    taken(bench)
    assert {slot.dropped for (slot,) in bench.calls} == {0}
    assert [slot.samples for (slot,) in bench.calls] == [1, 1, 30, 30, 30]


def test_a_warm_up_ends_where_batches_agree_and_tells_what_a_sample_costs() -> None:
    falling = Bench(noise=lambda index: 2.0 if index < 5 else 1.5 if index < 10 else 1.0, each_s=1e-3)
    assert warm_up(falling, falling.sides[0], clock=falling.clock) == pytest.approx(1e-3)
    assert len(falling.calls) == 4
    restless = Bench(noise=jitter(0.5), each_s=1e-2)
    warm_up(restless, restless.sides[0], bound_s=0.25, clock=restless.clock)
    assert len(restless.calls) == 5, "six samples a batch, until 0.25 s are over"
    coarse = Bench(base_ns=100.0, noise=lambda index: 1.0 + 0.019 * (index >= 5), each_s=1e-3)
    warm_up(coarse, coarse.sides[0], clock=coarse.clock)
    assert len(coarse.calls) == 2, "two ticks apart"


@pytest.mark.parametrize(("after", "outliers", "words"), [
    (QUIET, 0.1, ""),
    (DeviceState(sm_clock_mhz=1999), 0.0, ""),
    (DeviceState(), 0.0, ""),
    (DeviceState(sm_clock_mhz=1900), 0.0, "the SM clock went from 1980 to 1900 MHz during the round: warm the GPU "
     "up for longer or lock its clocks with 'nvidia-smi --lock-gpu-clocks'"),
    (DeviceState(throttle_reasons=("power cap", "heat")), 0.0, "the GPU was throttled (heat, power cap): let it "
     "cool down, raise its power limit, or lock its clocks with 'nvidia-smi --lock-gpu-clocks'"),
    (DeviceState(other_processes=(7, 5)), 0.0, "another process computes on this GPU (pid 5, 7): end it, or choose "
     "a free GPU by CUDA_VISIBLE_DEVICES"),
    (QUIET, 0.25, "25% of the samples are outliers (more than 1 %, 3 us and three interquartile ranges above the "
     "third quartile): something else uses the GPU or its memory; close it and measure again"),
])  # fmt: skip
def test_what_disturbs_is_told_with_advice(after: DeviceState, outliers: float, words: str) -> None:
    assert list(disturbances(QUIET, after, outliers)) == ([words] if words else [])
    if after.throttle_reasons or after.other_processes:
        assert list(disturbances(after, QUIET)) == [words]


def test_rounds_say_once_what_disturbed_them() -> None:
    bench = Bench(noise=lambda index: 3.0 if index % 5 == 0 else 1.0)
    states = [QUIET, DeviceState(sm_clock_mhz=1900), DeviceState(sm_clock_mhz=1980), DeviceState(sm_clock_mhz=1980)]
    bench.states = iter(states)
    found = taken(bench).disturbed
    assert [one.split(" ")[0] for one in found] == ["the", "20%", "the"]


# --- statistics of a batch -----------------------------------------------------------------------

TEN = np.array([10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 1000.0])


def test_summaries_of_a_batch() -> None:
    assert stats.midmean(TEN) == 14.5
    assert stats.midmean(np.array([5.0])) == 5.0
    assert stats.winsorised_mean(TEN) == pytest.approx((126 + 20 * 14.5) / 10)
    assert stats.relative_deviation(np.exp(np.array([0.0, 1.0, 2.0, 3.0, 4.0]))) == pytest.approx(2 / 1.349)
    coarse = np.array([96.0, 96.0, 128.0, 128.0, 128.0, 128.0, 160.0, 900.0])
    assert (stats.is_coarse(coarse, 32.0), stats.is_coarse(coarse, 4.0)) == (True, False)
    assert stats.core_mean(coarse, 32.0) == pytest.approx(864 / 7)
    assert (stats.centre(coarse, 32.0), stats.centre(coarse)) == (pytest.approx(864 / 7), 128.0)


@pytest.mark.parametrize(("slow_ns", "others_ns", "step_ns", "share"), [
    (104_000.0, [100_000.0] * 9, 0.0, 0.1),
    (102_900.0, [100_000.0] * 9, 0.0, 0.0),  # less than 3 us
    (1_009_000.0, [1_000_000.0] * 9, 0.0, 0.0),  # less than 1 %
    (104_000.0, [100_000.0] * 9, 1000.0, 0.0),  # less than three interquartile ranges, each of three steps
    (104_000.0, [98_000.0, 100_000.0] * 5, 0.0, 0.0),
])  # fmt: skip
def test_outliers_are_far_above_quartiles(slow_ns: float, others_ns: list[float], step_ns: float, share: float) -> None:
    assert stats.outlier_share(np.array([*others_ns, slow_ns]), step_ns) == share
