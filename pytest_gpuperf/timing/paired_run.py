"""Two cubins, one launch: paired blocks on the device until the judge has seen enough.

Both are loaded into modules of their own and run on the same stream and the same buffers, each in its own grid, block
and shared memory; before each block the buffers move, before every eighth the modules are loaded anew.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pytest_gpuperf.device.device_errors import GpuFault
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.launch import Configuration, Launch
from pytest_gpuperf.device.recorded_arguments import RecordedArguments
from pytest_gpuperf.judge.block_decision import Paired
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.rank_eprocess import LAUNCHES
from pytest_gpuperf.model.evidence import CacheMode, KernelBinary
from pytest_gpuperf.model.verdict import PairSlot
from pytest_gpuperf.timing.blocks import (
    Noise,
    affordable,
    block_size,
    paired_blocks,
    pilot,
)
from pytest_gpuperf.timing.long_blocks import LONG_NS, long_blocks
from pytest_gpuperf.timing.moving_buffers import MovingBuffers
from pytest_gpuperf.timing.rounds import Clock, Workload
from pytest_gpuperf.timing.sustained import GROSS, SustainedSlots, sustained_pilot
from pytest_gpuperf.timing.taken_block import Block
from pytest_gpuperf.timing.until_decided import tails_of, until_decided

LOAD_ORDERS = ((0, 1), (1, 0))
"""Which of the two sides is loaded first, drawn anew at each load: a place in memory is no side's own."""
TOO_FAR_APART = f"its slots were short: the two differ by more than {GROSS - 1:.0%}, which needs no sustained ones"
OF_BASELINE = " of the baseline"
"""What a kernel's name has behind it where it is the baseline's machine code that runs."""


@dataclasses.dataclass(frozen=True)
class Pairing:
    """Result of pairing two kernels in one process."""

    paired: Paired
    """The decision on the blocks that count."""
    blocks: tuple[Block, ...]
    """All of them in the order they were taken, discarded ones included."""
    seed: int
    """Seed of the random order of their slots."""
    size: int
    """Samples per side and block that count."""
    noise: Noise | None
    """Noise in the pilot that set the size; None for long launches, which have none."""
    seconds: float
    """Wall-clock time, loading and pilot included."""
    sustained: SustainedSlots | None = None
    """Length of its slots; None if they were short."""
    aside: str = ""
    """Reason why they were short where sustained ones were asked for."""
    unmoved: str = ""
    """Reason why the buffers stayed where they are, if memory was lacking."""

    @property
    def remarks(self) -> tuple[str, ...]:
        reasons = [block.reason for block in self.blocks if block.discarded]
        each = ", ".join(dict.fromkeys(reasons))
        discarded = f"{len(reasons)} of {len(self.blocks)} blocks were discarded: {each}" if reasons else ""
        seen = [block.remark for block in self.blocks if block.remark]
        states = f"{len(seen)} of {len(self.blocks)} blocks count though {seen[0]}" if seen else ""
        slots = self.sustained.remarks if self.sustained else (self.aside,)
        return tuple(remark for remark in (*slots, discarded, states, self.unmoved) if remark)

    @property
    def r(self) -> tuple[float, ...]:
        """Log ratios candidate over baseline of the blocks that count."""
        return tuple(block.r for block in self.blocks if not block.discarded)

    @property
    def ratios(self) -> tuple[tuple[float, ...], ...]:
        """Log ratios of the pairs of each block that counts, as ``judge_blocks`` takes them."""
        return tuple(block.ratios for block in self.blocks if not block.discarded)

    @property
    def tails(self) -> tuple[tuple[float, ...], ...]:
        """Log ratios of means of each block that counts and of those discarded since the one before."""
        return tails_of(self.blocks)

    @property
    def slow_launches(self) -> str:
        """``21 % of its samples take 5 times as long (3 % of the baseline's)``; empty if none do."""
        sides = list(zip(*(block.slow for block in self.blocks), strict=True))
        counts = [sum(one.number for one in side) for side in sides]
        samples = sum(block.samples for block in self.blocks)
        if not samples or not counts[1]:
            return ""
        longer = sum(one.times for one in sides[1]) / counts[1]
        shares = [f"{count / samples:.0%}".replace("%", " %") for count in counts]
        return f"{shares[1]} of its samples take {longer:.2g} times as long as most ({shares[0]} of the baseline's)"

    @property
    def long(self) -> bool:
        """True if its blocks are of single launches."""
        return any(block.times_ns for block in self.blocks)


def pair(
    device: Device,
    timer: Timer,
    launch: Launch,
    baseline: KernelBinary,
    policy: Policy,
    *,
    seed: int,
    candidate: KernelBinary | None = None,
    configuration: Configuration | None = None,
    arguments: RecordedArguments | None = None,
    reset: Callable[[], Any] | None = None,
    cache: CacheMode = "cold",
    pair_slot: PairSlot = "short",
    duration_ns: float | None = None,
    baseline_ns: float | None = None,
    budget_s: float = 5.0,
    clock: Clock = time.perf_counter,
) -> Pairing:
    """Take blocks of ``baseline`` against ``candidate`` until ``policy`` decides or ``budget_s`` seconds are over.

    Where all blocks agree when the time is over, they go on until they decide: a kernel sixteen times as slow should
    not stay undecided because it takes longer.  What is undecided and leans to slower has four times as long.
    Sustained slots end with their budget.

    ``launch`` gives grid, block, shared memory and arguments to both sides; ``candidate`` is its own machine code
    unless another is given.  ``configuration`` is the baseline's grid, block and shared memory, and ``arguments`` are
    its arguments, where they are not the launch's.  Both must take the parameters, which the caller has checked.  With
    ``reset``, which restores the caller's buffers, these stay where they are.  With ``pair_slot="sustained"`` slots
    last two seconds and more, unless one side is far slower.  ``duration_ns`` and ``baseline_ns`` are about what the
    two take: if one of them is a millisecond or more, blocks are of single launches (``long_blocks``), with no pilot.
    Afterwards the caller's buffers hold what the candidate writes.  The caller holds the GPU's lock.  Raises
    ``LoadError`` for a cubin that the device refuses, ``GpuFault`` if the baseline breaks the use of the GPU, and what
    the timer raises.
    """
    start = clock()
    binaries = baseline, candidate or launch.binary
    buffers, unmoved = MovingBuffers.of(device, launch) if reset is None else (None, "")
    coin = random.Random(f"load order {seed}")
    exchange = _Exchange(device, launch, binaries, configuration, arguments, buffers, coin)
    sides = Workload(exchange.run_baseline, reset, cache), Workload(exchange.run_candidate, reset, cache)
    taking = PairTaking(device, timer, *sides, exchange, seed, clock)
    longest_ns = max(duration_ns or 0.0, baseline_ns or 0.0)
    if longest_ns < LONG_NS:  # of a long one each launch counts, and each is waited for: the last one is at fault
        exchange.try_baseline(reset)
    piloted = taking.pilot_of_sustained(duration_ns or 1.0) if pair_slot == "sustained" else None
    slots = piloted[0] if piloted is not None else None
    if piloted is not None:
        taken = taking.sustained(*piloted)
    elif longest_ns >= LONG_NS:
        taken = taking.single_launches(longest_ns)
    else:
        taken = taking.short(policy, duration_ns or 1.0, budget_s)
    paired, blocks = until_decided(taken, policy, start + budget_s, clock, "leaning" if slots is None else "none")
    exchange.leave(reset)
    aside = TOO_FAR_APART if pair_slot == "sustained" and slots is None else ""
    return Pairing(paired, tuple(blocks), seed, taking.size, taking.noise, clock() - start, slots, aside, unmoved)


class Exchange(Protocol):
    """How both sides are loaded and placed anew between blocks."""

    @property
    def reload(self) -> Callable[[], None] | None: ...
    @property
    def moving(self) -> Callable[[int], None] | None: ...


@dataclasses.dataclass
class PairTaking:
    """The ways of taking blocks of two sides, and what each found out beforehand."""

    device: Device
    timer: Timer
    baseline: Workload
    candidate: Workload
    exchange: Exchange
    seed: int
    clock: Clock
    size: int = LAUNCHES
    noise: Noise | None = None

    def short(self, policy: Policy, duration_ns: float, budget_s: float) -> Iterator[Block]:
        samples, most = affordable(duration_ns, budget_s)
        noise = pilot(self.timer, self.baseline, self.candidate, samples)
        return self._slots(noise, min(block_size(noise, (policy.epsilon - policy.delta) / 2), most))

    def pilot_of_sustained(self, duration_ns: float) -> tuple[SustainedSlots, Noise] | None:
        """None if the two differ by so much that sustained slots are not needed."""
        return sustained_pilot(
            self.device, self.timer, self.baseline, self.candidate, duration_ns=duration_ns, clock=self.clock
        )

    def sustained(self, slots: SustainedSlots, noise: Noise) -> Iterator[Block]:
        return self._slots(noise, slots.size, slots.settling)

    def single_launches(self, duration_ns: float) -> Iterator[Block]:
        return long_blocks(
            self.device, self.timer, self.baseline, self.candidate, seed=self.seed, duration_ns=duration_ns,
            reload=self.exchange.reload, reallocate=self.exchange.moving, clock=self.clock,
        )  # fmt: skip

    def _slots(self, noise: Noise, size: int, settling: int | None = None) -> Iterator[Block]:
        self.noise, self.size = noise, size
        return paired_blocks(
            self.device, self.timer, self.baseline, self.candidate, seed=self.seed, size=size, noise=noise,
            settling=settling, reload=self.exchange.reload, reallocate=self.exchange.moving, clock=self.clock,
        )  # fmt: skip


@dataclasses.dataclass(eq=False)
class _Exchange:
    """Both sides as they are loaded and placed at the moment."""

    device: Device
    launch: Launch
    binaries: tuple[KernelBinary, KernelBinary]
    configuration: Configuration | None
    """Of the baseline, if it has one of its own."""
    arguments: RecordedArguments | None
    """Of the baseline, if it has its own."""
    buffers: MovingBuffers | None
    """None if those of the launch stay where they are."""
    coin: random.Random
    """Draws which of the two is loaded first."""

    def __post_init__(self) -> None:
        self.reload()
        self._place()

    def _place(self) -> None:
        """The baseline's own arguments are on the arrays where they lie now."""
        self._values = self.arguments.values(self.launch) if self.arguments is not None else None

    def reload(self) -> None:
        """Load both anew, the one or the other first."""
        loaded = {side: self.device.load(self.binaries[side]) for side in self.coin.choice(LOAD_ORDERS)}
        for side, kernel in loaded.items():
            self.launch.kernel.variables.fill(kernel, self.binaries[side])
        self._baseline, self._candidate = loaded[0], loaded[1]

    @property
    def moving(self) -> Callable[[int], None] | None:
        return self.move if self.buffers is not None else None

    def move(self, pad_bytes: int) -> None:
        """Give both sides the same buffers at other addresses."""
        if self.buffers is not None:
            self.launch = self.buffers.moved(pad_bytes)
            self._place()

    def try_baseline(self, reset: Callable[[], Any] | None) -> None:
        """Let the baseline run once by itself: the candidate has, so what breaks here is not its doing."""
        if reset is not None:
            reset()
        self.run_baseline()
        fault = self.device.fault()
        if fault:
            raise GpuFault(f"the baseline's machine code faults on what the candidate runs on: {fault}")

    def leave(self, reset: Callable[[], Any] | None) -> None:
        """Let what the candidate writes be the last that was written to buffers of the caller's own."""
        if self.buffers is None:
            if reset is not None:
                reset()
            self.run_candidate()
            self.device.synchronize()

    def run_baseline(self) -> None:
        self.launch.run_with(self._baseline, self.configuration, self._values, whose=OF_BASELINE)

    def run_candidate(self) -> None:
        self.launch.run_with(self._candidate)
