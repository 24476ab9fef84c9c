"""Sustained slots: so long that each kernel runs at the clock that its own power draw leaves it.

Kernels that take turns after a few samples share one clock, so what one of them costs by drawing more power slows
both, and their ratio hides it.  A sustained slot keeps the device busy with one of them for two seconds or more,
and a block is four such slots, in an order drawn at random.

The first half of every slot does not count: it may run at the clock that the other kernel left.  This is alike for both
sides and fixed before the first vote.  A power controller is taken to have settled after a second: an H200 lets a
kernel draw 725 W for 0.75 to 0.9 s before it lowers the clock (docs/results/sustained.md).  The temperature is shared.

No such block is discarded: a clock or a throttle reason that changes is what a power-limited kernel does.  At the end
of a block it is that of the kernel which came last, so a rule on it would see the order that was drawn.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.timing import sample_stats
from pytest_gpuperf.timing.blocks import Noise, noise_of
from pytest_gpuperf.timing.power import Draw, compared, draw_of, watched
from pytest_gpuperf.timing.rounds import Clock, Workload, valid_samples

SLOT_S = 2.0
"""Least time for which a slot keeps the device busy, seconds."""
MOST_SAMPLES = 20_000
"""Most samples of a slot, so that a block has some hundred thousand activity records at most."""
HOST_SHARE = 1 / 4
"""Share of a measurement's wall-clock time that the host alone may take: reading records when the device is done."""
GROSS = 1.25
"""Ratio of two sides' times beyond which their slots are short."""
_TRIES = 3
"""Tries, each with slots as long as the one before asked for."""
_FIRST_SAMPLES = 30
_LEAST_SAMPLES = 2


class SustainedSlots(NamedTuple):
    """Length of the slots of a pairing."""

    samples: int
    """Samples of each slot, including the one that every timer drops."""
    occupied_s: float
    """Seconds for which a sample of the faster side keeps the device busy, its flush included; rather too few."""
    kernel_s: float
    """Seconds of that which are the faster kernel's own."""
    draws: tuple[Draw, Draw] = (Draw(), Draw())
    """At which the baseline and the candidate run on."""

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
    def remarks(self) -> tuple[str, ...]:
        return tuple(remark for remark in (compared(*self.draws), self._too_short) if remark)

    @property
    def _too_short(self) -> str:
        if self.samples >= MOST_SAMPLES and self.seconds < SLOT_S:
            return (
                f"its sustained slots have {self.samples} samples, the most there are, and last {self.seconds:.2g} s "
                f"instead of {SLOT_S:g} s: samples as short as these leave the GPU idle in between and draw no "
                f"sustained power; give the launch more work"
            )
        if self.samples * self.kernel_s < SLOT_S / 2:
            return (
                f"in its sustained slots of {self.samples} samples the kernel itself runs for "
                f"{self.samples * self.kernel_s:.2g} s of {SLOT_S:g} s: the rest is flushes, resets and the host's own "
                f"time, which draw less power; give the launch more work, or use cache='warm' and the CUPTI timer"
            )
        return ""


def sustained_pilot(
    device: Device, timer: Timer, baseline: Workload, candidate: Workload, *, duration_ns: float, clock: Clock
) -> tuple[SustainedSlots, Noise] | None:
    """Find out how many samples make a slot, by slots of that length of each side, and how noisy they are then.

    ``duration_ns``, about what one sample takes, bounds the first try, which is small: what a measurement costs besides
    its samples would make them look long.  The later ones also bring the GPU to the clocks of sustained work.
    None where one side takes ``GROSS`` times as long as the other: short slots show that.
    """
    samples = max(min(int(SLOT_S * 1e9 / duration_ns), _FIRST_SAMPLES), _LEAST_SAMPLES)
    found = _tried(device, timer, (baseline, candidate), samples, clock)
    for _ in range(_TRIES):
        if found.ratio > GROSS:
            return None
        samples = found.samples
        found = _tried(device, timer, (baseline, candidate), samples, clock)
        if found.samples <= samples * (1 + HOST_SHARE):
            break
    slots = SustainedSlots(found.samples, found.occupied_s, found.kernel_s, found.draws)
    return slots, noise_of(found.settled, timer.tick_ns)


class _Tried(NamedTuple):
    """Measurements of slots of one length."""

    occupied_s: float
    """Duration of a sample of the faster side."""
    kernel_s: float
    """Part of that in which its kernel runs."""
    ratio: float
    """Ratio of the slower side's time to the faster one's."""
    samples: int
    """Number of samples that fill a slot."""
    settled: list[sample_stats.Samples]
    """Samples of each side that count."""
    draws: tuple[Draw, Draw]
    """Clock and power of each side, towards its end."""


def _tried(device: Device, timer: Timer, sides: tuple[Workload, Workload], samples: int, clock: Clock) -> _Tried:
    occupied_s, settled, draws = math.inf, [], []
    for side in sides:
        began = clock()
        with watched(device.state) as seen:
            (times,) = timer.measure([Slot(side.run, samples - 1, side.reset)], side.cache)
        each_s = (clock() - began) / samples
        taken = valid_samples(times)
        occupied_s = min(occupied_s, max(sample_stats.midmean(taken) * 1e-9, (1 - HOST_SHARE) * each_s))
        settled.append(taken[samples // 2 - 1 :])
        draws.append(draw_of(seen))
    kernel_ns = sorted(sample_stats.midmean(side) for side in settled)
    wanted = max(min(math.ceil(SLOT_S / occupied_s), MOST_SAMPLES), _LEAST_SAMPLES)
    ratio = kernel_ns[-1] / kernel_ns[0]
    return _Tried(occupied_s, kernel_ns[0] * 1e-9, ratio, wanted, settled, (draws[0], draws[1]))
