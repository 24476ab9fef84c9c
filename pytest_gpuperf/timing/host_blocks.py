"""Times of the CPU beside fixed work: blocks of what a workload costs the host.

A block takes the workload and fixed work of the plugin's own in an order drawn by a coin, and gives the log of the
ratio of their times.  What the GPU does meanwhile is not timed: it is waited for between two slots.
"""

from __future__ import annotations

import contextlib
import math
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_gpuperf.garbage import no_collection

Cost = Callable[[], float]
"""Does it, and returns what it took in nanoseconds."""

MOST_CALLS, LEAST_CALLS = 64, 4
"""Of a workload in one slot."""
SLOT_NS = 20e6
"""Device time that the calls of one slot may enqueue, so that none waits for room in the queue, and time of the host
that they may take."""
PIECES = 12
REFERENCE = 2
"""Which fixed work it is: ratios to another are other figures."""


class HostBlock(NamedTuple):
    """One exchange of a workload and the fixed work."""

    r: float
    """Log of the ratio of the two."""
    time_ns: float
    """Of the workload."""


def blocks_beside(work: Cost, fixed: Cost, seed: int) -> Iterator[HostBlock]:
    """Blocks without end, after one of each to warm up; each side has two slots of a block (ABBA)."""
    coin = random.Random(seed)
    work()
    fixed()
    while True:
        order = (work, fixed) if coin.random() < 0.5 else (fixed, work)
        took = [(slot is work, slot()) for slot in (*order, *order[::-1])]
        mine, other = (statistics.fmean(ns for is_work, ns in took if is_work is side) for side in (True, False))
        yield HostBlock(math.log(mine / other), mine)


def calls_of(duration_ns: float) -> int:
    """How many calls a slot has of a workload that takes so long on the GPU."""
    return max(LEAST_CALLS, min(MOST_CALLS, int(SLOT_NS / max(duration_ns, 1.0))))


def host_cost(run: Callable[[], Any], reset: Callable[[], Any] | None, wait: Callable[[], None], calls: int) -> Cost:
    """From the call of ``run`` to its return: the median of ``calls`` at most.  The GPU is idle before the first."""

    def cost() -> float:
        wait()
        with no_collection():
            took: list[int] = []
            while len(took) < calls and (len(took) < LEAST_CALLS or sum(took) < SLOT_NS):
                took.append(_called(run, reset))
        wait()
        return statistics.median(took)

    return cost


def _called(run: Callable[[], Any], reset: Callable[[], Any] | None = None) -> int:
    if reset is not None:
        reset()
    before = time.perf_counter_ns()
    run()
    return max(time.perf_counter_ns() - before, 1)


class _FixedWorkPiece:
    """What the fixed work makes and calls."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name

    def both(self) -> tuple[int, str]:
        return self.number, self.name


def interpreter_work() -> None:
    """The fixed work: objects, their methods, names and tuples, as launching takes.

    The interpreter's own alone: where the loader puts a second library, such as that of ``struct``, decides in one
    process of 50 whether both together are 14 % slower for life.
    """
    found: dict[str, tuple[int, str]] = {}
    for number in range(PIECES):
        one = _FixedWorkPiece(number, str(number))
        found[one.name] = one.both()
        _ = tuple(found)


def interpreter_cost() -> float:
    """What the fixed work takes: the median of as many calls as a workload has at most."""
    with no_collection():
        return statistics.median(_called(interpreter_work) for _ in range(MOST_CALLS))


def cpu_model() -> str:
    """As Linux names it; else the architecture."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return " ".join(value.split())[:100]
    return platform.machine()


def interpreter(driver: str) -> str:
    """What a host time depends on beside the CPU: ``CPython 3.12.3, reference 2, driver 580.95.05``."""
    return f"{platform.python_implementation()} {platform.python_version()}, reference {REFERENCE}, driver {driver}"
