"""The self-test, in one process: kernels are compared with themselves, and with versions that are slower.

The work of a kernel is a number in its source, so that a slowdown can be made to measure.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import math
import secrets
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.device_errors import TimerUnavailable
from pytest_gpuperf.device.discovery import open_device
from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.device.launch import Kernel, Launch
from pytest_gpuperf.judge.decision import MOST_BLOCKS, Comparison, Decision, decide, share
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.limits import TIGHT, TIMERS, Limits, TimerName
from pytest_gpuperf.selftest.selftest_report import Control, KernelReport, SelftestReport, TimerReport
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.timing.cubin_reference import BaselineLaunch, CubinReference
from pytest_gpuperf.timing.rounds import Workload, warm_up
from pytest_gpuperf.timing.samples import midmean, valid_samples

# --- kernels -------------------------------------------------------------------------------------

OTHER_FUNCTION = """
extern "C" __global__ void gpuperf_other(float* p) { for (int i = 1; i < 99; ++i) p[i] += p[i - 1]; }
"""


@dataclasses.dataclass(frozen=True)
class Family:
    """A kind of kernel; ``NAME`` and ``COUNT``, the amount of its work, are filled into its text."""

    name: str
    text: str
    threads: int
    """Per block."""
    form: Callable[[Device, int], tuple[int, tuple[Any, ...]]]
    """Grid and arguments of a launch that serve every count up to the given one."""

    def compiled(self, count: int, arch: str, *, moved: bool = False) -> KernelBinary:
        """Machine code.  Raises what ``compile_kernel`` raises.

        ``moved``: another function lies ahead of it in its module, for where code lies is no property of a kernel.
        """
        name = f"gpuperf_{self.name}_{count}"
        kernel = self.text.replace("NAME", name).replace("COUNT", str(count))
        source = KernelSource(text=OTHER_FUNCTION + kernel if moved else kernel, name=name)
        return compile_kernel(source, arch, cache=CompileCache())


LOOP = Family(
    "loop",
    """extern "C" __global__ void NAME(float* out, float scale, float shift) {
    float a = (float)threadIdx.x;
    #pragma unroll 1
    for (int i = 0; i < COUNT; ++i) a = fmaf(a, scale, shift);
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
""",
    threads=128,
    form=lambda device, _most: (
        device.facts.sm_count,
        (device.arrays.empty(device.facts.sm_count * 128), np.float32(0.999), np.float32(0.5)),
    ),
)
"""A chain of dependent FMAs, one per iteration."""
COPY = Family(
    "copy",
    """extern "C" __global__ void NAME(const float4* in, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT) out[i] = in[i];
}
""",
    threads=256,
    form=lambda device, most: (-(-most // 256), tuple(device.arrays.random(most * 4, seed=seed) for seed in (7, 8))),
)
"""Moves ``COUNT`` elements of 16 bytes, one per thread."""
KERNELS = {"short loop": (LOOP, 130), "loop": (LOOP, 700), "long loop": (LOOP, 7500), "copy": (COPY, 7 << 20)}
"""Family and count; about 2.5, 10, 100 and 60 us on an H200."""

# --- comparisons ---------------------------------------------------------------------------------

SCHEMA = 1
FULL_S, QUICK_S = 25.0, 3.0
"""Wall-clock seconds of comparisons of a kernel by one timer."""
ALPHA = share(100, 1)
"""Error rate of a verdict: that of a kernel in a run of 100 tests."""
BUDGET_S = 5.0
"""Wall-clock seconds that the gate gives a workload by default."""
PERCENTS = (0, 1, 2)
AIM = 1.07
"""Slower versions are made slower than their name says by this factor: they have to be found."""
HEADROOM = 1.08
"""Counts up to this many times a baseline's are served by its grid and arguments."""
SAMPLES, REPEATS = 30, 20
"""Samples of a slot, and slots, from which a slowdown is known: that of a copy to 0.1 % on an H200."""


def run_selftest(*, quick: bool, timer_name: TimerName | None, progress: Callable[[str], object]) -> SelftestReport:
    """Figures of each timer, or of the one that is named.  ``progress`` is called with each step.

    Raises ``NoDevice``, ``TimerUnavailable`` and what compiling, loading, locking and timing raise.
    """
    start = time.perf_counter()
    device = open_device()
    device.timer(timer_name)  # where it, or every one, is unavailable, there is nothing to report
    timers = []
    with device.lock():
        for name in [timer_name] if timer_name else TIMERS:
            progress(f"comparing kernels of known slowdown by {name}")
            try:
                timers.append(_by_timer(device, device.timer(name), QUICK_S if quick else FULL_S))
            except TimerUnavailable as problem:
                progress(str(problem))
    return SelftestReport(
        schema=SCHEMA, gpu=device.facts.name, driver=device.facts.driver, limits=TIGHT, timers=tuple(timers),
        seconds=time.perf_counter() - start,
    )  # fmt: skip


def _by_timer(device: Device, timer: Timer, seconds: float) -> TimerReport:
    kernels = tuple(Trials(device, timer, *kernel).report(name, seconds) for name, kernel in KERNELS.items())
    return TimerReport(name=timer.name, tick_ns=timer.tick_ns, overhead_ns=timer.overhead_ns, kernels=kernels)


class Trials:
    """A kernel and its versions on one timer.  The caller holds the GPU's lock."""

    def __init__(self, device: Device, timer: Timer, family: Family, count: int) -> None:
        self._device, self._timer, self._family, self._count = device, timer, family, count
        self._form = family.form(device, math.ceil(count * HEADROOM))
        self._baseline = family.compiled(count, device.facts.arch)
        (self.duration_ns,) = self._times_ns(self._baseline)
        self.versions = {percent: self._version(percent) for percent in PERCENTS}
        """By percentage: machine code, and its time over the baseline's, as measured; 1 for the same code."""

    def report(self, name: str, seconds: float) -> KernelReport:
        """Figures of the kernel of this name, from comparisons of so many seconds."""
        taken = self._compared(seconds)
        same = taken[0]
        r = [value for one in same for value in one.r]
        spread, blocks = float(np.std(r)), max(1, int(BUDGET_S * len(r) / sum(one.seconds for one in same)))
        return KernelReport(
            kernel=name, duration_ns=self.duration_ns, spread=spread,
            controls=tuple(_control(percent, self.versions[percent][1], some) for percent, some in taken.items()),
            smallest=smallest_effect(spread, blocks, TIGHT, ALPHA),
        )  # fmt: skip

    def _compared(self, seconds: float) -> Mapping[int, Sequence[Comparison]]:
        """Comparisons by percentage, taken in turns until so many seconds are over, and at least one of each."""
        end = time.perf_counter() + seconds
        taken: dict[int, list[Comparison]] = {percent: [] for percent in self.versions}
        for percent, (binary, ratio) in itertools.cycle(self.versions.items()):
            if taken[percent] and time.perf_counter() >= end:
                break
            taken[percent].append(self._compare(binary, self.duration_ns * ratio))
        return taken

    def _compare(self, candidate: KernelBinary, duration_ns: float) -> Comparison:
        """One comparison with the baseline, as the gate takes it."""
        launch = self._launch(candidate)
        reference = CubinReference(self._device, self._timer, launch, BaselineLaunch(self._baseline))
        return compare(
            self._device, reference, TIGHT, ALPHA, seed=secrets.randbits(48), budget_s=BUDGET_S,
            duration_ns=duration_ns,
        ).comparison  # fmt: skip

    def _version(self, percent: int) -> tuple[KernelBinary, float]:
        """Resized once: a kernel's time has a fixed part, and that of a copy is no straight line of its count."""
        wanted, arch = AIM * percent / 100, self._device.facts.arch
        ratio, binary = 1.0, self._family.compiled(self._count, arch, moved=True)
        counts = float(self._count)  # so many counts take the baseline's time
        for _ in range(2 if percent else 0):
            added = min(math.ceil(wanted * counts), math.ceil(self._count * (HEADROOM - 1)))
            binary = self._family.compiled(self._count + added, arch, moved=True)
            before, after = self._times_ns(self._baseline, binary)
            ratio = after / before
            counts = added / max(ratio - 1, wanted / 4)
        return binary, ratio

    def _times_ns(self, *binaries: KernelBinary) -> list[float]:
        """Midmean times of kernels, interleaved, with a cold L2."""
        launches = [self._launch(binary) for binary in binaries]
        for launch in launches:
            warm_up(self._timer, Workload(launch), bound_s=0.05)
        taken = [self._timer.measure([Slot(one, SAMPLES) for one in launches], "cold") for _ in range(REPEATS)]
        return [midmean(valid_samples(np.concatenate(of_one).tolist())) for of_one in zip(*taken, strict=True)]

    def _launch(self, binary: KernelBinary) -> Launch:
        arch, (grid, arguments) = self._device.facts.arch, self._form
        kernel = Kernel({arch: binary}, device=self._device, native=arch)
        return kernel.launch(grid, self._family.threads, arguments)


def _control(percent: int, ratio: float, comparisons: Sequence[Comparison]) -> Control:
    decisions = [one.decision(TIGHT, ALPHA) for one in comparisons]
    return Control(
        percent=percent, ratio=ratio, comparisons=len(comparisons), slower=decisions.count(Decision.SLOWER),
        undecided=decisions.count(None), seconds=statistics.median(one.seconds for one in comparisons),
    )  # fmt: skip


# --- the smallest slowdown that is found ---------------------------------------------------------


DETECTION = 0.99
RUNS = 1000
MOST_EFFECT = 0.5
STEP = 1.05
"""Ratio of one effect that is tried to the next smaller one."""


def smallest_effect(spread: float, blocks: int, limits: Limits, alpha: float) -> float | None:
    """Least slowdown (a fraction) that 99 of 100 runs call SLOWER; None above 50 %.

    ``spread`` is the standard deviation of a block's log ratio, ``blocks`` what fits into the budget.
    """
    noise = np.random.default_rng(1).normal(0.0, spread, (RUNS, min(blocks, MOST_BLOCKS)))
    effects = limits.tolerance * STEP ** np.arange(1, math.ceil(math.log(MOST_EFFECT / limits.tolerance, STEP)) + 1)
    first = bisect.bisect_left(
        effects, DETECTION * RUNS, key=lambda effect: _found(noise + math.log1p(effect), limits, alpha)
    )
    return float(effects[first]) if first < effects.size else None


def _found(runs: NDArray[np.float64], limits: Limits, alpha: float) -> int:
    """Number of runs (rows of log ratios of blocks) that end as SLOWER."""
    over = (runs > math.log1p(limits.tolerance)).cumsum(axis=1).tolist()
    under = (runs < math.log1p(limits.detect)).cumsum(axis=1).tolist()
    found = 0
    for run in zip(over, under, strict=True):
        blocks = enumerate(zip(*run, strict=True), start=1)
        decisions = (_decided(number, *counts, limits, alpha) for number, counts in blocks)
        found += next(filter(None, decisions), None) is Decision.SLOWER
    return found


@functools.cache
def _decided(number: int, over: int, under: int, limits: Limits, alpha: float) -> Decision | None:
    """Decision on ``number`` blocks, which depends on nothing but these counts."""
    values = np.log1p([limits.tolerance / 2, (limits.tolerance + limits.detect) / 2, limits.detect * 2])
    return decide(np.repeat(values, [number - over, over + under - number, number - under]).tolist(), limits, alpha)
