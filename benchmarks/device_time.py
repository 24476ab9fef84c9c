"""Do the timers tell the true device time?  Each timer on kernels of known length, on this machine's GPU.

    python benchmarks/device_time.py [--output FILE]

FMA loops of 2.5 us, 10 us, 100 us and 1 ms, sized by another instrument (each block notes ``%globaltimer`` when it
starts and ends), a callable of five launches, and a copy of 256 MB.  Prints per kernel and timer the median and the
spread, warm and cold, and per timer its tick, its overhead and the wall-clock time of a paired block.  It uses nothing
but ``open_timer``, ``Slot`` and ``open_device``, so one copy of it compares two installed versions of the package:
call it with each version's interpreter, in turns.  Exit status 1 if a bound is broken, 2 without CUPTI:

* CUPTI: within 1 % (or one tick) of the in-kernel clock;
* graphs: within 8 % of CUPTI from 2 us, 1 % from 10 us (1.5 % cold).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers import TimerUnavailable, open_timer

SAMPLES = 60
PASSES = 3
LOOPS_US = (2.5, 10.0, 100.0, 1000.0)
CUPTI_BOUND = 0.01
GRAPH_BOUNDS = ((10_000.0, {"warm": 0.01, "cold": 0.015}), (2000.0, {"warm": 0.08, "cold": 0.08}))
"""From so many nanoseconds on, a deviation from CUPTI of no more than this."""

SOURCE = """
__device__ unsigned long long now(float& after) {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t), "+f"(after) : : "memory");
    return t;
}
extern "C" __global__ void loop(float* out, long long n, unsigned long long* stamps) {
    float a = threadIdx.x;
    unsigned long long start = now(a);
    for (long long i = 0; i < n; ++i) a = fmaf(a, 0.999f, 0.5f);
    unsigned long long end = now(a);
    if (a == -1.0f) out[0] = a;
    if (stamps && threadIdx.x == 0) { atomicMin(stamps, start); atomicMax(stamps + 1, end); }
}
"""


class Reading(NamedTuple):
    """Nanoseconds that a timer reads of a kernel."""

    kernel: str
    timer: str
    cache: str
    median_ns: float
    spread: float
    """Middle half of the samples as a share of the median."""
    clock_ns: float | None = None
    """Length by the in-kernel clock, with what CUPTI reads beyond it of a loop of no iterations."""


class Loops:
    """Loops of known length, and the clock inside them."""

    def __init__(self, device: Any) -> None:
        import cupy

        self._cupy, self._device = cupy, device
        self._loop = cupy.RawModule(code=SOURCE).get_function("loop")
        self._out = cupy.zeros(1, cupy.float32)

    def run(self, iterations: int, stamps: Any = None) -> None:
        where = self._cupy.uint64(0) if stamps is None else stamps
        self._loop((self._device.facts.sm_count,), (128,), (self._out, self._cupy.int64(iterations), where))

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
        some, more = 20_000, 120_000
        short_ns, long_ns = self.span_ns(some), self.span_ns(more)
        return some + round((span_ns - short_ns) / (long_ns - short_ns) * (more - some))


def read(timer: Timer, kernel: str, run: Callable[[], None], cache: Any, clock_ns: float | None) -> Reading:
    """The readings of several passes as one."""
    times = np.concatenate([timer.measure([Slot(run, SAMPLES)], cache)[0] for _ in range(PASSES)])
    low, median, high = np.quantile(times, [0.25, 0.5, 0.75])
    return Reading(kernel, timer.name, cache, float(median), float((high - low) / median), clock_ns)


def kernels(device: Any, cupti: Timer) -> list[tuple[str, Callable[[], None], float | None]]:
    """Each with its length by the in-kernel clock, if it has one."""
    loops = Loops(device)
    prologue_ns = read(cupti, "", lambda: loops.run(0), "warm", None).median_ns - loops.span_ns(0)
    found: list[tuple[str, Callable[[], None], float | None]] = []
    for us in LOOPS_US:
        count = loops.iterations(us * 1000 - prologue_ns)
        found.append((f"loop {us:g} us", lambda count=count: loops.run(count), loops.span_ns(count) + prologue_ns))
    five = loops.iterations(10_000 - prologue_ns)
    found.append(("five loops of 10 us", lambda: [loops.run(five) for _ in range(5)] and None, None))
    data = device.arrays.zeros(1 << 26)
    copy = device.arrays.empty_like(data)
    found.append(("copy 256 MB", lambda: copy.data.copy_from_device_async(data.data, data.nbytes, device.stream), None))
    return found


def failures(readings: Sequence[Reading], tick_ns: float) -> list[str]:
    """Every broken bound, as a sentence; ``tick_ns`` is CUPTI's."""
    truth = {(one.kernel, one.cache): one for one in readings if one.timer == "cupti"}
    found = []
    for one in readings:
        cupti = truth[one.kernel, one.cache]
        name = f"{one.kernel}, {one.cache}"
        if one is cupti and one.cache == "warm" and one.clock_ns is not None:
            if abs(one.median_ns - one.clock_ns) > max(CUPTI_BOUND * one.clock_ns, tick_ns):
                found.append(f"{name}: CUPTI {one.median_ns:.0f} ns, in-kernel clock {one.clock_ns:.0f} ns")
        off = one.median_ns / cupti.median_ns - 1
        bound = next((bounds[one.cache] for least, bounds in GRAPH_BOUNDS if cupti.median_ns >= least), None)
        if bound is not None and abs(off) > bound:
            found.append(f"{name}: graph {one.median_ns:.0f} ns is {off:+.1%} off CUPTI's {cupti.median_ns:.0f} ns")
    return found
