"""Rounds: what a batch is summed up to, and how batches are taken from a simulated GPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timed_round import DeviceState, Round
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.timing.rounds import (
    InvalidSampleError,
    Rounds,
    Workload,
    sample_count,
    summarise,
    take_rounds,
    warm_up,
)


class SimulatedGpu:
    """A device and its timer in one: times come from ``duration``, wall time passes by ``cost_s`` a sample."""

    name: TimerName = "cupti"
    tick_ns = 32.0
    overhead_ns = 0.0
    kernel_breakdown = ()
    pauses_ns = ()

    def __init__(self, duration: Callable[[int], float], cost_s: float = 1e-4) -> None:
        self.duration = duration
        self.cost_s = cost_s
        self.now_s = 0.0
        self.taken = 0
        self.measured: list[tuple[Slot, CacheMode]] = []
        self.states = itertools.repeat(DeviceState(sm_clock_mhz=1980))

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        times = []
        for slot in slots:
            self.measured.append((slot, cache))
            self.now_s += (slot.samples + 1) * self.cost_s
            times.append([self.duration(self.taken + index) for index in range(slot.samples)])
            self.taken += slot.samples
        return times

    def state(self) -> DeviceState:
        return next(self.states)

    def clock(self) -> float:
        return self.now_s


def steady(index: int) -> float:
    return 50_000.0 + 32 * (index % 3)


def nothing() -> None: ...


def take(gpu: SimulatedGpu, count: int = 3, **options: object):  # type: ignore[no-untyped-def]
    return take_rounds(gpu, gpu, Workload(nothing), count, clock=gpu.clock, **options)  # type: ignore[arg-type]


def test_summary_of_known_samples() -> None:
    taken = summarise(range(1, 102), session="s1", process=2, clocks=(1980, 1975))
    assert taken.samples == 101
    assert taken.midmean == taken.median == 51
    assert taken.quantiles == (6, 26, 51, 76, 96)
    assert (taken.minimum, taken.maximum) == (1, 101)
    assert (taken.session, taken.process, taken.sm_clock_mhz) == ("s1", 2, (1980, 1975))
    assert taken.drift > 1
    assert taken.rho1 > 0.9


@given(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=60))
def test_every_valid_batch_has_a_summary_that_survives_json(samples: list[float]) -> None:
    taken = summarise(samples, session="s", process=0)
    assert taken.minimum <= taken.midmean * (1 + 1e-9)
    assert taken.midmean <= taken.maximum * (1 + 1e-9)
    assert msgspec.json.decode(msgspec.json.encode(taken), type=Round) == taken


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=60), st.sampled_from([0.25, 2.0, 1024.0]))
def test_summary_scales_with_the_unit(samples: list[float], factor: float) -> None:
    one, scaled = (summarise(np.array(samples) * f, session="s", process=0) for f in (1.0, factor))
    assert scaled.midmean == pytest.approx(one.midmean * factor)
    assert scaled.rho1 == pytest.approx(one.rho1, abs=1e-6)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, -5.0, 0.0])
def test_what_is_not_a_time_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidSampleError, match=r"sample 1 of 3 is .* not a time.*--gpuperf-timer"):
        summarise([100.0, wrong, 100.0], session="s", process=0)


def test_no_samples_are_refused() -> None:
    with pytest.raises(InvalidSampleError, match="at least one sample"):
        summarise([], session="s", process=0)


def test_rounds_hold_thirty_samples_each_and_say_nothing_when_all_is_well() -> None:
    gpu = SimulatedGpu(steady)
    taken = take(gpu, session="s", process=4)
    assert [(r.samples, r.session, r.process) for r in taken.rounds] == [(30, "s", 4)] * 3
    assert taken.disturbed + taken.notes == ()
    assert taken.rounds[0].sm_clock_mhz == (1980, 1980)
    assert [len(samples) for samples in taken.samples] == [30] * 3
    assert taken.seconds == pytest.approx(gpu.now_s)


def test_reset_and_cache_mode_reach_the_timer() -> None:
    gpu = SimulatedGpu(steady)
    take_rounds(gpu, gpu, Workload(nothing, reset=nothing, cache="warm"), 1, clock=gpu.clock)  # type: ignore[arg-type]
    assert {(slot.reset, cache) for slot, cache in gpu.measured} == {(nothing, "warm")}


def test_long_kernels_get_fewer_samples_within_the_budget() -> None:
    gpu = SimulatedGpu(lambda _: 1e7, cost_s=0.02)
    taken = take(gpu, count=4, budget_s=2.0)
    assert 5 < taken.rounds[0].samples < 30
    assert gpu.now_s <= 2.0


def test_the_rounds_have_a_bound_of_their_own_beside_that_with_the_warm_up() -> None:
    gpu = SimulatedGpu(steady, cost_s=0.001)
    taken = take(gpu, count=4, rounds_s=0.08)
    assert [one.samples for one in taken.rounds] == [19] * 4


def test_five_samples_are_taken_whatever_the_budget() -> None:
    assert take(SimulatedGpu(steady, cost_s=0.01), count=4, rounds_s=0.08).rounds[0].samples == 5
    assert take(SimulatedGpu(steady, cost_s=1.0), count=1, budget_s=0.1).rounds[0].samples == 5


@given(st.floats(1e-6, 1.0), st.integers(1, 20), st.floats(0.0, 10.0), st.integers(1, 100))
def test_sample_count_keeps_the_budget_or_the_least(cost_s: float, rounds: int, budget_s: float, wanted: int) -> None:
    count = sample_count(cost_s, rounds, budget_s, wanted)
    assert min(wanted, 5) <= count <= wanted
    assert count <= 5 or (count + 1) * rounds * cost_s <= budget_s * (1 + 1e-9)


def test_a_free_sample_is_not_rationed() -> None:
    assert sample_count(0.0, 3, 1.0) == 30


def test_warm_up_ends_when_two_batches_agree() -> None:
    gpu = SimulatedGpu(lambda index: 50_000.0 if index >= 10 else 90_000.0 - 100 * index)
    pilot = warm_up(gpu, Workload(nothing), bound_s=1.0, clock=gpu.clock)
    assert pilot.settled
    assert set(pilot.samples) == {50_000.0}
    assert gpu.taken == 20
    assert pilot.cost_s == pytest.approx(1e-4)


def test_warm_up_is_bounded_and_says_that_times_had_not_settled() -> None:
    gpu = SimulatedGpu(lambda index: 50_000.0 * 1.01**index)
    taken = take(gpu, count=1, samples=5)
    assert "had not settled" in taken.notes[0]
    assert gpu.now_s <= 0.26


def test_each_disturbance_is_reported_once() -> None:
    gpu = SimulatedGpu(steady)
    gpu.states = itertools.repeat(DeviceState(throttle_reasons=("thermal slowdown",)))
    taken = take(gpu)
    assert len(taken.disturbed) == 1
    assert "thermal slowdown" in taken.disturbed[0]
    assert taken.rounds[0].sm_clock_mhz is None


def test_outliers_in_a_round_disturb_it() -> None:
    taken = take(SimulatedGpu(lambda index: 150_000.0 if index % 7 == 0 and index > 20 else steady(index)))
    assert any("outliers" in message for message in taken.disturbed)


def test_a_lost_sample_is_never_summed_up() -> None:
    with pytest.raises(InvalidSampleError):
        take(SimulatedGpu(lambda index: steady(index) if index < 40 else math.nan))


def test_rounds_that_follow_others_are_counted_with_them() -> None:
    first = Rounds((), ((1.0,),), disturbed=("a",), disturbed_by=0.01, notes=("old",), seconds=1.0)
    both = first.followed_by(Rounds((), ((2.0,),), disturbed=("a", "b"), notes=("new",), seconds=0.5))
    assert (both.samples, both.disturbed, both.notes, both.seconds) == (((1.0,), (2.0,)), ("a", "b"), ("new",), 1.5)
    assert both.disturbed_by == 0.01
