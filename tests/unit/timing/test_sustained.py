"""Sustained slots on a GPU whose clock follows the power that its kernels draw."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.judge.block_decision import judge_blocks
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.timing.blocks import (
    Noise,
    paired_blocks,
)
from pytest_gpuperf.timing.rounds import InvalidSampleError, Workload
from pytest_gpuperf.timing.sustained import MOST_SAMPLES, SLOT_S, SustainedSlots, sustained_pilot
from pytest_gpuperf.timing.taken_block import Block


@pytest.fixture(autouse=True, scope="module")
def nobody_looks() -> Iterator[None]:
    """From another thread, however long a slot takes here: its looks would be among those that tests count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_gpuperf.timing.power.LOOK_EVERY_S", 3600.0)
        yield


class PoweredGpu:
    """Device and timer: a kernel that draws more than the limit is slowed down once the controller has seen it.

    Draws are fractions of the power limit, times are those at full clock.
    """

    name: TimerName = "cupti"
    tick_ns = 1.0
    overhead_ns = 0.0
    kernel_breakdown = ()
    pauses_ns = ()

    def __init__(self, draws: tuple[float, float] = (0.9, 1.03), ns: tuple[float, float] = (1e6, 1e6)) -> None:
        self.baseline, self.candidate = Workload(lambda: None), Workload(lambda: None)
        self.draws = dict(zip((self.baseline.run, self.candidate.run), draws, strict=True))
        self.ns = dict(zip((self.baseline.run, self.candidate.run), ns, strict=True))
        self.seen = 0.5
        self.controller_s = 0.05
        """Time in which the controller's idea of the power draw follows the draw."""
        self.patience_s = 0.0
        """For so long it lets a kernel draw more than the limit."""
        self.within_s = 0.0
        """When the draw was last within the limit."""
        self.now_s = 0.0
        self.beside_s = 0.0
        """What a sample takes besides, its flush for one."""
        self.fixed_s = 0.0
        """What a measurement takes besides."""
        self.disturbance: Callable[[int], float] = lambda slot: 1.0
        self.slots: list[tuple[int, float]] = []
        """Of every slot: samples, the one included that is dropped, and seconds."""
        self.clocks: list[int] = []

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        self.now_s += self.fixed_s
        return [self.take(slot)[1:] for slot in slots]

    def take(self, slot: Slot) -> list[float]:
        began, times = self.now_s, []
        factor = self.disturbance(len(self.slots))
        for _ in range(slot.samples + 1):
            if self.draws[slot.run] <= 1:
                self.within_s = self.now_s
            patient = self.now_s - self.within_s < self.patience_s
            time_ns = self.ns[slot.run] * (1.0 if patient else max(1.0, self.seen))
            kept = math.exp(-(time_ns * 1e-9 + self.beside_s) / self.controller_s)
            self.seen = kept * self.seen + (1 - kept) * self.draws[slot.run]
            self.now_s += time_ns * 1e-9 + self.beside_s
            times.append(time_ns * factor)
        self.slots.append((slot.samples + 1, self.now_s - began))
        return times

    def state(self) -> DeviceState:
        capped = ("power cap",) if self.seen > 1 else ()
        self.clocks.append(round(1980 / max(1.0, self.seen)))
        return DeviceState(sm_clock_mhz=self.clocks[-1], throttle_reasons=capped)

    def pilot(self) -> SustainedSlots:
        duration_ns = self.ns[self.candidate.run]
        found = sustained_pilot(
            self, self, self.baseline, self.candidate, duration_ns=duration_ns, clock=lambda: self.now_s
        )  # fmt: skip
        assert found is not None
        return found[0]

    def blocks(self, count: int, **options: Any) -> list[Block]:
        """Of sustained slots, unless the options say otherwise."""
        if "size" not in options:
            slots = self.pilot()
            options = {"size": slots.size, "settling": slots.settling, **options}
        given = {"seed": 3, "noise": Noise(0.001), **options}
        sides = self.baseline, self.candidate
        return list(islice(paired_blocks(self, self, *sides, clock=lambda: self.now_s, **given), count))


def decision(blocks: Sequence[Block]) -> Decision:
    return judge_blocks([block.r for block in blocks if not block.discarded], Policy(), stopped=True).decision


# --- what they see -------------------------------------------------------------------------------


def test_short_slots_hide_what_a_kernel_costs_by_drawing_more_power() -> None:
    blocks = PoweredGpu().blocks(14, size=12, settling=None)
    assert decision(blocks) is Decision.SAME
    assert max(abs(block.r) for block in blocks) < 0.001


def test_sustained_slots_see_it_in_full() -> None:
    blocks = PoweredGpu().blocks(14)
    assert decision(blocks) is Decision.SLOWER
    for block in blocks:
        assert math.exp(block.r) == pytest.approx(1.03, abs=0.001)


def test_a_slow_controller_has_less_of_it_hidden_where_half_of_a_slot_does_not_count() -> None:
    slow = PoweredGpu(), PoweredGpu()
    for gpu in slow:
        gpu.controller_s = 0.12
    half, whole = slow[0].blocks(14, size=500, settling=250), slow[1].blocks(14, size=1000, settling=0)
    for one, other in zip(whole, half, strict=True):
        assert one.order == other.order
        assert one.r < other.r - 0.001 < math.log(1.03)


def test_slots_outlast_a_controller_that_lets_a_kernel_draw_more_for_a_while() -> None:
    """As an H200 does for 0.75 to 0.9 s (docs/results/sustained.md); slots of 0.5 s see it where two are neighbours."""
    patient = PoweredGpu(), PoweredGpu()
    for gpu in patient:
        gpu.patience_s = 0.85
    for block in patient[0].blocks(14):
        assert math.exp(block.r) == pytest.approx(1.03, abs=0.001)
    for block in patient[1].blocks(14, size=500, settling=250)[1:]:
        assert block.r < 0.02


def test_equal_draws_above_the_limit_are_the_same() -> None:
    blocks = PoweredGpu(draws=(1.3, 1.3)).blocks(11)
    assert decision(blocks) is Decision.SAME


# --- what is discarded ---------------------------------------------------------------------------


def test_clocks_and_throttle_reasons_that_follow_the_kernels_discard_nothing() -> None:
    gpu = PoweredGpu(draws=(0.8, 1.2))
    blocks = gpu.blocks(20)
    assert len(set(gpu.clocks)) > 1
    assert [block.reason for block in blocks if block.discarded] == []


def test_a_rule_on_the_clock_would_see_the_order() -> None:
    """The clock after a block is that of its last kernel, so a change of clock tells what the coin drew."""
    gpu = PoweredGpu(draws=(0.8, 1.2))
    blocks = gpu.blocks(20)
    low = [clock < 1900 for clock in gpu.clocks[1:]]
    assert low == [block.order == "BAAB" for block in blocks]


def test_samples_that_spread_discard_nothing() -> None:
    assert not any(block.discarded for block in PoweredGpu(draws=(1.0, 3.0)).blocks(4, size=1000, settling=0))


class Coin:
    def __init__(self, side: float) -> None:
        self.side = side

    def random(self) -> float:
        return self.side


@given(st.floats(0.5, 1.5), st.floats(0.5, 1.5), st.lists(st.floats(0.5, 2.0), min_size=8, max_size=8))
@settings(max_examples=10, deadline=None)
def test_exchanged_labels_give_the_mirrored_blocks(one: float, other: float, factors: list[float]) -> None:
    """What happens on the GPU is the same, slot for slot: only the labels differ, and with them the sign."""

    def blocks(draws: tuple[float, float], side: float) -> list[Block]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pytest_gpuperf.timing.blocks.random.Random", lambda seed: Coin(side))
            gpu = PoweredGpu(draws, ns=(2e7, 2e7))
            gpu.disturbance = lambda slot: factors[slot % 8]
            return gpu.blocks(2, size=24, settling=12)

    for block, mirrored in zip(blocks((one, other), 0.0), blocks((other, one), 0.9), strict=True):
        assert (block.order, mirrored.order) == ("ABBA", "BAAB")
        assert block.discarded == mirrored.discarded
        assert block.r == pytest.approx(-mirrored.r, abs=1e-9)


def test_votes_of_equal_kernels_are_a_fair_coin_although_each_first_slot_is_slower() -> None:
    gpu = PoweredGpu(draws=(0.5, 0.5))
    gpu.disturbance = lambda slot: 1.05 if slot % 4 == 0 else 1.0
    votes = [block.r > 0 for block in gpu.blocks(400, size=6, settling=2)]
    assert 160 < sum(votes) < 240


def test_a_time_that_is_none_is_refused_even_in_the_half_that_does_not_count() -> None:
    gpu = PoweredGpu()
    slots = gpu.pilot()
    gpu.take = lambda slot: [math.nan] + [math.nan] + [1e6] * (slot.samples - 1)  # type: ignore[method-assign]
    with pytest.raises(InvalidSampleError):
        next(paired_blocks(gpu, gpu, gpu.baseline, gpu.candidate, seed=1, size=slots.size, noise=Noise(0.001),
                           settling=slots.settling))  # fmt: skip


# --- how long they are ---------------------------------------------------------------------------


def test_a_slot_keeps_the_device_busy_for_two_seconds() -> None:
    gpu = PoweredGpu(draws=(0.5, 0.5))
    gpu.blocks(1)
    for samples, seconds in gpu.slots[-4:]:
        assert samples == 2000
        assert seconds == pytest.approx(SLOT_S)


def test_slots_are_never_split() -> None:
    gpu = PoweredGpu()
    gpu.blocks(3)
    assert len(gpu.slots) == 4 + 3 * 4  # of the pilot, and of three blocks


@pytest.mark.parametrize(
    ("ns", "beside_s", "samples"),
    [
        (1e6, 0.0, 2000),
        (1e5, 0.0, 20_000),
        (1e5, 1e-4, 13_334),  # of 200 us a sample at least 150 keep the device busy
        (1e4, 1.9e-4, 13_334),
        (3e8, 0.0, 7),
        (4e9, 0.0, 2),
    ],
)
def test_samples_of_a_slot_follow_from_what_each_takes_with_its_flush(ns: float, beside_s: float, samples: int) -> None:
    gpu = PoweredGpu(draws=(0.5, 0.5), ns=(ns, ns))
    gpu.beside_s = beside_s
    assert gpu.pilot().samples == samples


def test_what_a_measurement_costs_besides_its_samples_is_not_taken_for_theirs() -> None:
    gpu = PoweredGpu(draws=(0.5, 0.5), ns=(1e5, 1e5))
    gpu.fixed_s = 0.02
    assert gpu.pilot().seconds == pytest.approx(SLOT_S, rel=0.001)
    assert gpu.pilot().samples == 20_000


def test_the_faster_side_decides_how_many_samples_fill_a_slot() -> None:
    gpu = PoweredGpu(draws=(0.5, 0.5), ns=(1e6, 1.2e6))
    assert gpu.pilot().samples == 2000
    assert PoweredGpu(draws=(0.5, 0.5), ns=(1.2e6, 1e6)).pilot().samples == 2000


@pytest.mark.parametrize("ns", [(1e6, 1.3e6), (1.3e6, 1e6), (1e6, 16e6)])
def test_what_differs_by_a_quarter_needs_no_sustained_slots(ns: tuple[float, float]) -> None:
    gpu = PoweredGpu(draws=(0.5, 0.5), ns=ns)
    assert sustained_pilot(gpu, gpu, gpu.baseline, gpu.candidate, duration_ns=1e6, clock=lambda: gpu.now_s) is None
    assert gpu.now_s < 1


def test_slots_that_the_kernel_does_not_fill_are_told() -> None:
    gpu = PoweredGpu(draws=(0.5, 0.5), ns=(1e6, 1e6))
    gpu.beside_s = 9e-3
    assert gpu.pilot().remarks == (
        "in its sustained slots of 267 samples the kernel itself runs for 0.27 s of 2 s: the rest is flushes, resets "
        "and the host's own time, which draw less power; give the launch more work, or use cache='warm' and the CUPTI "
        "timer",
    )


@pytest.mark.parametrize("fixed_s", [0.1, 0.3, 1.0])
def test_slots_that_a_costly_measurement_made_too_short_are_tried_again(fixed_s: float) -> None:
    gpu = PoweredGpu(draws=(0.5, 0.5), ns=(1e6, 1e6))
    gpu.fixed_s = fixed_s
    assert gpu.pilot().seconds > 0.75 * SLOT_S


@given(st.integers(2, MOST_SAMPLES))
def test_half_of_a_slot_counts_and_at_least_one_sample(samples: int) -> None:
    slots = SustainedSlots(samples, 1e-4, 1e-4)
    counted = slots.size // 2
    assert 1 + slots.settling + counted == samples
    assert slots.settling >= 0
    assert 1 <= counted <= samples / 2 + 1
    assert slots.size % 2 == 0


def test_the_pilot_knows_the_noise_of_the_settled_halves() -> None:
    gpu = PoweredGpu(draws=(0.5, 1.2))
    found = sustained_pilot(gpu, gpu, gpu.baseline, gpu.candidate, duration_ns=1e6, clock=lambda: gpu.now_s)
    assert found is not None
    _, noise = found
    assert noise.sigma < 0.001
    assert noise.block_sd is None


def test_samples_too_short_for_two_seconds_are_bounded_and_told() -> None:
    slots = PoweredGpu(draws=(0.5, 0.5), ns=(5e3, 5e3)).pilot()
    assert slots.samples == MOST_SAMPLES
    assert slots.remarks == (
        "its sustained slots have 20000 samples, the most there are, and last 0.1 s instead of 2 s: samples as short "
        "as these leave the GPU idle in between and draw no sustained power; give the launch more work",
    )
    assert PoweredGpu().pilot().remarks == ()


def test_the_clock_that_each_side_runs_on_at_is_told_with_its_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lasting(PoweredGpu):
        """Each measurement takes a moment by the host's clock, too, in which somebody can come to look."""

        def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
            times = super().measure(slots, cache)
            time.sleep(0.1)
            return times

        def state(self) -> DeviceState:
            return msgspec.structs.replace(super().state(), power_w=700 * min(self.seen, 1.0))

    monkeypatch.setattr("pytest_gpuperf.timing.power.LOOK_EVERY_S", 0.005)
    assert Lasting(draws=(0.5, 1.1)).pilot().remarks == (
        "when it runs on the SM clock is 1800 MHz at 700 W, with the baseline's code 1980 MHz at 350 W: it draws more "
        "power",
    )
    assert Lasting(draws=(0.5, 0.9)).pilot().remarks == ()
