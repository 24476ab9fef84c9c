"""Paired blocks on a simulated GPU: their layout, their values, and when they end."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from bench import Bench, jitter
from recordings import Recording, drawn, recordings

from pytest_gpuperf.judge.decision import ALPHA, MOST_BLOCKS, Decision, decide, share
from pytest_gpuperf.model.device_facts import DeviceState
from pytest_gpuperf.model.limits import TIGHT
from pytest_gpuperf.timing.blocks import LONGEST_SLOT, Plan, blocks_of, pad_of, plan
from pytest_gpuperf.timing.compare import BUDGETS, Compared, compare
from pytest_gpuperf.timing.samples import InvalidSampleError


def compared(bench: Bench, *, budget_s: float = 5.0, alpha: float = ALPHA, seed: int = 1, **more: object) -> Compared:
    given = {"duration_ns": bench.base_ns, "clock": bench.clock, **more}
    return compare(bench, bench, TIGHT, alpha, seed=seed, budget_s=budget_s, **given)  # type: ignore[arg-type]


def decision(found: Compared, alpha: float = ALPHA) -> Decision | None:
    return found.comparison.decision(TIGHT, alpha)


# --- the layout ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("sd", "base_ns", "tick_ns", "budget_s", "least", "most"), [
    (0.0, 1e5, 1.0, 60.0, 6, 6), (0.002, 1e5, 1.0, 60.0, 6, 8), (0.01, 1e5, 1.0, 60.0, 30, 130),
    (0.2, 1e5, 1.0, 60.0, 190, 200), (0.2, 5e5, 1.0, 60.0, 190, 200), (0.2, 5e5, 1.0, 0.5, 14, 14),
    (0.2, 5e5, 1.0, 0.2, 4, 6), (0.0, 2500.0, 100.0, 5.0, 54, 54),
])  # fmt: skip
def test_size_of_a_block(sd: float, base_ns: float, tick_ns: float, budget_s: float, least: int, most: int) -> None:
    bench = Bench(noise=jitter(sd), base_ns=base_ns)
    bench.tick_ns = tick_ns
    found = plan(bench, bench.sides, TIGHT, base_ns, budget_s)
    assert least <= found.samples * found.repeats * 2 <= most
    assert found.samples <= LONGEST_SLOT
    assert found.order == "ABBA"


@pytest.mark.parametrize(("duration_ns", "noise", "samples", "blocks"), [
    (1e6, 0.0, 1, 4), (2e6, 0.0, 1, 4), (1e7, 0.0, 1, 1), (2e7, 0.02, 2, 1), (1e9, 0.02, 1, 1),
])  # fmt: skip
def test_long_launches_are_pairs(duration_ns: float, noise: float, samples: int, blocks: int) -> None:
    """Two launches a slot where they scatter, several pairs a call below 10 ms, no pilot of seconds."""
    bench = Bench(base_ns=duration_ns, noise=jitter(noise))
    found = plan(bench, bench.sides, TIGHT, duration_ns, 5.0)
    assert found == Plan("AB", samples, 0, blocks=blocks, lead=int(blocks > 1))
    pilot = [(slot.samples, slot.dropped) for call in bench.calls for slot in call]
    assert pilot == ([(1, 1), *[(1, 0)] * 9] if duration_ns < 1e9 else [])


def test_a_pad_is_a_multiple_of_512_bytes_up_to_2_mib() -> None:
    least, most = (pad_of(SimpleNamespace(randrange=draw)) for draw in (lambda most: 0, lambda most: most - 1))  # type: ignore[arg-type]
    assert (least, most) == (512, 2 << 20)


def test_a_coin_draws_every_order() -> None:
    coin = random.Random(3)
    drawn_orders = [order for _ in range(200) for order in Plan("ABBA", 3).draw(coin)]
    assert set(drawn_orders) == {"ABBA", "BAAB"}
    assert 70 < drawn_orders.count("ABBA") < 130
    assert [len(Plan("AB", 1, blocks=4).draw(coin)), len(Plan("ABBA", 3, repeats=2).draw(coin)[0])] == [4, 8]


# --- the value of a block ------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "slots", "tick_ns", "r", "mean"), [
    ("ABBA", [[100.0] * 3, [110.0] * 3, [110.0] * 3, [100.0] * 3], 0.1, 1.1, 1.1),
    ("BAAB", [[100.0] * 3, [110.0] * 3, [110.0] * 3, [100.0] * 3], 0.1, 1 / 1.1, 1 / 1.1),
    # the middle half of either side reads one tick; the mean of readings tells the two apart
    ("AB", [[992.0] * 6 + [1024.0] * 2, [992.0] * 4 + [1024.0] * 4], 32.0, 1008 / 1000, 1008 / 1000),
    ("AB", [[100.0] * 10, [100.0] * 9 + [500.0]], 0.1, 1.0, 1.4),
], ids=["ABBA", "BAAB", "coarse", "rare slow samples"])  # fmt: skip
def test_the_value_of_a_block(order: str, slots: list[list[float]], tick_ns: float, r: float, mean: float) -> None:
    (block,) = blocks_of([order], slots, tick_ns)
    assert (block.r, block.mean) == (pytest.approx(math.log(r)), pytest.approx(math.log(mean)))
    of_candidate = [taken for side, taken in zip(order, slots, strict=True) if side == "B"]
    assert block.candidate.tolist() == [sample for taken in of_candidate for sample in taken]


@pytest.mark.parametrize("lost", [[], [100.0, math.nan, 100.0], [100.0, 0.0, 100.0]])
def test_a_lost_sample_is_an_error(lost: list[float]) -> None:
    with pytest.raises(InvalidSampleError):
        blocks_of(["AB"], [[100.0] * 3, lost], 0.1)


# --- the comparison ------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "wanted", "base_ns"), [
    (1.0, Decision.SAME, 1e4), (1.02, Decision.SLOWER, 1e4), (16.0, Decision.SLOWER, 5e7), (0.9, Decision.FASTER, 3e6),
    (1.02, Decision.SLOWER, 3e6), (1.0, Decision.SAME, 5e7),
])  # fmt: skip
def test_clear_cases_decide(ratio: float, wanted: Decision, base_ns: float) -> None:
    bench = Bench(ratio, base_ns=base_ns, noise=jitter(0.001), each_s=base_ns * 1e-9 + 5e-5)
    found = compared(bench)
    assert decision(found) is wanted
    assert found.comparison.ratio == pytest.approx(ratio, rel=0.003)
    assert found.comparison.time_ns == pytest.approx(base_ns * ratio, rel=0.003)
    assert found.comparison.seconds == pytest.approx(bench.now_s - 1000.0)
    assert (len(found.comparison.means), found.comparison.seed) == (len(found.comparison.r), 1)
    assert bench.placed == list(range(len(bench.placed)))
    assert bench.left
    assert len(found.rounds.rounds) == min(len(found.comparison.r), 4)
    assert found.rounds.rounds[0] == pytest.approx(base_ns * ratio, rel=0.01)


@pytest.mark.parametrize(("base_ns", "warmed"), [(1e5, True), (3e7, False)])
def test_short_launches_are_warmed_up(base_ns: float, warmed: bool) -> None:
    bench = Bench(base_ns=base_ns, each_s=base_ns * 1e-9)
    compared(bench)
    assert (len(bench.calls[0]) == 1) is warmed


def test_equal_seeds_give_equal_orders() -> None:
    one, other, third = (compared(Bench(noise=jitter(0.002)), seed=seed) for seed in (5, 5, 6))
    assert one.comparison.r == other.comparison.r != third.comparison.r


def test_unanimous_blocks_go_on_beyond_the_budget() -> None:
    bench = Bench(2.0, base_ns=1e9, each_s=1.0)
    found = compared(bench, budget_s=5.0, alpha=share(500, 1))
    assert decision(found, share(500, 1)) is Decision.SLOWER
    assert len(found.comparison.r) <= 24


def test_a_trend_has_four_budgets_and_an_open_case_one() -> None:
    trend = [1.02, 1.02, 1.02, 0.999]
    pattern = Bench(base_ns=1e7, each_s=1e-2, of_candidate=lambda index: trend[index // 2 % 4])
    trending = compared(pattern, budget_s=1.0, alpha=1e-9)
    assert 1.0 < trending.comparison.seconds <= BUDGETS * 1.0 + 0.2
    wild = Bench(base_ns=1e7, each_s=1e-2, of_candidate=lambda index: (1.03, 0.97)[index // 2 % 2])
    assert compared(wild, budget_s=0.5).comparison.seconds < 0.9


def test_no_more_blocks_than_the_most() -> None:
    wild = Bench(base_ns=1e7)
    wild.of_candidate = lambda _: (1.03, 0.97)[len(wild.calls) % 2]
    found = compared(wild, budget_s=1e6)
    assert decision(found) is None
    assert len(found.comparison.r) == MOST_BLOCKS


def test_sustained_slots_drop_their_first_half_and_their_clocks_are_no_remark() -> None:
    bench, clocks = Bench(ratio=1.05, each_s=1e-2), itertools.cycle((1980, 1500))
    bench.states = iter(lambda: DeviceState(sm_clock_mhz=next(clocks)), None)
    found = compared(bench, budget_s=320.0, sustained=True)
    assert (decision(found), found.comparison.remarks) == (Decision.SLOWER, ("in sustained slots",))
    assert [slot.samples + slot.dropped for slot in bench.calls[-1]] == [pytest.approx(200, abs=1)] * 4
    assert all(slot.dropped == pytest.approx(100, abs=1) for slot in bench.calls[-1])


def test_a_disturbed_gpu_is_remarked_on_and_discards_nothing() -> None:
    bench = Bench()
    states = [DeviceState(sm_clock_mhz=1980), DeviceState(sm_clock_mhz=1200, throttle_reasons=("power cap",))]
    bench.states = iter(lambda: states.pop(0) if len(states) > 1 else states[0], None)
    found = compared(bench)
    assert decision(found) is Decision.SAME
    assert any("throttled (power cap)" in remark for remark in found.comparison.remarks)


def test_rare_slow_launches_are_slower() -> None:
    slow = np.random.default_rng(1).random(200_000) < 0.2
    bench = Bench(noise=jitter(0.001), of_candidate=lambda index: 5.0 if slow[index] else 1.0)
    found = compared(bench)
    assert decision(found) is Decision.SLOWER
    assert float(np.mean(np.exp(found.comparison.means))) > 1.5


# --- blocks of real GPUs -------------------------------------------------------------------------


def decided(r: Sequence[float], alpha: float) -> Decision | None:
    """By the first blocks that decide."""
    counts = range(1, min(len(r), MOST_BLOCKS) + 1)
    return next(filter(None, (decide(list(r[:count]), TIGHT, alpha) for count in counts)), None)


@pytest.mark.parametrize("runs", [4, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("one", [one for one in recordings() if one.percent == 0], ids=lambda one: one.name)
def test_recorded_blocks_of_equal_kernels_are_never_slower(one: Recording, runs: int) -> None:
    for run in drawn(np.random.default_rng(2), one.disturbances, runs, MOST_BLOCKS):
        assert decided(run, ALPHA) is not Decision.SLOWER


@pytest.mark.parametrize(
    "one", [one for one in recordings() if one.percent == 2 and one.duration_ns >= 1e4], ids=lambda one: one.name
)
def test_recorded_blocks_of_slower_kernels_are_slower(one: Recording) -> None:
    assert decided(one.r, share(20, 1)) is Decision.SLOWER
