"""A workload and the same workload of another revision in its own process: paired blocks until the judge has enough.

The blocks are those of ``blocks`` and ``long_blocks``: the coin, what is discarded and the proof are the same.  What a
coin cannot randomise is the process itself (see docs/explanation/statistics.md, "Paired processes"): so a second pair
of fresh processes has to confirm what is slower, and work of a few microseconds has a tolerance of its own.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.timing.long_blocks import LONG_NS
from pytest_gpuperf.timing.paired_run import Pairing, PairTaking
from pytest_gpuperf.timing.rounds import Clock, Workload
from pytest_gpuperf.timing.turns import Done, Link, MemoryPad, TakePad, TurnTimer, asked_for, run_there
from pytest_gpuperf.timing.until_decided import until_decided

SHORT_NS = 10_000.0
PROCESS_NS = 500.0
"""Below ``SHORT_NS`` two processes that run the same differ by up to about so much: measured on H200s with an addition
of 4.8 us (between -2.8 and +2.4 %) and with three kernels of 7 us together (6.3 %)."""


def zone_of(delta: float, epsilon: float, duration_ns: float) -> tuple[float, float]:
    """The indifference zone of a pair of processes: that asked for, but for work of a few microseconds."""
    least = round(PROCESS_NS / max(duration_ns, PROCESS_NS), 3) if duration_ns < SHORT_NS else 0.0
    return (delta, epsilon) if delta >= least else (least, max(epsilon, 2 * least))


@dataclasses.dataclass
class _BothPlaces:
    """Other addresses for both sides before each block, behind pads of their own."""

    link: Link
    here: MemoryPad
    coin: random.Random
    patience_s: float
    reload: Callable[[], None] | None = None
    """Code stays where each process has it."""

    @property
    def moving(self) -> Callable[[int], None]:
        return self.move

    def move(self, pad_bytes: int) -> None:
        """``pad_bytes`` here, and as many as a coin says there."""
        self.here.move(pad_bytes)
        asked_for(self.link, TakePad(pad_bytes=512 * (1 + self.coin.randrange(4096))), Done, self.patience_s)


def pair_processes(
    device: Device,
    timer: Timer,
    link: Link,
    run: Callable[[], Any],
    policy: Policy,
    *,
    seed: int,
    reset: Callable[[], Any] | None,
    cache: CacheMode,
    duration_ns: float,
    budget_s: float,
    clock: Clock = time.perf_counter,
) -> Pairing:
    """Blocks of the workload of the other process, which waits for its turns, against ``run``.

    ``duration_ns`` is about what ``run`` takes.  What is undecided after ``budget_s`` has four times as long: to bring
    the two together took longer than that.  The caller holds the GPU's lock.  Raises ``OtherSideLost`` and what the
    timer raises.
    """
    start = clock()
    patience_s = 60.0 + 10 * budget_s
    turns = TurnTimer(timer, link, patience_s)
    both = _BothPlaces(link, MemoryPad(device), random.Random(f"places {seed}"), patience_s)
    there = Workload(run_there, None, cache)  # which restores its inputs itself
    taking = PairTaking(device, turns, there, Workload(run, reset, cache), both, seed, clock)
    if duration_ns >= LONG_NS:
        taken = taking.single_launches(duration_ns)
    else:
        taken = taking.short(policy, duration_ns, budget_s)
    paired, blocks = until_decided(taken, policy, start + budget_s, clock, "undecided")
    if turns.turns:
        aside = f"paired by processes: {turns.turns} turns of {1e3 * turns.turn_s / turns.turns:.2g} ms"
    return Pairing(
        paired, tuple(blocks), seed, taking.size, taking.noise, clock() - start, aside=aside if turns.turns else ""
    )
