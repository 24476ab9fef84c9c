"""Do the timers tell the true device time?  Each timer on kernels of known length, on this machine's GPU.

    python benchmarks/device_time.py > docs/results/device_time.md

FMA loops of 2.5 us to 1 ms are sized by another instrument: each block notes ``%globaltimer`` when it starts and ends.
Printed are median and spread per kernel and timer, and each timer's tick and overhead.  Exit status 1 if CUPTI is off
the in-kernel clock by more than 1 % and a tick, or a graph off CUPTI by more than 1.5 %, 8 % below 9 us.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.device.discovery import open_device
from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers import open_timer

SAMPLES, PASSES = 60, 3
LOOPS_US = (2.5, 10.0, 100.0, 1000.0)
CUPTI_BOUND, GRAPH_BOUND, SHORT_BOUND, SHORT_NS = 0.01, 0.015, 0.08, 9000.0
"""Deviations of CUPTI from the clock, of graphs from CUPTI, and of those below so many nanoseconds."""
SOURCE = """
__device__ unsigned long long now(float& after) {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t), "+f"(after) : : "memory");
    return t;
}
extern "C" __global__ void loop(float* out, long long n, unsigned long long* stamps) {
    float a = threadIdx.x;
    unsigned long long start = now(a), end;
    for (long long i = 0; i < n; ++i) a = fmaf(a, 0.999f, 0.5f);
    end = now(a);
    if (a == -1.0f) out[0] = a;
    if (stamps && threadIdx.x == 0) { atomicMin(stamps, start); atomicMax(stamps + 1, end); }
}
"""


class Reading(NamedTuple):
    """Readings of a kernel by a timer."""

    kernel: str
    timer: str
    cache: str
    median_ns: float
    spread: float  # middle half of the samples as a share of the median
    clock_ns: float  # length by the in-kernel clock, with what CUPTI reads beyond it of a loop of no iterations


class Loops:
    """Loops of known length, and the clock inside them."""

    def __init__(self, device: Any) -> None:
        import cupy

        self._cupy, self._device, self._out = cupy, device, cupy.zeros(1, cupy.float32)
        self._loop = cupy.RawModule(code=SOURCE).get_function("loop")

    def run(self, iterations: int, stamps: Any = None) -> None:
        given = self._out, self._cupy.int64(iterations), self._cupy.uint64(0) if stamps is None else stamps
        self._loop((self._device.facts.sm_count,), (128,), given)

    def span_ns(self, iterations: int) -> float:
        """Median over launches of the time from the first block's start to the last one's end."""
        stamps = self._cupy.zeros((SAMPLES + 1, 2), self._cupy.uint64)
        stamps[:, 0] = np.uint64(2**63)
        for row in stamps:
            self.run(iterations, row)
        self._device.synchronize()
        first, last = self._cupy.asnumpy(stamps)[1:].astype(np.int64).T
        return float(np.median(last - first))

    def iterations(self, span_ns: float) -> int:
        """Loop iterations that last ``span_ns``; from long loops, whose length the clock's tick does not blur."""
        short_ns, long_ns = self.span_ns(20_000), self.span_ns(120_000)
        return 20_000 + round((span_ns - short_ns) / (long_ns - short_ns) * 100_000)


def read(timer: Timer, kernel: str, run: Callable[[], None], cache: Any, clock_ns: float = 0.0) -> Reading:
    """The readings of several passes as one."""
    times = np.concatenate([timer.measure([Slot(run, SAMPLES)], cache)[0] for _ in range(PASSES)])
    low, median, high = np.quantile(times, [0.25, 0.5, 0.75])
    return Reading(kernel, timer.name, cache, float(median), float((high - low) / median), clock_ns)


def kernels(device: Any, cupti: Timer) -> list[tuple[str, Callable[[], None], float]]:
    """Each with its length by the in-kernel clock."""
    loops = Loops(device)
    prologue_ns = read(cupti, "", lambda: loops.run(0), "warm").median_ns - loops.span_ns(0)
    counts = {f"{us:g} us": loops.iterations(us * 1000 - prologue_ns) for us in LOOPS_US}
    return [(name, lambda n=n: loops.run(n), loops.span_ns(n) + prologue_ns) for name, n in counts.items()]


def failures(readings: Sequence[Reading], tick_ns: float) -> list[str]:
    """Every broken bound, as a sentence; ``tick_ns`` is CUPTI's."""
    truth = {(one.kernel, one.cache): one for one in readings if one.timer == "cupti"}
    found = []
    for one in readings:
        cupti = truth[one.kernel, one.cache]
        name, off = f"{one.kernel}, {one.cache}", one.median_ns / cupti.median_ns - 1
        allowed_ns = max(CUPTI_BOUND * one.clock_ns, tick_ns)
        if one is cupti and one.cache == "warm" and abs(one.median_ns - one.clock_ns) > allowed_ns:
            found.append(f"{name}: CUPTI {one.median_ns:.0f} ns, in-kernel clock {one.clock_ns:.0f} ns")
        if abs(off) > (GRAPH_BOUND if cupti.median_ns >= SHORT_NS else SHORT_BOUND):
            found.append(f"{name}: graph {one.median_ns:.0f} ns is {off:+.1%} off CUPTI's {cupti.median_ns:.0f} ns")
    return found


def main() -> int:
    device: Any = open_device()
    timers = open_timer(device, "cupti"), open_timer(device, "graph")
    work = kernels(device, timers[0])
    cases = itertools.product(work, ("warm", "cold"), timers)
    readings = [read(timer, name, run, cache, clock_ns) for (name, run, clock_ns), cache, timer in cases]
    print(f"# Device time on {device.facts.name}, driver {device.facts.driver}\n")
    print(*(f"* {one.name}: tick {one.tick_ns:.1f} ns, overhead {one.overhead_ns:.0f} ns" for one in timers), sep="\n")
    broken = failures(readings, timers[0].tick_ns)
    print("", "| kernel | timer | L2 | median ns | spread | in-kernel clock ns |", "|---" * 6 + "|", sep="\n")
    for a, b, c, ns, spread, clock in readings:
        print(f"| {a} | {b} | {c} | {ns:.1f} | {spread:.2%} | {clock:.0f} |")
    print("", *(f"* BROKEN: {text}" for text in broken or ["nothing"]), sep="\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
