"""Paired blocks: the layout of one exchange of a baseline and a candidate, and its result.

A block is four slots, ABBA or BAAB, or that order over again where slots would be longer than twelve samples: the finer
the two interleave, the less of what changes meanwhile is left.  Of launches of a millisecond and more it is a pair, AB
or BA.  Which order is drawn by a coin from a recorded seed, and on that draw alone the proof rests
(docs/explanation/statistics.md): it makes the sign of equal kernels' blocks a fair coin, whatever drift, correlation or
tails the times have.  So no block is ever discarded, and the judge may stop after any of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from pytest_gpuperf.device.interface import Slot, SlotTimer
from pytest_gpuperf.device.timers.resolution import step_of
from pytest_gpuperf.model.limits import Limits
from pytest_gpuperf.timing import samples as stats
from pytest_gpuperf.timing.rounds import LONG_NS, UNDROPPED_NS, Clock, Workload

WANTED_BLOCKS = 28
"""Blocks for which the budget has to have room: a clear case late in a run takes about as many."""
LEAST_SIZE, MOST_SIZE = 6, 200
"""Samples per side and block."""
LONGEST_SLOT = 12
"""Samples; a larger block has more slots.  A block of 24 a side and fewer has four."""
PILOT_BLOCKS = 5
_MIDMEAN_VARIANCE = 2.4
"""Variance of the difference of two midmeans, in variances of a mean of as many samples."""
_PILOT_CAUTION = 1.5
"""Factor on the variance that the pilot's five blocks showed, whose deviation is off by a third or so."""
_MIDDLE_HALF_OF_FIVE = 0.99
"""Mean distance between the second and the fourth of five normal values, in their standard deviation."""
PAIRS_A_CALL = 4
"""Pairs of launches below 10 ms that a timer takes in one call, so that the pause ahead of it is hidden by one launch
that does not count."""
BURST_S = 2.0
"""Least time for which a sustained slot keeps the GPU busy.  Its first half does not count: an H200 lets a kernel draw
725 W for 0.75 to 0.9 s before it lowers the clock."""
MOST_BURST = 20_000
"""Most samples of a sustained slot."""
Sides = tuple[Workload, Workload]
"""The baseline, and the candidate."""


class Plan(NamedTuple):
    """How the samples of a comparison are laid out; fixed before the first block that counts."""

    order: str
    """``ABBA`` or ``AB``; the coin may reverse the roles."""
    samples: int
    """Counted samples of each slot."""
    dropped: int = 1
    """Samples of each slot before the counted ones, which are dropped."""
    repeats: int = 1
    """How often the order comes in a block."""
    blocks: int = 1
    """Blocks that a timer takes in one call."""
    lead: int = 0
    """Samples ahead of each call that do not count."""

    def draw(self, coin: random.Random) -> list[str]:
        """The orders of the blocks of one call, such as ``BAAB``."""
        turned = self.order.translate(str.maketrans("AB", "BA"))
        return [(self.order if coin.random() < 0.5 else turned) * self.repeats for _ in range(self.blocks)]

    def slots(self, orders: Sequence[str], sides: Sides) -> list[Slot]:
        slots = [sides["AB".index(side)].slot(self.samples, self.dropped) for side in "".join(orders)]
        return [slots[0]._replace(dropped=slots[0].dropped + self.lead), *slots[1:]]


class Block(NamedTuple):
    """One exchange of baseline (A) and candidate (B)."""

    r: float
    """ln midmean(B) - ln midmean(A): above 0, the candidate is slower."""
    mean: float
    """The same of winsorised means, which see rare slow samples."""
    candidate: stats.Samples
    """Its samples, nanoseconds."""


def blocks_of(orders: Sequence[str], times: Sequence[Sequence[float]], tick_ns: float) -> list[Block]:
    """The blocks that a call has taken; ``times`` has its slots in their order.  Raises ``InvalidSampleError``."""
    found, slots = [], [stats.valid_samples(one) for one in times]
    for order in orders:
        taken, slots = slots[: len(order)], slots[len(order) :]
        found.append(_block(order, taken, tick_ns))
    return found


def _block(order: str, slots: Sequence[stats.Samples], tick_ns: float) -> Block:
    """Both sides are summed up alike, so that exchanging the labels changes but the sign."""
    baseline, candidate = (
        np.concatenate([taken for label, taken in zip(order, slots, strict=True) if label == side]) for side in "AB"
    )
    step_ns = step_of(np.concatenate([baseline, candidate]).tolist(), tick_ns)
    coarse = all(stats.is_coarse(side, step_ns) for side in (baseline, candidate))
    before, after = (
        stats.core_mean(side, step_ns) if coarse else stats.midmean(side) for side in (baseline, candidate)
    )
    mean = math.log(stats.winsorised_mean(candidate) / stats.winsorised_mean(baseline))
    return Block(math.log(after / before), mean, candidate)


def plan(timer: SlotTimer, sides: Sides, limits: Limits, duration_ns: float, budget_s: float) -> Plan:
    """The plan of short slots, or of pairs of launches where ``duration_ns``, the longer side's, is a millisecond.

    Of scattering launches of 1 ms and more, a slot has two.  Measures a pilot, unless that took too long.
    """
    gap = (limits.detect - limits.tolerance) / 2
    if duration_ns >= LONG_NS:
        several = PAIRS_A_CALL if duration_ns < UNDROPPED_NS else 1
        once = Plan("AB", 1, 0, blocks=several, lead=1 if several > 1 else 0)
        if 4 * PILOT_BLOCKS * duration_ns * 1e-9 > budget_s:
            return once
        deviation, _ = _pilot(timer, sides, Plan("AB", 1, 0, blocks=PILOT_BLOCKS, lead=1))
        return once._replace(samples=2) if deviation > gap else once
    deviation, samples = _pilot(timer, sides, Plan("ABBA", LEAST_SIZE // 2, blocks=PILOT_BLOCKS))
    sigma = max(stats.relative_deviation(samples), timer.tick_ns / math.sqrt(12) / duration_ns)
    wanted = max(_MIDMEAN_VARIANCE * (sigma / gap) ** 2, LEAST_SIZE * _PILOT_CAUTION * (deviation / gap) ** 2)
    launches = budget_s * 1e9 / duration_ns / WANTED_BLOCKS
    affordable = (launches - 4) / (2 + 4 / (2 * LONGEST_SLOT))  # one dropped sample a slot included
    size = min(max(wanted, LEAST_SIZE), MOST_SIZE, max(affordable, 2))
    repeats = math.ceil(size / 2 / LONGEST_SLOT)
    return Plan("ABBA", round(size / 2 / repeats), repeats=repeats)


def _pilot(timer: SlotTimer, sides: Sides, laid_out: Plan) -> tuple[float, stats.Samples]:
    """Standard deviation of the blocks' values, by their quartiles; and the candidate's samples."""
    orders = [laid_out.order] * laid_out.blocks
    times = timer.measure(laid_out.slots(orders, sides), sides[0].cache)
    blocks = blocks_of(orders, times, timer.tick_ns)
    middle_half = float(np.ptp(np.quantile([block.r for block in blocks], [0.25, 0.75])))
    return middle_half / _MIDDLE_HALF_OF_FIVE, np.concatenate([block.candidate for block in blocks])


def sustained_plan(timer: SlotTimer, sides: Sides, clock: Clock) -> Plan:
    """The plan of sustained slots: each keeps the GPU busy with one side for two seconds or more.

    Kernels that interleave after a few samples share one clock, so what one of them costs by drawing more power slows
    both.  A sustained slot runs at the clock that its own power draw leaves it.
    """
    samples = 30
    for _ in range(2):  # the second try runs at the clocks of sustained work
        began = clock()
        timer.measure([side.slot(samples) for side in sides], sides[0].cache)
        each_s = (clock() - began) / (2 * samples)
        samples = min(max(math.ceil(BURST_S / max(each_s, 1e-9)), 2), MOST_BURST)
    return Plan("ABBA", samples - samples // 2, dropped=samples // 2)


# --- the other side ------------------------------------------------------------------------------


RELOAD_EVERY = 8
"""Blocks after which modules are loaded anew."""
PAD_STEP = 512
"""Bytes; the addresses of fresh buffers are multiples of it."""
MOST_PAD = 2 << 20
"""Bytes by which buffers are moved at most."""


class Reference(Protocol):
    """The baseline of a comparison, together with the candidate."""

    @property
    def timer(self) -> SlotTimer:
        """Measures slots of either side."""

    @property
    def sides(self) -> Sides:
        """The baseline and the candidate, as they are placed now."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """For the report."""

    def place(self, call: int, coin: random.Random) -> None:
        """Before the timer's call number ``call``: both sides get other addresses, and modules are loaded anew.

        Nothing of it may depend on which side is which.
        """

    def finish(self) -> None:
        """After the last block: fill the caller's own buffers with the candidate's results."""


def pad_of(coin: random.Random) -> int:
    """Bytes by which something is moved, drawn anew."""
    return PAD_STEP * (1 + coin.randrange(MOST_PAD // PAD_STEP))
