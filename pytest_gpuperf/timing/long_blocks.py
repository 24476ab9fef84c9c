"""Blocks of long launches: eight of them each, four of either side, in an order drawn at random; none is dropped.

Where a launch takes a millisecond or more, a block of short slots would cost seconds and say one bit.  Here each pair
of launches of one block speaks for itself (docs/explanation/statistics.md, "Long launches"), and which launch was whose
is drawn from all 70 orders, so the proof holds whatever drift, correlation or tails the times have.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.judge.rank_eprocess import LAUNCHES, orders
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.timing.blocks import (
    RELOAD_EVERY,
    move_and_reload,
    remark_on,
    require_same_cache,
    tail_of,
)
from pytest_gpuperf.timing.rounds import Clock, Rounds, Workload, summarise, valid_samples
from pytest_gpuperf.timing.taken_block import Block

LONG_NS = 1e6
"""A launch of either side from this length on is paired by such blocks."""
NO_PAUSE_NS = 1e7
"""Behind the pause between two blocks a shorter launch would show the pause: one ahead of the block is dropped, and one
of either side where both were loaded anew."""
MOST_ROUNDS = 16
"""Rounds that are made of a pairing's launches."""


def long_blocks(
    device: Device,
    timer: Timer,
    baseline: Workload,
    candidate: Workload,
    *,
    seed: int,
    duration_ns: float,
    reload: Callable[[], None] | None = None,
    reallocate: Callable[[int], None] | None = None,
    clock: Clock = time.perf_counter,
) -> Iterator[Block]:
    """Blocks until the caller stops asking; ``duration_ns`` is about what the longer side takes.

    Buffers and modules move as in ``blocks.paired_blocks``.  No block is discarded.  Raises ``ValueError`` for
    different cache modes, and what the timer raises.
    """
    require_same_cache(baseline, candidate)
    coin = random.Random(seed)
    sides = {"A": baseline, "B": candidate}
    before = device.state()
    for index in range(2**31):
        began = clock()
        order = drawn_order(coin)
        move_and_reload(index, coin, reload, reallocate)
        slots = [Slot(sides[side].run, 1, sides[side].reset, dropped=0) for side in order]
        if duration_ns < NO_PAUSE_NS:  # the same whatever was drawn
            fresh = index % RELOAD_EVERY == 0  # either side's code is new to the GPU
            ahead = (baseline, candidate) if fresh else (candidate,)
            slots = [*(Slot(side.run, 1, side.reset, dropped=0) for side in ahead), *slots]
        times = timer.measure(slots, baseline.cache)[-2 * LAUNCHES :]
        taken = tuple(float(valid_samples(one)[0]) for one in times)
        after = device.state()
        block = Block(r=0.0, order=order, seconds=clock() - began, times_ns=taken, remark=remark_on(before, after))
        tail, slow = tail_of([np.array(block.of("A")), np.array(block.of("B"))])
        yield msgspec.structs.replace(
            block, r=float(np.median(block.ratios)), tail=tail, slow=slow, samples=LAUNCHES
        )  # fmt: skip
        before = after


def drawn_order(coin: random.Random) -> str:
    """``ABBABAAB``: one of the 70 orders of four launches a side, all equally likely."""
    places = coin.choice(orders())
    return "".join("B" if place in places else "A" for place in range(2 * LAUNCHES))


def rounds_of(blocks: Sequence[Block], session: str, process: int = 0) -> Rounds:
    """The candidate's launches of long blocks as rounds: one of each block, or of several in a row."""
    parts = np.array_split(np.arange(len(blocks)), min(len(blocks), MOST_ROUNDS)) if blocks else []
    groups = [[blocks[index] for index in part] for part in parts]
    samples = [tuple(time for block in group for time in block.of("B")) for group in groups]
    rounds: list[Round] = [summarise(one, session=session, process=process) for one in samples]
    return Rounds(tuple(rounds), tuple(samples), seconds=sum(block.seconds for block in blocks))
