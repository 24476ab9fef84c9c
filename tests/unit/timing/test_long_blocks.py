"""Blocks of long launches on a simulated GPU: orders, launches, times, rounds."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pytest

from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.judge.rank_eprocess import orders
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.timing.long_blocks import MOST_ROUNDS, NO_PAUSE_NS, drawn_order, long_blocks, rounds_of
from pytest_gpuperf.timing.rounds import Workload
from pytest_gpuperf.timing.taken_block import Block


class Bench:
    """Device and timer: each launch takes 1 s more than the one before it, a candidate's ``ratio`` times as long."""

    tick_ns = 1.0

    def __init__(self, ratio: float = 1.0, cache: CacheMode = "cold") -> None:
        self.ratio = ratio
        self.baseline, self.candidate = Workload(lambda: None, cache=cache), Workload(lambda: None, cache=cache)
        self.calls: list[list[Slot]] = []
        self.clocks = iter(lambda: 1980, None)

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        self.calls.append(list(slots))
        times = [1e9 * (1 + place) for place in range(len(slots))]
        return [
            [time * (self.ratio if slot.run is self.candidate.run else 1)]
            for slot, time in zip(slots, times, strict=True)
        ]

    def state(self) -> DeviceState:
        return DeviceState(sm_clock_mhz=next(self.clocks))

    def blocks(self, count: int, **options: Any) -> list[Block]:
        given: dict[str, Any] = {"seed": 1, "duration_ns": 1e9, **options}
        return list(islice(long_blocks(self, self, self.baseline, self.candidate, **given), count))  # type: ignore[arg-type]


def test_every_order_is_equally_likely() -> None:
    coin = random.Random(4)
    drawn = Counter(drawn_order(coin) for _ in range(70_000))
    assert len(drawn) == len(orders()) == 70
    assert all(order.count("A") == order.count("B") == 4 for order in drawn)
    assert 850 < min(drawn.values()) < max(drawn.values()) < 1150


def test_orders_come_from_the_seed() -> None:
    one, again, other = ([block.order for block in Bench().blocks(20, seed=seed)] for seed in (7, 7, 8))
    assert one == again != other


def test_a_block_is_eight_single_launches_in_one_call_and_nothing_besides() -> None:
    bench = Bench(1.5)
    for block, slots in zip(bench.blocks(10), bench.calls, strict=True):
        assert "".join("A" if slot.run is bench.baseline.run else "B" for slot in slots) == block.order
        assert [(slot.samples, slot.dropped) for slot in slots] == [(1, 0)] * 8
        logs = np.log(block.times_ns)
        ours = [log for label, log in zip(block.order, logs, strict=True) if label == "B"]
        theirs = [log for label, log in zip(block.order, logs, strict=True) if label == "A"]
        assert block.ratios == pytest.approx([one - other for one in ours for other in theirs])
        assert block.r == pytest.approx(float(np.median(block.ratios)))


def test_what_is_short_enough_to_show_the_pause_ahead_of_a_block_has_a_launch_in_it() -> None:
    bench = Bench()
    blocks = bench.blocks(20, duration_ns=NO_PAUSE_NS / 2)
    ahead = ["".join("A" if slot.run is bench.baseline.run else "B" for slot in slots[:-8]) for slots in bench.calls]
    assert ahead == [
        *(["AB", *["B"] * 7] * 2),
        "AB",
        *["B"] * 3,
    ]  # it tells nothing of the order; loaded anew, both run
    assert all(min(block.times_ns) == 1e9 * (1 + len(own)) for block, own in zip(blocks, ahead, strict=True))
    assert {len(block.times_ns) for block in blocks} == {8}


def test_a_clock_that_moves_is_remarked_on_and_discards_nothing() -> None:
    bench = Bench()
    bench.clocks = iter([1980, 1980, 1500, 1500])
    first, second, third = bench.blocks(3)
    assert (first.remark, third.remark) == ("", "")
    assert "1980 to 1500 MHz" in second.remark
    assert not any(block.discarded for block in (first, second, third))


def test_buffers_move_before_each_block_and_modules_before_each_eighth() -> None:
    pads: list[int] = []
    reloads: list[int] = []
    Bench().blocks(20, reallocate=pads.append, reload=lambda: reloads.append(len(pads)))
    assert len(set(pads)) > 15
    assert reloads == [8, 16]


def test_different_cache_modes_are_refused() -> None:
    bench = Bench()
    bench.candidate = Workload(bench.candidate.run, cache="warm")
    with pytest.raises(ValueError, match="cannot be paired"):
        bench.blocks(1)


def test_a_lost_time_is_no_evidence() -> None:
    bench = Bench(math.nan)
    with pytest.raises(ValueError, match="not a time"):
        bench.blocks(1)


def test_blocks_survive_json() -> None:
    (block,) = Bench(1.01).blocks(1)
    assert msgspec.json.decode(msgspec.json.encode(block), type=Block) == block


@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 50])
def test_the_candidate_s_launches_make_its_rounds(count: int) -> None:
    blocks = Bench(3.0).blocks(count)
    taken = rounds_of(blocks, "now")
    assert len(taken.rounds) == min(count, MOST_ROUNDS)
    assert [time for one in taken.samples for time in one] == [time for block in blocks for time in block.of("B")]
    assert sum(one.samples for one in taken.rounds) == 4 * count
    assert all(one.session == "now" for one in taken.rounds)
