"""The host time of a workload next to fixed work.

The workload and fixed work of the plugin's own are exchanged several times, so that another clock and a busy machine
move both.  What the GPU does meanwhile is not timed: it is waited for between two slots.
"""

from __future__ import annotations

import contextlib
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_gpuperf.garbage import no_collection
from pytest_gpuperf.model.time_record import HostTime

MOST_CALLS, LEAST_CALLS = 64, 4
"""Calls of a workload in one slot."""
SLOT_NS = 20e6
"""Device time that the calls of one slot may enqueue, so that none waits for room in the queue, and time of the host
that they may take."""
EXCHANGES = 16
PIECES = 12
REFERENCE = 2
"""Which fixed work it is: ratios to another are other figures."""


def host_time(
    run: Callable[[], Any], reset: Callable[[], Any] | None, wait: Callable[[], None], duration_ns: float, *,
    driver: str, budget_s: float,
) -> HostTime:  # fmt: skip
    """Host time of ``run``, which takes ``duration_ns`` on the GPU: medians over exchanges with the fixed work.

    Takes no more exchanges once ``budget_s`` seconds are over.
    """
    calls = calls_of(duration_ns)
    cost_of(run, reset, wait, calls)  # once to warm up
    _fixed_cost()
    end, ratios, times = time.perf_counter_ns() + budget_s * 1e9, list[float](), list[float]()
    while not times or (len(times) < EXCHANGES and time.perf_counter_ns() < end):
        first, fixed, again = cost_of(run, reset, wait, calls), _fixed_cost(), _fixed_cost()
        times.append(statistics.fmean((first, cost_of(run, reset, wait, calls))))
        ratios.append(times[-1] / statistics.fmean((fixed, again)))
    made_by = f"{platform.python_implementation()} {platform.python_version()}, reference {REFERENCE}, driver {driver}"
    return HostTime((statistics.median(ratios),), statistics.median(times), cpu_model(), made_by)


def calls_of(duration_ns: float) -> int:
    """How many calls a slot has of a workload that takes so long on the GPU."""
    return max(LEAST_CALLS, min(MOST_CALLS, int(SLOT_NS / max(duration_ns, 1.0))))


def cost_of(run: Callable[[], Any], reset: Callable[[], Any] | None, wait: Callable[[], None], calls: int) -> float:
    """From the call of ``run`` to its return, in nanoseconds: the median of ``calls`` at most.

    The GPU is idle before the first.
    """
    wait()
    with no_collection():
        took: list[int] = []
        while len(took) < calls and (len(took) < LEAST_CALLS or sum(took) < SLOT_NS):
            took.append(_called(run, reset))
    wait()
    return statistics.median(took)


def _called(run: Callable[[], Any], reset: Callable[[], Any] | None = None) -> int:
    if reset is not None:
        reset()
    before = time.perf_counter_ns()
    run()
    return max(time.perf_counter_ns() - before, 1)


class _FixedWorkPiece:
    """An object that the fixed work makes and calls."""

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


def _fixed_cost() -> float:
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
