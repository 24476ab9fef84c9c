"""Paired blocks: baseline and candidate measured side by side, in an order drawn at random.

A block is four slots, ABBA or BAAB, or that order over again where slots would be longer than twelve samples: the
finer sides take turns, the less of what changes meanwhile is left.  Which order is drawn from a recorded seed, and on
that draw alone the test's exactness rests (docs/explanation/statistics.md, "Paired blocks"): it makes the sign of equal
kernels' blocks a fair coin, whatever drift, correlation or tails the times have.  So a block may be discarded only by
rules that cannot see which slot was which.  Clocks and throttle reasons are read behind whichever kernel ran last:
they are remarked on, and discard nothing.  The judge may stop after any block.  Long launches: ``long_blocks``.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.device.timers.resolution import step_of
from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.timing import sample_stats
from pytest_gpuperf.timing.health import clock_moved
from pytest_gpuperf.timing.rounds import Clock, Workload, valid_samples
from pytest_gpuperf.timing.taken_block import NO_SLOW, Block

Order = Literal["ABBA", "BAAB"]

PILOT_SAMPLES = 30
"""Samples of each side before the first block, in five blocks of the least size; fewer and unblocked if long."""
LEAST_PILOT_SAMPLES = 5
_PILOT_SHARE = 1 / 8
"""Share of the time budget that the pilot may take."""
WANTED_BLOCKS = 28
"""Blocks for which the budget has to have room: a clear case late in a run takes about as many."""
LEAST_SIZE = 6
MOST_SIZE = 200
"""Samples per side and block."""
LONGEST_SLOT = 12
"""Samples; a larger block has more slots.  A block of 24 a side and fewer has four."""
BLOCK_SD = 0.0025
"""Wanted sd of a block's value: half the indifference zone, here that of the ``tight`` profile."""
RELOAD_EVERY = 8
"""Blocks after which both modules are loaded anew."""
_MIDMEAN_VARIANCE = 2.4
"""Variance of the difference of two midmeans, in variances of a mean of as many samples."""
_PILOT_CAUTION = 1.5
"""Factor on the variance that the pilot's five blocks showed, whose sd is off by a third or so."""
_MIDDLE_HALF_OF_FIVE = 0.99
"""Mean distance between the second and the fourth of five normal values, in their sd."""
_FENCE = 4.0
"""A block whose samples spread by more than so many times the pilot's noise is discarded ..."""
_FENCE_FLOOR = 0.01
"""... unless they spread by less than this fraction."""
_RHO_BOUND = 0.95
"""Autocorrelation is taken for no more than this: beyond it, no block would be large enough."""
PAD_STEP = 512
"""Bytes: what the addresses of fresh buffers are multiples of."""
MOST_PAD = 2 << 20
"""Bytes by which buffers are moved at most."""


class Noise(NamedTuple):
    """Noise of the samples of both workloads within one slot, from a pilot."""

    sigma: float
    """Relative sd, from interquartile ranges; at least that of the timer's step."""
    rho1: float = 0.0
    """Lag-1 autocorrelation, 0 to .95."""
    block_sd: float | None = None
    """Sd of the values of blocks of the least size; None if there was no time for such."""


def block_size(noise: Noise, target: float = BLOCK_SD) -> int:
    """Samples per side and block, even, from 6 to 200, so that a block's value has the sd ``target``.

    Independent samples need NB = 2.4 sigma^2 / target^2.  What autocorrelation adds is seen in the pilot's blocks of
    six samples a side: with their variance v, NB is at least 6 * 1.5 v / target^2.  (ABBA takes drift out, which a
    correction by rho1 counts in: with it a 64 MB copy had blocks of seven times the size that it needed.)  Without
    such blocks, NB grows by (1 + rho1) / (1 - rho1).  Raises ``ValueError`` for a figure below 0 or not finite.
    """
    sigma, rho1, block_sd = noise.sigma, noise.rho1, noise.block_sd or 0.0
    if not (0 <= sigma < math.inf and math.isfinite(rho1) and 0 <= block_sd < math.inf):
        raise ValueError(f"a block size needs a finite noise of at least 0, not {noise}")
    wanted = _MIDMEAN_VARIANCE * sigma**2 / target**2
    if noise.block_sd is None:
        rho = min(max(rho1, 0.0), _RHO_BOUND)
        wanted *= (1 + rho) / (1 - rho)
    else:
        wanted = max(wanted, LEAST_SIZE * _PILOT_CAUTION * (block_sd / target) ** 2)
    size = math.ceil(min(max(wanted, LEAST_SIZE), MOST_SIZE))
    return size + size % 2


def affordable(duration_ns: float, budget_s: float) -> tuple[int, int]:
    """Samples of a pilot and largest block size within ``budget_s``: an eighth for the pilot, room for 28 blocks."""
    launches = budget_s * 1e9 / duration_ns
    # of each slot one sample more is taken and dropped, so four in each four slots
    size = int((launches * (1 - _PILOT_SHARE) / WANTED_BLOCKS - 4) / (2 + 4 / (2 * LONGEST_SLOT)))
    return (
        max(min(int(launches * _PILOT_SHARE / 2), PILOT_SAMPLES), LEAST_PILOT_SAMPLES),
        max(min(size - size % 2, MOST_SIZE), 2),
    )


def pilot(timer: Timer, baseline: Workload, candidate: Workload, samples: int = PILOT_SAMPLES) -> Noise:
    """Measure both workloads a few times and see how noisy they are, from 30 samples a side on in five blocks."""
    require_same_cache(baseline, candidate)
    blocks = samples // LEAST_SIZE if samples >= PILOT_SAMPLES else 0
    order, lengths = ("ABBA", [LEAST_SIZE // 2] * blocks) if blocks else ("AB", [samples])
    slots = _slots(order, baseline, candidate, lengths)
    taken = [valid_samples(times) for times in timer.measure(slots, baseline.cache)]
    values = [block_value("ABBA", taken[4 * index : 4 * index + 4], timer.tick_ns) for index in range(blocks)]
    block_sd = float(np.ptp(np.quantile(values, [0.25, 0.75]))) / _MIDDLE_HALF_OF_FIVE if values else None
    return noise_of(_by_side(order, taken), timer.tick_ns, block_sd)


def noise_of(sides: Sequence[sample_stats.Samples], tick_ns: float, block_sd: float | None = None) -> Noise:
    """The noise that samples of both sides show."""
    variance = float(np.mean([max(_spread(side), _step_sd(side, tick_ns)) ** 2 for side in sides]))
    rho = float(np.mean([sample_stats.lag_one_autocorrelation(side) for side in sides]))
    return Noise(math.sqrt(variance), min(max(rho, 0.0), _RHO_BOUND), block_sd)


def paired_blocks(
    device: Device,
    timer: Timer,
    baseline: Workload,
    candidate: Workload,
    *,
    seed: int,
    size: int,
    noise: Noise,
    settling: int | None = None,
    reload: Callable[[], None] | None = None,
    reallocate: Callable[[int], None] | None = None,
    budget_s: float = math.inf,
    clock: Clock = time.perf_counter,
) -> Iterator[Block]:
    """Blocks of ``size`` samples per side until the caller stops asking or the budget has no room for one more.

    ``reallocate(pad_bytes)`` is called before each block and gives both workloads the same new buffers, behind a random
    pad of 512 bytes to 2 MiB; ``reload()`` loads both modules anew, before every eighth block.  With ``settling`` the
    slots are sustained: four of ``size / 2`` samples, each behind so many that do not count, and no block is discarded.
    A block that is cut short is never yielded.  Raises ``ValueError`` for an odd ``size`` or different cache modes, and
    what the timer raises.
    """
    require_same_cache(baseline, candidate)
    if size < 2 or size % 2:
        raise ValueError(f"a block needs an even number of samples per side, not {size}")
    coin = random.Random(seed)
    lengths = slot_lengths(size) if settling is None else [settling + size // 2]
    start = clock()
    before = device.state()
    for index in range(2**31):
        began = clock()
        if index and began - start + (began - start) / index > budget_s:
            return
        order: Order = "ABBA" if coin.random() < 0.5 else "BAAB"
        move_and_reload(index, coin, reload, reallocate)
        times = timer.measure(_slots(order, baseline, candidate, lengths), baseline.cache)
        slots = [valid_samples(of_slot)[settling or 0 :] for of_slot in times]
        after = device.state()
        sides = _by_side(order, slots)
        reason = "" if settling is not None else _reason_to_discard(sides, noise)
        remark = "" if settling is not None else remark_on(before, after)
        before = after
        tail, slow = tail_of(sides) if settling is None else (None, (NO_SLOW, NO_SLOW))
        yield Block(
            r=block_value(order, slots, timer.tick_ns), tail=tail, slow=slow, samples=size, order=order,
            discarded=bool(reason), reason=reason, seconds=clock() - began, carry_over=carry_over(slots), remark=remark,
        )  # fmt: skip


def move_and_reload(
    index: int, coin: random.Random, reload: Callable[[], None] | None, reallocate: Callable[[int], None] | None
) -> None:
    """Before block number ``index``: both modules anew if it is an eighth one, and the buffers behind another pad."""
    pad = PAD_STEP * (1 + int(coin.random() * (MOST_PAD // PAD_STEP)))
    if reload is not None and index and index % RELOAD_EVERY == 0:
        reload()
    if reallocate is not None:
        reallocate(pad)


def slot_lengths(size: int) -> list[int]:
    """Samples of a slot in each four of a block's slots: ``size`` a side in all, none of them above twelve."""
    half = size // 2
    fours = -(-half // LONGEST_SLOT)
    return [half // fours + (index < half % fours) for index in range(fours)]


def block_value(order: Order, slots: Sequence[sample_stats.Samples], tick_ns: float = 0.0) -> float:
    """ln midmean of the candidate's slots - ln midmean of the baseline's, in whole fours of slots.

    Core means where both sides are coarse: both are summed up alike, so exchanging the labels changes but the sign.
    """
    sides = _by_side(order, slots)
    step_ns = step_of(np.concatenate(sides).tolist(), tick_ns)
    coarse = all(sample_stats.coarse(side, step_ns) for side in sides)
    baseline, candidate = (
        sample_stats.core_mean(side, step_ns) if coarse else sample_stats.midmean(side) for side in sides
    )
    return math.log(candidate) - math.log(baseline)


def tail_of(
    sides: Sequence[sample_stats.Samples],
) -> tuple[float, tuple[sample_stats.SlowShare, sample_stats.SlowShare]]:
    """What the baseline's and the candidate's samples of a block say by their means, and their slow ones."""
    baseline, candidate = sides
    tail = math.log(sample_stats.winsorised_mean(candidate) / sample_stats.winsorised_mean(baseline))
    return tail, (sample_stats.slow_share(baseline), sample_stats.slow_share(candidate))


def carry_over(slots: Sequence[sample_stats.Samples]) -> float:
    """Difference, in log time, of a slot behind one of the other side and behind one of its own.

    Of each four slots, the second and the last follow the other side.  With a and b for the two sides, d for what
    drifts from slot to slot and c for what is carried over, they read a, b + d + c, b + 2d and a + 3d + c, so that
    4c is (fourth - first) + 3 (second - third), in either order.  The mean of all fours.
    """
    logs = [math.log(sample_stats.midmean(samples)) for samples in slots]
    fours = [logs[place : place + 4] for place in range(0, len(logs), 4)]
    return float(np.mean([(fourth - first + 3 * (second - third)) / 4 for first, second, third, fourth in fours]))


def _by_side(order: str, slots: Sequence[sample_stats.Samples]) -> list[sample_stats.Samples]:
    """All samples of the baseline, and all of the candidate; the slots come in ``order``, again and again."""
    orders = order * (len(slots) // len(order))
    return [
        np.concatenate([samples for label, samples in zip(orders, slots, strict=True) if label == side])
        for side in "AB"
    ]


def _slots(order: str, baseline: Workload, candidate: Workload, lengths: Sequence[int]) -> list[Slot]:
    """``order`` once for each length, which its slots have."""
    sides = {"A": baseline, "B": candidate}
    return [Slot(sides[label].run, length, sides[label].reset) for length in lengths for label in order]


def remark_on(before: DeviceState, after: DeviceState) -> str:
    """How the GPU's state changed within a block; empty if it did not.  It may depend on which kernel ran last."""
    if set(before.throttle_reasons) != set(after.throttle_reasons):
        now = ", ".join(after.throttle_reasons) or "none"
        return f"the GPU's throttle reasons changed within a block (now: {now})"
    first, last = before.sm_clock_mhz, after.sm_clock_mhz
    return f"the SM clock went from {first} to {last} MHz within a block" if clock_moved(first, last) else ""


def _reason_to_discard(sides: Sequence[sample_stats.Samples], noise: Noise) -> str:
    """Empty if the block counts.  Exchanging the labels A and B does not change it.

    Of each side as a whole, as in the pilot: one slow sample in a slot of three is a third of the slot.
    """
    spread = math.sqrt(float(np.mean([_spread(samples) ** 2 for samples in sides])))
    fence = max(_FENCE * noise.sigma, _FENCE_FLOOR)
    return f"the samples spread by {spread:.1%}, above the fence of {fence:.1%}" if spread > fence else ""


def _spread(samples: sample_stats.Samples) -> float:
    """Relative sd by the interquartile range: outliers that the midmean ignores do not count."""
    lower, upper = np.quantile(np.log(samples), [0.25, 0.75])
    return float(upper - lower) / 1.349


def _step_sd(samples: sample_stats.Samples, tick_ns: float) -> float:
    """Relative sd that the timer's step alone gives: equal readings are no proof of equal times."""
    return step_of(samples.tolist(), tick_ns) / math.sqrt(12) / sample_stats.midmean(samples)


def require_same_cache(baseline: Workload, candidate: Workload) -> None:
    if baseline.cache != candidate.cache:
        raise ValueError(
            f"baseline ({baseline.cache}) and candidate ({candidate.cache}) ask for different cache modes: "
            f"such times cannot be paired"
        )
