"""The one comparison: blocks of a baseline and a candidate until they decide, or the time is over."""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections.abc import Sequence

import numpy as np

from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.judge.decision import MOST_BLOCKS, Comparison, decide, is_promising, is_unanimous
from pytest_gpuperf.model.limits import Limits
from pytest_gpuperf.timing import samples as stats
from pytest_gpuperf.timing.blocks import Block, Reference, blocks_of, plan, sustained_plan
from pytest_gpuperf.timing.rounds import WARM_UP_S, Clock, Rounds, disturbances, warm_up

BUDGETS = 4.0
"""Budgets that blocks may take which speak for a claim and do not prove it: going on costs no error rate."""
MOST_ROUNDS = 4


@dataclasses.dataclass(frozen=True)
class Compared:
    """A comparison, with the candidate's samples as rounds."""

    comparison: Comparison
    rounds: Rounds


def compare(
    device: Device, reference: Reference, limits: Limits, alpha: float, *, seed: int, duration_ns: float,
    budget_s: float, sustained: bool = False, clock: Clock = time.perf_counter,
) -> Compared:  # fmt: skip
    """Take blocks until they decide, up to ``MOST_BLOCKS``, or until ``budget_s`` seconds are over.

    Blocks that all say the same go on until they decide: a kernel sixteen times as slow does not stay undecided because
    it takes longer.  Those that speak for a claim have four budgets.  ``duration_ns`` is about what the longer
    side takes; ``sustained`` slots take two seconds.  The caller holds the GPU's lock.  Raises what the timer and the
    reference raise.
    """
    start, coin, timer = clock(), random.Random(seed), reference.timer
    if duration_ns * 1e-9 < WARM_UP_S / 10:
        warm_up(timer, reference.sides[1], clock=clock)
    sides = reference.sides
    laid_out = sustained_plan(timer, sides, clock) if sustained else plan(timer, sides, limits, duration_ns, budget_s)
    blocks: list[Block] = []
    disturbed: list[str] = []
    began, call, before = clock(), 0, device.state()
    while not call or _wants_more(
        [block.r for block in blocks], [block.mean for block in blocks], limits, alpha,
        (clock() - start + (clock() - began) / call) / budget_s,
    ):  # fmt: skip
        reference.place(call, coin)
        orders = laid_out.draw(coin)
        times = timer.measure(laid_out.slots(orders, reference.sides), sides[0].cache)
        blocks += blocks_of(orders, times, timer.tick_ns)
        after = device.state()
        disturbed += () if sustained else disturbances(before, after)  # clocks change by it
        before = after
        call += 1
    reference.finish()
    remarks = (*reference.remarks, *(("in sustained slots",) if sustained else ()), *dict.fromkeys(disturbed))
    centres = [math.log(stats.midmean(block.candidate)) for block in blocks]
    comparison = Comparison(
        r=tuple(block.r for block in blocks), means=tuple(block.mean for block in blocks), seed=seed,
        time_ns=math.exp(float(np.mean(centres))), remarks=remarks,
        seconds=clock() - start,
    )  # fmt: skip
    return Compared(comparison, _rounds(blocks))


def _wants_more(r: Sequence[float], means: Sequence[float], limits: Limits, alpha: float, budgets: float) -> bool:
    """Whether blocks have not decided, and others may be taken, which would end after so many ``budgets``."""
    if len(r) >= MOST_BLOCKS or decide(r, limits, alpha, means) is not None:
        return False
    return budgets <= 1 or is_unanimous(r, limits) or (budgets <= BUDGETS and is_promising(r, limits, means))


def _rounds(blocks: list[Block]) -> Rounds:
    """The candidate's samples of some blocks in a row, as a round each."""
    parts = np.array_split(np.arange(len(blocks)), min(len(blocks), MOST_ROUNDS))
    samples = [np.concatenate([blocks[index].candidate for index in part]) for part in parts]
    return Rounds(tuple(map(stats.centre, samples)), sum(one.size for one in samples))
