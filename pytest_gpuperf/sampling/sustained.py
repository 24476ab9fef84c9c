"""Sustained slots: so long that each kernel runs at the clock that its own power draw leaves it.

Kernels that take turns after a few samples share one clock, so what one of them costs by drawing more power slows
both, and their ratio hides it.  A sustained slot keeps the device busy with one of them for two seconds or more,
and a block is four such slots, in the order that the coin draws.

Half of every slot does not count: its first samples run at the clock that the other kernel left, or the pause between
two blocks.  Which samples those are follows from their place in the slot alone, is alike for both sides, and is fixed
by the pilot before the first vote.  It is half, because a power controller is taken to have settled after a second: an
H200 lets a kernel draw 725 W for 0.75 to 0.9 s before it lowers the clock (docs/results/sustained.md).  The temperature
has not settled, and is shared.

No such block is discarded.  A clock or a throttle reason that changes is what a power-limited kernel does.  At the end
of a block it is that of the kernel which came last, so a rule on it would see the order that the coin drew; and
samples spread as the controller moves the clock.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.sampling import shape
from pytest_gpuperf.sampling.pairs import Noise, noise_of
from pytest_gpuperf.sampling.rounds import Clock, Workload, valid_samples

SLOT_S = 2.0
"""Least time for which a slot keeps the device busy, seconds."""
MOST_SAMPLES = 20_000
"""Of a slot, which bounds a block to some hundred thousand activity records: shorter samples fill it for less."""
HOST_SHARE = 1 / 4
"""Of a measurement's wall-clock time may go to the host alone: reading records when the device is done."""
_FIRST_SAMPLES = 30
_LEAST_SAMPLES = 2


class SustainedSlots(NamedTuple):
    """How long the slots of a pairing are."""

    samples: int
    """Of each slot, the one included that every timer drops."""
    occupied_s: float
    """Seconds for which a sample of the faster side keeps the device busy, its flush included; rather too few."""

    @property
    def settling(self) -> int:
        """Samples at a slot's start that are dropped, behind the one that the timer drops."""
        return self.samples // 2 - 1

    @property
    def size(self) -> int:
        """Samples per side and block that count."""
        return 2 * (self.samples - self.samples // 2)

    @property
    def seconds(self) -> float:
        """Least time for which one of them keeps the device busy."""
        return self.samples * self.occupied_s

    @property
    def remark(self) -> str:
        """What a reader should know of slots that are too short; empty if they are not."""
        if self.seconds >= SLOT_S:
            return ""
        return (
            f"its sustained slots have {self.samples} samples, the most there are, and last {self.seconds:.2g} s "
            f"instead of {SLOT_S:g} s: samples as short as these leave the GPU idle in between and draw no sustained "
            f"power; give the launch more work"
        )


def sustained_pilot(
    timer: Timer, baseline: Workload, candidate: Workload, *, duration_ns: float, clock: Clock
) -> tuple[SustainedSlots, Noise]:
    """Find out how many samples make a slot, by slots of that length of each side, and how noisy they are then.

    ``duration_ns``, about what one sample takes, bounds the first try, which is small: what a measurement costs besides
    its samples would make them look long.  The second one also brings the GPU to the clocks of sustained work.
    """
    samples = max(min(int(SLOT_S * 1e9 / duration_ns), _FIRST_SAMPLES), _LEAST_SAMPLES)
    _, samples, _ = _tried(timer, (baseline, candidate), samples, clock)
    occupied_s, samples, settled = _tried(timer, (baseline, candidate), samples, clock)
    return SustainedSlots(samples, occupied_s), noise_of(settled, timer.tick_ns)


def _tried(
    timer: Timer, sides: tuple[Workload, ...], samples: int, clock: Clock
) -> tuple[float, int, list[shape.Samples]]:
    """What a sample of the faster side takes, how many fill a slot, and what counts of each side's slot."""
    occupied_s, settled = math.inf, []
    for side in sides:
        began = clock()
        (times,) = timer.measure([Slot(side.run, samples - 1, side.reset)], side.cache)
        each_s = (clock() - began) / samples
        taken = valid_samples(times)
        occupied_s = min(occupied_s, max(shape.midmean(taken) * 1e-9, (1 - HOST_SHARE) * each_s))
        settled.append(taken[samples // 2 - 1 :])
    wanted = math.ceil(SLOT_S / occupied_s)
    return occupied_s, max(min(wanted, MOST_SAMPLES), _LEAST_SAMPLES), settled
