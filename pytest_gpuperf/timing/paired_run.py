"""Two cubins, one launch: paired blocks on the device until the judge has seen enough.

Both are loaded into modules of their own and run on the same stream and the same buffers, each in its own grid, block
and shared memory; before each block the buffers move, before every eighth the modules are loaded anew.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.launch import Configuration, Launch
from pytest_gpuperf.device.recorded_arguments import RecordedArguments
from pytest_gpuperf.judge.block_decision import Paired, judge_blocks
from pytest_gpuperf.judge.eprocess import unanimous_blocks
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.model.evidence import CacheMode, KernelBinary
from pytest_gpuperf.model.verdict import PairSlot
from pytest_gpuperf.timing.blocks import Block, Noise, affordable, block_size, paired_blocks, pilot
from pytest_gpuperf.timing.moving_buffers import MovingBuffers
from pytest_gpuperf.timing.rounds import Clock, Workload
from pytest_gpuperf.timing.sustained import GROSS, SustainedSlots, sustained_pilot

CLEAR_CASE_S = 3.0
"""Seconds beyond the budget for a case that is clear: its blocks all vote alike, and there are too few of them."""


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
    noise: Noise
    """Noise in the pilot that set the size."""
    seconds: float
    """Wall-clock time, loading and pilot included."""
    sustained: SustainedSlots | None = None
    """Length of its slots; None if they were short."""
    aside: str = ""
    """Reason why they were short where sustained ones were asked for."""

    @property
    def remarks(self) -> tuple[str, ...]:
        reasons = [block.reason for block in self.blocks if block.discarded]
        each = ", ".join(dict.fromkeys(reasons))
        discarded = f"{len(reasons)} of {len(self.blocks)} blocks were discarded: {each}" if reasons else ""
        slots = self.sustained.remarks if self.sustained else (self.aside,)
        return tuple(remark for remark in (*slots, discarded) if remark)

    @property
    def r(self) -> tuple[float, ...]:
        """Log ratios candidate over baseline of the blocks that count."""
        return tuple(block.r for block in self.blocks if not block.discarded)


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
    budget_s: float = 5.0,
    clock: Clock = time.perf_counter,
) -> Pairing:
    """Take blocks of ``baseline`` against ``candidate`` until ``policy`` decides or ``budget_s`` seconds are over.

    Where all blocks vote alike when the time is over, they go on for up to ``CLEAR_CASE_S`` more: a kernel sixteen
    times as slow should not stay undecided because a tenth of a second was lacking.

    ``launch`` gives grid, block, shared memory and arguments to both sides; ``candidate`` is its own machine code
    unless another is given.  ``configuration`` is the baseline's grid, block and shared memory, and ``arguments`` are
    its arguments, where they are not the launch's.  Both must take the parameters, which the caller has checked.  With
    ``reset``, which restores the caller's buffers, these stay where they are.  With ``pair_slot="sustained"`` slots
    last two seconds and more, unless one side is far slower.  ``duration_ns``, about what the launch takes, lets long
    ones make do with fewer samples.  Afterwards the caller's buffers hold what the candidate writes.  The caller holds
    the GPU's lock.  Raises ``LoadError`` for a cubin that the device refuses, and what the timer raises.
    """
    start = clock()
    binaries = baseline, candidate or launch.binary
    buffers = MovingBuffers.of(device, launch) if reset is None else None
    exchange = _Exchange(device, launch, binaries, configuration, arguments, buffers)
    sides = Workload(exchange.run_baseline, reset, cache), Workload(exchange.run_candidate, reset, cache)
    slots, aside = None, ""
    if pair_slot == "sustained":
        piloted = sustained_pilot(device, timer, *sides, duration_ns=duration_ns or 1.0, clock=clock)
        if piloted is None:
            aside = f"its slots were short: the two differ by more than {GROSS - 1:.0%}, which needs no sustained ones"
        else:
            slots, noise = piloted
            size = slots.size
    if slots is None:
        samples, most = affordable(duration_ns or 1.0, budget_s)
        noise = pilot(timer, *sides, samples)
        size = min(block_size(noise, (policy.epsilon - policy.delta) / 2), most)
    taken = paired_blocks(
        device, timer, *sides, seed=seed, size=size, noise=noise, settling=slots.settling if slots else None,
        reload=exchange.reload, reallocate=exchange.move if buffers is not None else None, clock=clock,
        budget_s=budget_s - (clock() - start) + CLEAR_CASE_S,
    )  # fmt: skip
    paired, blocks = _until_decided(taken, policy, start + budget_s, clock)
    exchange.leave(reset)
    return Pairing(paired, tuple(blocks), seed, size, noise, clock() - start, slots, aside)


def _until_decided(taken: Iterable[Block], policy: Policy, ends: float, clock: Clock) -> tuple[Paired, list[Block]]:
    """Take blocks until they decide, or until ``ends`` by the clock unless the case is clear."""
    blocks: list[Block] = []
    r: list[float] = []
    paired = judge_blocks(r, policy)
    began = clock()
    for block in taken:
        blocks.append(block)
        if not block.discarded:
            r.append(block.r)
            paired = judge_blocks(r, policy)
        if paired.decision is not Decision.CONTINUE:
            return paired, blocks
        now = clock()
        each, left = (now - began) / len(blocks), ends - now
        if each > left and not _clear(r, policy, blocks_left=(left + CLEAR_CASE_S) / each):
            break
    return judge_blocks(r, policy, stopped=True), blocks


def _clear(r: Sequence[float], policy: Policy, blocks_left: float) -> bool:
    """True if all blocks so far say slower, or all say not slower, and so many more of them would settle it."""
    if not r:
        return False
    slower = min(r) > math.log1p(policy.delta)
    if not slower and max(r) >= math.log1p(policy.epsilon):
        return False
    return 0 < unanimous_blocks(policy.alpha if slower else policy.beta, policy.blocks_max) - len(r) <= blocks_left


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

    def __post_init__(self) -> None:
        self.reload()
        self._place()

    def _place(self) -> None:
        """The baseline's own arguments are on the arrays where they lie now."""
        self._values = self.arguments.values(self.launch) if self.arguments is not None else None

    def reload(self) -> None:
        self._baseline, self._candidate = (self.device.load(binary) for binary in self.binaries)

    def move(self, pad_bytes: int) -> None:
        """Give both sides the same buffers at other addresses."""
        if self.buffers is not None:
            self.launch = self.buffers.moved(pad_bytes)
            self._place()

    def leave(self, reset: Callable[[], Any] | None) -> None:
        """Let what the candidate writes be the last that was written to buffers of the caller's own."""
        if self.buffers is None:
            if reset is not None:
                reset()
            self.run_candidate()
            self.device.synchronize()

    def run_baseline(self) -> None:
        self.launch.run_with(self._baseline, self.configuration, self._values)

    def run_candidate(self) -> None:
        self.launch.run_with(self._candidate)
