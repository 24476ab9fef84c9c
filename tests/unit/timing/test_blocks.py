"""Paired blocks on a simulated GPU: order, size, exchange, discards, budget."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.timing.blocks import (
    Noise,
    affordable,
    block_size,
    block_value,
    paired_blocks,
    pilot,
    slot_lengths,
)
from pytest_gpuperf.timing.rounds import InvalidSampleError, Workload
from pytest_gpuperf.timing.taken_block import Block

QUIET = Noise(0.002, 0.0)


class Bench:
    """Device and timer: the time of sample i is ``base * disturbance(i)``, ``ratio`` times that for the candidate."""

    name: TimerName = "cupti"
    tick_ns = 1.0
    overhead_ns = 0.0
    kernel_breakdown = ()
    pauses_ns = ()

    def __init__(self, ratio: float = 1.0, disturbance: Callable[[int], float] = lambda i: 1.0) -> None:
        self.ratio = ratio
        self.disturbance = disturbance
        self.taken = 0
        self.now_s = 0.0
        self.sample_s = 1e-4
        self.calls: list[tuple[list[Slot], CacheMode]] = []
        self.states: Iterator[DeviceState] = iter(lambda: DeviceState(sm_clock_mhz=1980), None)
        self.baseline = Workload(lambda: None)
        self.candidate = Workload(lambda: None)

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        self.calls.append((list(slots), cache))
        times = []
        for slot in slots:
            factor = self.ratio if slot.run is self.candidate.run else 1.0
            times.append([1e5 * factor * self.disturbance(self.taken + i) for i in range(slot.samples)])
            self.taken += slot.samples
            self.now_s += (slot.samples + 1) * self.sample_s
        return times

    def state(self) -> DeviceState:
        return next(self.states)

    def blocks(self, count: int = 10, **options: Any) -> list[Block]:
        settings = {"seed": 1, "size": 6, "noise": QUIET, "clock": lambda: self.now_s, **options}
        return list(islice(paired_blocks(self, self, self.baseline, self.candidate, **settings), count))  # type: ignore[arg-type]


def jitter(sd: float, seed: int = 0) -> Callable[[int], float]:
    noise = np.exp(sd * np.random.default_rng(seed).standard_normal(100_000))
    return lambda index: float(noise[index])


@pytest.mark.parametrize(
    ("sigma", "rho1", "size"),
    [(0.0, 0.0, 6), (0.002, 0.0, 6), (0.005, 0.0, 10), (0.005, 0.5, 30), (0.01, 0.0, 40), (0.1, 0.0, 200)],
)
def test_block_size_follows_the_noise(sigma: float, rho1: float, size: int) -> None:
    assert block_size(Noise(sigma, rho1)) == size


@given(st.floats(0, 1), st.floats(-1, 1))
def test_block_size_is_even_and_bounded(sigma: float, rho1: float) -> None:
    size = block_size(Noise(sigma, rho1))
    assert size % 2 == 0
    assert 6 <= size <= 200
    assert block_size(Noise(sigma, -0.5)) == block_size(Noise(sigma, 0.0))  # a negative correlation is not relied on


@pytest.mark.parametrize(
    ("sigma", "block_sd", "size"),
    [(0.001, 0.0, 6), (0.001, 0.0025, 10), (0.001, 0.005, 36), (0.001, 0.1, 200), (0.005, 0.0, 10)],
)
def test_block_size_follows_the_blocks_of_the_pilot_and_independent_samples(
    sigma: float, block_sd: float, size: int
) -> None:
    assert block_size(Noise(sigma, 0.9, block_sd)) == size


@pytest.mark.parametrize(
    "noise",
    [Noise(math.nan), Noise(-0.1), Noise(math.inf), Noise(0.1, math.nan), Noise(0.1, 0, math.nan), Noise(0.1, 0, -1.0)],
)
def test_block_size_refuses_what_is_no_noise(noise: Noise) -> None:
    with pytest.raises(ValueError, match="finite noise"):
        block_size(noise)


def test_blocks_of_that_size_have_the_wanted_spread() -> None:
    bench = Bench(disturbance=jitter(0.01))
    values = [block.r for block in bench.blocks(400, size=block_size(Noise(0.01)))]
    assert np.std(values) == pytest.approx(0.0025, rel=0.2)


def test_pilot_measures_the_noise_of_both_sides() -> None:
    noises = [pilot(Bench(1.5, jitter(0.01, seed)), *sides(Bench())) for seed in range(50)]  # type: ignore[arg-type]
    assert np.mean([noise.sigma for noise in noises]) == pytest.approx(0.01, rel=0.1)
    assert np.mean([noise.rho1 for noise in noises]) < 0.1


def waves(seed: int) -> Callable[[int], float]:
    """Slow waves of 1 % under jitter of .1 %: neighbours are alike, and ABBA takes most of it out."""
    noise = jitter(0.001, seed)
    return lambda index: math.exp(0.01 * math.sin(2 * math.pi * (index / 150 + seed / 40))) * noise(index)


def test_pilot_does_not_take_what_abba_cancels_for_noise_of_blocks() -> None:
    sizes, by_correlation, values = [], [], []
    for seed in range(40):
        bench = Bench(disturbance=waves(seed))
        noise = pilot(bench, *sides(bench))
        sizes.append(block_size(noise))
        values += [block.r for block in bench.blocks(20, size=sizes[-1], noise=noise) if not block.discarded]
        by_correlation.append(block_size(noise._replace(block_sd=None)))
    assert 7 * np.mean(sizes) <= np.mean(by_correlation)
    assert np.std(values) <= 0.0025


def test_pilot_sees_what_differs_from_slot_to_slot() -> None:
    def per_slot(seed: int) -> Callable[[int], float]:
        levels = np.exp(0.004 * np.random.default_rng(seed).standard_normal(100_000))
        return lambda index: float(levels[index // 3])

    sizes = [block_size(pilot(bench, *sides(bench))) for bench in (Bench(disturbance=per_slot(s)) for s in range(40))]
    assert np.median(sizes) >= 16


def test_a_short_pilot_has_no_blocks() -> None:
    bench = Bench(disturbance=jitter(0.01))
    assert pilot(bench, *sides(bench), 29).block_sd is None
    assert [slot.samples for slot in bench.calls[-1][0]] == [29, 29]
    assert pilot(bench, *sides(bench), 30).block_sd is not None
    assert [slot.samples for slot in bench.calls[-1][0]] == [3] * 20


def test_pilot_of_equal_readings_knows_the_step_of_the_timer() -> None:
    bench = Bench()
    bench.tick_ns = 500.0
    assert pilot(bench, *sides(bench)).sigma == pytest.approx(500 / math.sqrt(12) / 1e5)


def sides(bench: Bench) -> tuple[Workload, Workload]:
    return bench.baseline, bench.candidate


@given(st.integers(0, 2**32), st.floats(0.5, 2.0))
@settings(max_examples=30)
def test_a_block_value_is_the_log_ratio_in_either_order(seed: int, ratio: float) -> None:
    for block in Bench(ratio).blocks(4, seed=seed):
        assert block.r == pytest.approx(math.log(ratio), abs=1e-9)


def test_linear_drift_cancels_in_either_order() -> None:
    blocks = Bench(disturbance=lambda i: 1 + 1e-5 * i).blocks(20)
    assert {block.order for block in blocks} == {"ABBA", "BAAB"}
    assert max(abs(block.r) for block in blocks) < 1e-6


def test_what_a_slot_inherits_from_the_other_side_is_told_from_drift_and_from_a_slower_candidate() -> None:
    class Inheriting(Bench):
        """A slot of three samples behind one of the other side is 1 % longer, as are all by 0.1 % from slot to slot."""

        def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
            times = super().measure(slots, cache)
            runs = [slots[0].run, *(slot.run for slot in slots)]
            return [
                [time * 1.001**place * (1.01 if slot.run is not before else 1.0) for time in of_slot]
                for place, (slot, before, of_slot) in enumerate(zip(slots, runs, times, strict=False))
            ]

    for size in (6, 48, 72):
        for block in Inheriting(1.3).blocks(20, size=size):
            # From one four to the next it is the same side again, so each four starts as the first one does.
            assert block.carry_over == pytest.approx(math.log(1.01), abs=1e-12)
            assert block.r == pytest.approx(math.log(1.3), abs=1e-4)


def test_four_slots_go_to_the_timer_in_one_call_in_the_order_drawn() -> None:
    bench = Bench()
    for block, (slots, cache) in zip(bench.blocks(20), bench.calls, strict=True):
        assert "".join("A" if slot.run is bench.baseline.run else "B" for slot in slots) == block.order
        assert [slot.samples for slot in slots] == [3] * 4
        assert cache == "cold"


@given(st.integers(1, 100))
def test_slots_are_short_and_make_up_the_block(half: int) -> None:
    lengths = slot_lengths(2 * half)
    assert sum(lengths) == half
    assert 1 <= min(lengths) <= max(lengths) <= min(12, min(lengths) + 1)
    assert len(lengths) == 1 or half > 12


def test_a_large_block_goes_through_its_order_again() -> None:
    bench = Bench(1.01)
    for block, (slots, _) in zip(bench.blocks(20, size=50), bench.calls, strict=True):
        assert "".join("A" if slot.run is bench.baseline.run else "B" for slot in slots) == 3 * block.order
        assert [slot.samples for slot in slots] == [9] * 4 + [8] * 8
        assert block.r == pytest.approx(math.log(1.01), abs=1e-9)


def test_short_slots_take_out_what_lasts_for_a_few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of 0.5 % that is forgotten after fifty samples, as cold replays of graphs had it on an H200."""

    def spread() -> float:
        steps = 0.005 * math.sqrt(1 - math.exp(-2 / 50)) * np.random.default_rng(4).standard_normal(60_000)
        noise, level = [], 0.0
        for step in steps:
            level = level * math.exp(-1 / 50) + step
            noise.append(math.exp(level))
        blocks = Bench(disturbance=lambda index: noise[index]).blocks(100, size=200, noise=Noise(0.02))
        return float(np.std([block.r for block in blocks]))

    short = spread()
    monkeypatch.setattr("pytest_gpuperf.timing.blocks.LONGEST_SLOT", 100)
    assert short < 0.6 * spread()


def test_orders_come_from_the_seed_and_are_fair() -> None:
    orders = [[block.order for block in Bench().blocks(200, seed=seed)] for seed in (7, 7, 8)]
    assert orders[0] == orders[1] != orders[2]
    assert 70 < orders[0].count("ABBA") < 130


def spiky(index: int) -> float:
    """A penalty on the first slot of every block: what a fixed order would blame on one side."""
    return 1.05 if index % 12 < 3 else 1.0


def test_randomisation_makes_votes_of_equal_kernels_a_fair_coin() -> None:
    votes = [block.r > 0 for block in Bench(disturbance=spiky).blocks(400)]
    assert 160 < sum(votes) < 240


def test_a_fixed_order_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_gpuperf.timing.blocks.random.Random", lambda seed: FixedCoin())
    votes = [block.r > 0 for block in Bench(disturbance=spiky).blocks(100)]
    assert sum(votes) in (0, 100)


class FixedCoin:
    def random(self) -> float:
        return 0.0


def test_buffers_are_renewed_before_each_block_and_modules_every_eighth() -> None:
    pads: list[int] = []
    reloads: list[int] = []
    Bench().blocks(20, reallocate=pads.append, reload=lambda: reloads.append(len(pads)))
    assert len(pads) == 20
    assert len(set(pads)) > 15
    assert all(512 <= pad <= 2 << 20 and pad % 512 == 0 for pad in pads)
    assert reloads == [8, 16]


@pytest.mark.parametrize(
    ("during", "words"),
    [
        (DeviceState(sm_clock_mhz=1980, throttle_reasons=("power cap",)), "throttle reasons changed.*power cap"),
        (DeviceState(sm_clock_mhz=1900), "1980 to 1900 MHz"),
    ],
)
def test_a_block_whose_clocks_changed_counts_and_is_remarked_on(during: DeviceState, words: str) -> None:
    bench = Bench()
    calm = DeviceState(sm_clock_mhz=1980)
    bench.states = iter([calm, calm, during, during])
    first, second, third = bench.blocks(3)
    assert not any(block.discarded for block in (first, second, third))
    assert (first.remark, third.remark) == ("", "")
    assert re.search(words, second.remark)


def test_a_block_of_wildly_spread_samples_is_discarded() -> None:
    (block,) = Bench(disturbance=lambda i: 1 + 0.3 * (i % 3)).blocks(1)
    assert block.discarded
    assert "above the fence of 1.0%" in block.reason


@given(st.lists(st.floats(0.5, 2.0), min_size=12, max_size=12), st.floats(0.9, 1.1))
@settings(max_examples=50)
def test_discards_do_not_see_the_labels(disturbance: list[float], ratio: float) -> None:
    """Whichever order the coin gave, and however the two kernels compare, the same disturbance decides alike."""
    verdicts = {
        Bench(side, lambda i: disturbance[i % 12]).blocks(1, seed=seed)[0].discarded
        for seed in (0, 1, 2, 3)
        for side in (ratio, 1.0)
    }
    assert len(verdicts) == 1


def test_the_budget_ends_between_blocks() -> None:
    bench = Bench()
    blocks = bench.blocks(1000, budget_s=0.05)
    assert 5 < len(blocks) < 1000
    assert bench.now_s <= 0.05
    assert sum(block.seconds for block in blocks) == pytest.approx(bench.now_s)


def test_one_block_is_taken_whatever_the_budget() -> None:
    assert len(Bench().blocks(10, budget_s=0.0)) == 1


def test_an_interrupted_block_is_dropped_and_the_others_are_kept() -> None:
    bench = Bench()

    def interrupted(index: int) -> float:
        if index == 30:
            raise KeyboardInterrupt
        return 1.0

    bench.disturbance = interrupted
    kept: list[Block] = []
    blocks = paired_blocks(bench, bench, *sides(bench), seed=1, size=6, noise=QUIET)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        keep_all(blocks, kept)
    assert len(kept) == 2


def keep_all(blocks: Iterator[Block], kept: list[Block]) -> None:
    for block in blocks:
        kept.append(block)


def test_an_invalid_sample_is_never_made_a_vote() -> None:
    with pytest.raises(InvalidSampleError):
        Bench(disturbance=lambda i: math.nan).blocks(1)


@pytest.mark.parametrize("size", [0, 5])
def test_odd_blocks_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="even number"):
        Bench().blocks(1, size=size)


def test_different_cache_modes_are_refused() -> None:
    bench = Bench()
    bench.candidate = Workload(bench.candidate.run, cache="warm")
    with pytest.raises(ValueError, match=r"baseline \(cold\) and candidate \(warm\)"):
        bench.blocks(1)
    with pytest.raises(ValueError, match="cannot be paired"):
        pilot(bench, *sides(bench))


def test_blocks_survive_json() -> None:
    (block,) = Bench(1.01).blocks(1)
    assert msgspec.json.decode(msgspec.json.encode(block), type=Block) == block


@pytest.mark.parametrize("slots", [3, 6])
def test_block_value_needs_each_four_slots(slots: int) -> None:
    with pytest.raises(ValueError):
        block_value("ABBA", [np.ones(3)] * slots)


@given(st.floats(1e2, 1e10), st.floats(0.05, 60))
def test_what_is_affordable_fits_into_the_budget_unless_it_is_the_least_there_is(ns: float, budget_s: float) -> None:
    samples, size = affordable(ns, budget_s)
    assert 5 <= samples <= 30
    assert 2 <= size <= 200
    assert size % 2 == 0
    dropped = 4 * len(slot_lengths(size))
    launches = 2 * samples * (samples > 5) + 28 * (2 * size + dropped) * (size > 2)
    assert launches * ns <= budget_s * 1e9


def test_short_workloads_are_not_bounded_by_the_budget() -> None:
    assert affordable(50_000, 5.0) == (30, 200)


def ticked(length_ns: float, number: int, rng: np.random.Generator, tick: float = 32.0) -> np.ndarray:
    """Readings of a clock of 32 ns; one launch in six takes four to nine ticks longer, as loops of 2 us do."""
    slow = np.where(rng.random(number) < 1 / 6, rng.uniform(4, 9, number) * tick, 0.0)
    lasted, phase = length_ns + rng.normal(0, 5, number) + slow, rng.random(number) * tick
    return np.asarray(np.floor((phase + lasted) / tick) * tick)


@pytest.mark.parametrize("place", np.arange(0.0, 1.0, 0.1))
def test_a_block_of_coarse_readings_shows_a_change_wherever_the_time_lies_between_two_ticks(place: float) -> None:
    """A third of a tick, 0.42 %: half of it is seen at least, and no more than half as much again."""
    rng = np.random.default_rng(int(place * 100))
    times = 2528.0 + 32.0 * place
    values = [
        block_value("ABBA", [ticked(times + (32 / 3 if side == "B" else 0), 150, rng) for side in "ABBA"], 32.0)
        for _ in range(40)
    ]
    assert 0.5 < np.mean(values) / np.log1p(32 / 3 / times) < 1.5


def test_a_change_of_labels_changes_the_sign_of_coarse_blocks_alone() -> None:
    rng = np.random.default_rng(5)
    for effect in (0.0, 20.0, 60.0, 400.0):
        slots = [ticked(2530.0 + effect * (index in (1, 2)), 12, rng) for index in range(4)]
        exchanged = [slots[1], slots[0], slots[3], slots[2]]
        assert block_value("ABBA", slots, 32.0) == pytest.approx(-block_value("ABBA", exchanged, 32.0), abs=1e-15)
