"""Rounds: batches of samples of one workload, each summed up in one time, and what disturbed them.

Rounds inform: they are shown and recorded.  Paired blocks decide.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pytest_gpuperf.device.interface import Device, Slot, SlotTimer, WorkloadTimer
from pytest_gpuperf.device.timers.resolution import step_of
from pytest_gpuperf.model.device_facts import DeviceState
from pytest_gpuperf.model.time_record import CacheMode, mean_time_ns
from pytest_gpuperf.timing import samples as stats

SAMPLES = 30
LEAST_SAMPLES = 3
WARM_UP_S = 0.25
"""Bound of the warm-up; it ends earlier when two batches in a row agree."""
_WARM_UP_BATCH = 5
LONG_NS = 1e6
"""Launches from this length on are timed one by one."""
UNDROPPED_NS = 1e7
"""From this length of a launch on no sample is dropped: the first is like the others."""
_CONVERGED = 0.005
OUTLIERS_ALLOWED = 0.10
CLOCK_CHANGE_ALLOWED = 0.01

OVERLAP_SHOWN = 0.05
"""From this part of the sum of its kernels on a run's overlap, or its gaps, are shown."""

Clock = Callable[[], float]


@dataclasses.dataclass(frozen=True)
class Workload:
    """Workload to measure: the work of one sample, and the state in which a sample starts."""

    run: Callable[[], Any]
    """Enqueues the work on the current stream."""
    reset: Callable[[], Any] | None = None
    """Restores in-place inputs before every sample; not timed."""
    cache: CacheMode = "cold"

    def slot(self, samples: int, dropped: int = 1) -> Slot:
        return Slot(self.run, samples, self.reset, dropped=dropped)


@dataclasses.dataclass(frozen=True)
class Rounds:
    """The rounds of one workload taken in one go."""

    rounds: tuple[float, ...] = ()
    """Of each the centre of its samples, nanoseconds per launch."""
    samples: int = 0
    """Of all of them."""
    disturbed: tuple[str, ...] = ()
    """Reasons why these rounds are no record, with advice; empty if they are fit."""
    elapsed: tuple[float, ...] = ()
    """Of each the median time from the first start to the last end of a sample; empty where the timer sees neither."""

    @property
    def time_ns(self) -> float:
        return mean_time_ns(self.rounds)

    @property
    def elapsed_ns(self) -> float | None:
        """From the first start to the last end; None where that is hardly another time, or not seen."""
        found = statistics.median(self.elapsed) if self.elapsed else self.time_ns
        return found if abs(found - self.time_ns) > OVERLAP_SHOWN * self.time_ns else None


def sample_rounds(
    device: Device, timer: WorkloadTimer, workload: Workload, count: int, *,
    budget_s: float, duration_ns: float, clock: Clock = time.perf_counter,
) -> Rounds:  # fmt: skip
    """Measure ``workload`` in ``count`` rounds of ``SAMPLES`` samples; fewer where ``budget_s`` is short.

    At least three samples are measured per round; ``duration_ns`` is about the time of one.  Raises
    ``TimerError`` if a sample was lost and ``InvalidSampleError`` if the timer returned what is no time.
    """
    start = clock()
    long = duration_ns >= UNDROPPED_NS
    cost_s = warm_up(timer, workload, bound_s=min(WARM_UP_S, budget_s / 4), clock=clock, one_by_one=long)
    affordable = int((budget_s - (clock() - start)) / (cost_s * count)) - 1  # each round takes one more that is dropped
    size = max(min(SAMPLES, affordable), LEAST_SAMPLES)
    slot = workload.slot(size, dropped=0 if long else 1)
    rounds: list[float] = []
    disturbed: list[str] = []
    elapsed: list[float] = []
    before = device.state()
    for _ in range(count):
        times = timer.measure([slot], workload.cache)[0]
        elapsed += map(statistics.median, timer.elapsed_ns)
        after = device.state()
        step = step_of(times, timer.tick_ns)
        rounds.append(stats.centre(stats.valid_samples(times), step))
        disturbed += disturbances(before, after, stats.outlier_share(np.asarray(times), step))
        before = after
    return Rounds(tuple(rounds), count * size, tuple(dict.fromkeys(disturbed)), tuple(elapsed))


def warm_up(
    timer: SlotTimer, workload: Workload, *, bound_s: float = WARM_UP_S, clock: Clock = time.perf_counter,
    one_by_one: bool = False,
) -> float:  # fmt: skip
    """Run small batches until two in a row agree to .5 % (or two ticks), or ``bound_s`` seconds are over.

    Returns the wall-clock seconds that a sample costs, flush and launch included.  ``one_by_one``: batches of one
    sample, none dropped.
    """
    start = clock()
    slot = workload.slot(1, dropped=0) if one_by_one else workload.slot(_WARM_UP_BATCH)
    previous = math.nan
    while True:
        began = clock()
        times = timer.measure([slot], workload.cache)[0]
        ended = clock()
        centre = stats.midmean(stats.valid_samples(times))
        if abs(centre - previous) <= max(_CONVERGED * centre, 2 * timer.tick_ns) or ended - start >= bound_s:
            return (ended - began) / (slot.dropped + slot.samples)
        previous = centre


def disturbances(before: DeviceState, after: DeviceState, outliers: float = 0.0) -> Iterator[str]:
    """Reasons why a batch of samples is unfit to be recorded, as messages with advice.

    ``before`` and ``after`` are the GPU's states around it, ``outliers`` the share that ``outlier_share`` found.
    """
    lock = "lock its clocks with 'nvidia-smi --lock-gpu-clocks'"
    if reasons := sorted({*before.throttle_reasons, *after.throttle_reasons}):
        yield f"the GPU was throttled ({', '.join(reasons)}): let it cool down, raise its power limit, or {lock}"
    first, last = before.sm_clock_mhz, after.sm_clock_mhz
    if first and last and abs(last - first) > CLOCK_CHANGE_ALLOWED * first:
        yield f"the SM clock went from {first} to {last} MHz during the round: warm the GPU up for longer or {lock}"
    if others := sorted({*before.other_processes, *after.other_processes}):
        pids = ", ".join(map(str, others))
        yield f"another process computes on this GPU (pid {pids}): end it, or choose a free GPU by CUDA_VISIBLE_DEVICES"
    if outliers > OUTLIERS_ALLOWED:
        yield (
            f"{outliers:.0%} of the samples are outliers (more than 1 %, 3 us and three interquartile ranges above the "
            f"third quartile): something else uses the GPU or its memory; close it and measure again"
        )
