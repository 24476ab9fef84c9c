"""Do the timers tell the true device time?  Each timer on kernels of known length, on this machine's GPU.

    python benchmarks/device_time.py [--output FILE]

Reads the empty kernel, FMA loops of 2.5 us to 1.1 ms and two copies by CUPTI, by graphs and by event pairs (as
the timer corrects them, and raw), and compares them with a table measured on an H200.  CUPTI itself is checked
by another instrument: each block notes ``%globaltimer`` when it starts and ends, and the loops are sized by
that clock, not by CUPTI.  Exit status 1 if a bound is broken:

* CUPTI: 1 % (or one tick) of the in-kernel clock, and of the table for the loops on an H200;
* graphs: 8 % of CUPTI from 2 us, 1 % from 10 us.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers import TimerUnavailable, open_timer
from pytest_gpuperf.device.timers.queued import QueuedPairs, typical_reading
from pytest_gpuperf.device.timers.stream import CudaStream
from pytest_gpuperf.model.timer_names import TIMERS
from pytest_gpuperf.timing.sample_stats import midmean

SAMPLES = 60
PASSES = 3
BATCH = 20
LOOPS_US = (2.53, 10.85, 101.63, 1124.5)
"""CUPTI's readings of the table's loops; ours are made as long by the in-kernel clock."""
TABLE_US = {"empty": 0.61, "copy 1 MB (L2)": 1.28, "copy 256 MB": 126.0}
TABLE_GPU = "nvidia-h200"
TICK_NS = 32.0
CUPTI_BOUND = 0.01
GRAPH_BOUNDS = ((10_000.0, 0.01), (2000.0, 0.08))
"""From so many nanoseconds on, a deviation from CUPTI of no more than this."""

SOURCE = """
__device__ unsigned long long now(float& after) {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t), "+f"(after) : : "memory");
    return t;
}
__device__ void note(unsigned long long* stamps, unsigned long long start, unsigned long long end) {
    atomicMin(stamps, start);
    atomicMax(stamps + 1, end);
}
extern "C" __global__ void loop(float* out, long long n, unsigned long long* stamps) {
    float a = threadIdx.x;
    unsigned long long start = now(a);
    for (long long i = 0; i < n; ++i) a = fmaf(a, 0.999f, 0.5f);
    unsigned long long end = now(a);
    if (a == -1.0f) out[0] = a;
    if (stamps && threadIdx.x == 0) note(stamps, start, end);
}
extern "C" __global__ void copy(const float4* in, float4* out, long long n, unsigned long long* stamps) {
    float mark = 0;
    unsigned long long start = now(mark);
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step) out[i] = in[i];
    __syncthreads();
    unsigned long long end = now(mark);
    if (stamps && threadIdx.x == 0) note(stamps, start, end);
}
"""


@dataclasses.dataclass
class Row:
    """One kernel and what each instrument reads for it, nanoseconds."""

    name: str
    run: Callable[[], None]
    span_ns: float | None = None
    """Last block's end minus first block's start; None if the kernel has no clock in it."""
    table_ns: float | None = None
    sized: bool = False
    """Made as long as the table's kernel, so that the table binds CUPTI."""
    warm: dict[str, float] = dataclasses.field(default_factory=dict)
    cold: dict[str, float] = dataclasses.field(default_factory=dict)


class Kernels:
    """The kernels under test, and the clock inside them."""

    def __init__(self, device: Any) -> None:
        import cupy

        self._cupy = cupy
        self._device = device
        module = cupy.RawModule(code=SOURCE)
        self._loop, self._copy = module.get_function("loop"), module.get_function("copy")
        self._blocks = device.facts.sm_count
        self._out = cupy.zeros(1, cupy.float32)
        self._off = cupy.uint64(0)

    def loop(self, iterations: int, stamps: Any = None) -> None:
        where = self._off if stamps is None else stamps
        self._loop((self._blocks,), (128,), (self._out, self._cupy.int64(iterations), where))

    def copier(self, megabytes: int) -> Callable[..., None]:
        count = megabytes * (1 << 20) // 16
        source = self._cupy.random.default_rng(1).random(count * 4, dtype=self._cupy.float32)
        target = self._cupy.empty_like(source)
        grid = min(count // 256, self._blocks * 8)

        def run(stamps: Any = None) -> None:
            where = self._off if stamps is None else stamps
            self._copy((grid,), (256,), (source, target, self._cupy.int64(count), where))

        return run

    def span(self, run: Callable[[Any], None], launches: int = SAMPLES) -> float:
        """Mid-mean over launches of the time from the first block's start to the last one's end."""
        stamps = self._cupy.zeros((launches + 1, 2), self._cupy.uint64)
        stamps[:, 0] = np.uint64(2**63)
        for row in stamps:
            run(row)
        self._device.synchronize()
        first, last = self._cupy.asnumpy(stamps)[1:].astype(np.int64).T
        return midmean((last - first).astype(np.float64))

    def iterations(self, span_ns: float) -> int:
        """Loop iterations that last ``span_ns`` by the in-kernel clock.

        From long loops, whose length the clock's tick does not blur: a short one would be off by up to a tick.
        """
        some, more = 20_000, 120_000
        short, long = (self.span(lambda row, count=count: self.loop(count, row)) for count in (some, more))
        slope = (long - short) / (more - some)
        return some + round((span_ns - short) / slope)


def read(timer: Timer, rows: Sequence[Row], cache: Any) -> dict[str, float]:
    """What ``timer`` reads for each row."""
    readings = {}
    for row in rows:
        (times,) = timer.measure([Slot(row.run, SAMPLES)], cache)
        readings[row.name] = midmean(np.asarray(times))
    return readings


def make_rows(kernels: Kernels, stream: CudaStream, cupti: Timer) -> tuple[list[Row], float]:
    """All kernels, and what CUPTI reads beyond the in-kernel clock (from a loop of no iterations)."""
    nothing = Row("loop of 0", lambda: kernels.loop(0))
    prologue = read(cupti, [nothing], "warm")["loop of 0"] - kernels.span(lambda row: kernels.loop(0, row))
    rows = [Row("empty", stream.empty)]
    for us in LOOPS_US:
        count = kernels.iterations(us * 1000 - prologue)
        span = kernels.span(lambda row, count=count: kernels.loop(count, row))
        run = lambda count=count: kernels.loop(count)  # noqa: E731
        rows.append(Row(f"compute, {us:g} us", run, span, us * 1000, sized=True))
    for name, megabytes in (("copy 1 MB (L2)", 1), ("copy 256 MB", 256)):
        copy = kernels.copier(megabytes)
        rows.append(Row(name, copy, kernels.span(copy)))
    for row in rows:
        row.table_ns = row.table_ns or TABLE_US[row.name] * 1000
    return rows, prologue


def failures(rows: Sequence[Row], prologue_ns: float, on_table_gpu: bool) -> list[str]:
    """Every broken bound, as a sentence."""
    found = []
    for row in rows:
        cupti, graph = row.warm["cupti"], row.warm["graph"]
        allowed = max(CUPTI_BOUND * cupti, TICK_NS)
        if row.span_ns is not None and row.sized and abs(cupti - row.span_ns - prologue_ns) > allowed:
            found.append(f"{row.name}: CUPTI {cupti:.0f} ns, in-kernel clock {row.span_ns + prologue_ns:.0f} ns")
        if on_table_gpu and row.sized and abs(cupti - (row.table_ns or 0)) > allowed:
            found.append(f"{row.name}: CUPTI {cupti:.0f} ns, table {row.table_ns:.0f} ns")
        bound = next((bound for least, bound in GRAPH_BOUNDS if cupti >= least), None)
        if bound is not None and abs(graph / cupti - 1) > bound:
            found.append(f"{row.name}: graph {graph:.0f} ns is {graph / cupti - 1:+.1%} off CUPTI's {cupti:.0f} ns")
    return found


def markdown(rows: Sequence[Row], heading: str) -> str:
    """Two tables, microseconds with the deviation from CUPTI: warm and cold."""
    lines = [heading, "", "Warm, microseconds per launch (deviation from CUPTI):", ""]
    lines += _table(rows, "warm", ("graph", "events", "raw pair", "raw batch"), reference=True)
    lines += ["", "Cold (L2 flushed before each launch):", ""]
    return "\n".join([*lines, *_table(rows, "cold", ("graph", "events"), reference=False), ""])


def _table(rows: Sequence[Row], mode: str, others: Sequence[str], *, reference: bool) -> list[str]:
    head = ["kernel", *(["table", "in-kernel clock"] if reference else []), "CUPTI", *others]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        readings: dict[str, float] = getattr(row, mode)
        cells = [row.name]
        if reference:
            cells += [f"{(row.table_ns or 0) / 1000:.2f}", "-" if row.span_ns is None else f"{row.span_ns / 1000:.2f}"]
        cells.append(f"{readings['cupti'] / 1000:.2f}")
        cells += [f"{readings[name] / 1000:.2f} ({readings[name] / readings['cupti'] - 1:+.1%})" for name in others]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def block_cost_ms(timer: Timer, run: Callable[[], None]) -> float:
    """Wall-clock time of a paired block: one call with four cold slots of five samples."""
    start = time.perf_counter()
    for _ in range(10):
        timer.measure([Slot(run, 5)] * 4, "cold")
    return (time.perf_counter() - start) * 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, compare; 0 if every bound holds, 1 if not, 2 without CUPTI."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="write the tables to this markdown file too")
    options = parser.parse_args(arguments)
    from pytest_gpuperf.device.discovery import open_device

    device: Any = open_device()
    try:
        timers = {name: open_timer(device, name) for name in TIMERS}
    except TimerUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    stream = CudaStream(device)
    rows, prologue = make_rows(Kernels(device), stream, timers["cupti"])
    measure_all(rows, timers, QueuedPairs(stream))
    report = markdown(rows, heading(device, timers, block_cost_ms(timers["cupti"], rows[2].run), prologue))
    broken = failures(rows, prologue, device.facts.slug == TABLE_GPU)
    report += "\n" + "\n".join(f"* BROKEN: {text}" for text in broken) + ("\n" if broken else "All bounds hold.\n")
    print(report)
    if options.output:
        options.output.write_text(report, encoding="utf-8")
    return 1 if broken else 0


def measure_all(rows: Sequence[Row], timers: dict[str, Timer], pairs: QueuedPairs) -> None:
    """Fill in every row's readings: the median of passes through all instruments, so that clocks favour none."""
    warm: dict[tuple[str, str], list[float]] = defaultdict(list)
    cold: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(PASSES):
        for row in rows:
            for name, timer in timers.items():
                warm[row.name, name].append(read(timer, [row], "warm")[row.name])
                cold[row.name, name].append(read(timer, [row], "cold")[row.name])
    for row in rows:
        for name in timers:
            row.warm[name] = statistics.median(warm[row.name, name])
            row.cold[name] = statistics.median(cold[row.name, name])
        row.warm["raw pair"] = typical_reading(pairs, row.run, SAMPLES)
        row.warm["raw batch"] = typical_reading(pairs, lambda row=row: [row.run() for _ in range(BATCH)], 15) / BATCH


def heading(device: Any, timers: dict[str, Timer], block_ms: float, prologue_ns: float) -> str:
    """What was measured on, and what the timers say of themselves."""
    lines = [f"# Device time on {device.facts.name}, driver {device.facts.driver}", ""]
    lines += [f"* {name}: tick {t.tick_ns:.1f} ns, overhead {t.overhead_ns:.0f} ns" for name, t in timers.items()]
    lines.append(f"* CUPTI reads {prologue_ns:.0f} ns beyond the in-kernel clock for a loop of no iterations")
    lines.append(
        f"* a paired block by CUPTI, four cold slots of five samples of 10.85 us: {block_ms:.1f} ms of wall time"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
