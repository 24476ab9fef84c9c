"""Rounds: batches of samples of one workload, each summed up in one record.

``summarise`` is pure; ``take_rounds`` drives a device: it warms up, finds out what a sample costs, takes as many as the
budget allows and says what disturbed them.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.device.timers.resolution import step_of
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timed_round import DeviceState, Round
from pytest_gpuperf.timing import sample_stats
from pytest_gpuperf.timing.health import Batch, disturbances, disturbed_by, remarks

SAMPLES = 30
LEAST_SAMPLES = 5
WARM_UP_S = 0.25
"""Bound of the warm-up; it ends earlier when two batches in a row agree."""
_WARM_UP_BATCH = 5
UNDROPPED_NS = 1e7
"""Of launches from this length on no sample is dropped, and they warm up one by one: their first is like the others."""
FEW_SAMPLES_NS = 5e7
"""From this length on ``LEAST_SAMPLES`` are ``FEW_SAMPLES``: two rounds of a kernel of 1 s are six launches."""
FEW_SAMPLES = 3
_SETTLED = 0.005

Clock = Callable[[], float]


class InvalidSampleError(ValueError):
    """A batch of samples holds something that is not a time."""


@dataclasses.dataclass(frozen=True)
class Workload:
    """Workload to measure: the work of one sample, and the state in which a sample starts."""

    run: Callable[[], None]
    """Enqueues the work on the current stream."""
    reset: Callable[[], None] | None = None
    """Restores in-place inputs before every sample; not timed."""
    cache: CacheMode = "cold"


@dataclasses.dataclass(frozen=True)
class Rounds:
    """The rounds of one workload taken in one go, with what is to be known about them."""

    rounds: tuple[Round, ...]
    samples: tuple[tuple[float, ...], ...]
    """The raw samples of each round, nanoseconds: for debugging, never for inference."""
    disturbed: tuple[str, ...] = ()
    """Reasons why these rounds are unfit as evidence, with advice; empty if they are fit."""
    disturbed_by: float = 0.0
    """By how much that can have moved them (``health.disturbed_by``)."""
    notes: tuple[str, ...] = ()
    """Remarks on rounds that are fit all the same."""
    seconds: float = 0.0
    """Wall-clock time taken, warm-up included."""

    def followed_by(self, more: Rounds) -> Rounds:
        """These rounds and those that were taken next; the notes are those on the latter."""
        return Rounds(
            rounds=self.rounds + more.rounds, samples=self.samples + more.samples,
            disturbed=_unique(self.disturbed + more.disturbed),
            disturbed_by=max(self.disturbed_by, more.disturbed_by), notes=more.notes,
            seconds=self.seconds + more.seconds,
        )  # fmt: skip


NO_ROUNDS = Rounds((), ())


@dataclasses.dataclass(frozen=True)
class Pilot:
    """Result of the warm-up."""

    samples: tuple[float, ...]
    """Samples of its last batch, nanoseconds."""
    cost_s: float
    """Wall-clock seconds per sample, flush and launch included."""
    settled: bool
    """True if two batches in a row agreed before the bound."""


def summarise(
    samples_ns: Sequence[float],
    *,
    session: str,
    process: int,
    clocks: tuple[int, int] | None = None,
    step_ns: float = 0.0,
) -> Round:
    """One batch of samples, in nanoseconds per launch and in the order they were taken, as a ``Round``.

    ``clocks`` is the SM clock in MHz before and after, ``step_ns`` the resolution of the samples.
    Raises ``InvalidSampleError`` if there are none, or one is not a finite time above zero.
    """
    samples = valid_samples(samples_ns)
    low, first, middle, third, high = (float(q) for q in np.quantile(samples, [0.05, 0.25, 0.5, 0.75, 0.95]))
    return Round(
        session=session,
        process=process,
        samples=samples.size,
        midmean=sample_stats.centre(samples, step_ns),
        median=middle,
        quantiles=(low, first, middle, third, high),
        minimum=float(samples.min()),
        maximum=float(samples.max()),
        rho1=sample_stats.lag_one_autocorrelation(samples),
        drift=sample_stats.drift(samples),
        modes=sample_stats.modes(samples, step_ns),
        sm_clock_mhz=clocks,
    )


def valid_samples(samples_ns: Sequence[float]) -> sample_stats.Samples:
    """The samples as an array.  Raises ``InvalidSampleError`` if there are none or one is not a time."""
    samples = np.asarray(samples_ns, dtype=np.float64)
    if samples.ndim != 1 or samples.size == 0:
        raise InvalidSampleError("a round needs at least one sample: the timer returned none")
    wrong = np.flatnonzero(~(np.isfinite(samples) & (samples > 0)))
    if wrong.size:
        raise InvalidSampleError(
            f"sample {wrong[0]} of {samples.size} is {samples[wrong[0]]} ns, which is not a time: the timer lost it; "
            f"measure again, or choose another timer with --gpuperf-timer"
        )
    return samples


def take_rounds(
    device: Device,
    timer: Timer,
    workload: Workload,
    count: int,
    samples: int = SAMPLES,
    *,
    session: str = "",
    process: int = 0,
    budget_s: float = 5.0,
    rounds_s: float = math.inf,
    duration_ns: float = 0.0,
    clock: Clock = time.perf_counter,
) -> Rounds:
    """Measure ``workload`` in ``count`` rounds of ``samples`` samples; fewer where the budget is short.

    Both bounds are in seconds, ``budget_s`` with the warm-up and ``rounds_s`` without it.  At least five samples are
    taken per round, whatever they are; three if ``duration_ns``, about what a sample takes, is 50 ms or more.  Raises
    ``TimerError`` if a sample was lost and ``InvalidSampleError`` if the timer returned what is no time.
    """
    start = clock()
    long = duration_ns >= UNDROPPED_NS
    pilot = warm_up(timer, workload, bound_s=min(WARM_UP_S, budget_s / 4), clock=clock, one_by_one=long)
    least = FEW_SAMPLES if duration_ns >= FEW_SAMPLES_NS else LEAST_SAMPLES
    size = sample_count(pilot.cost_s, count, min(rounds_s, budget_s - (clock() - start)), samples, least)
    slot = Slot(workload.run, size, workload.reset, dropped=0 if long else 1)
    raw: list[tuple[float, ...]] = []
    batches: list[Batch] = []
    before = device.state()
    for _ in range(count):
        times = timer.measure([slot], workload.cache)[0]
        after = device.state()
        step = step_of(times, timer.tick_ns)
        taken = summarise(times, session=session, process=process, clocks=_clocks(before, after), step_ns=step)
        outliers = sample_stats.outlier_share(np.asarray(times), step)
        batches.append(Batch(taken, before, after, step, outliers, tuple(timer.pauses_ns)))
        raw.append(tuple(times))
        before = after
    alternating = bool(raw) and sample_stats.alternates(np.concatenate(raw), batches[-1].step_ns)
    averages = timer.name == "cupti"
    disturbed = [said for one in batches for said in disturbances(one, alternating=alternating, averages=averages)]
    notes = [] if pilot.settled else [_unsettled(pilot)]
    if batches:
        notes += remarks(batches[-1].round, np.concatenate(raw), batches[-1].step_ns, averages=averages)
    rounds = tuple(one.round for one in batches)
    by = max((disturbed_by(one, alternating=alternating) for one in batches), default=0.0)
    return Rounds(rounds, tuple(raw), _unique(disturbed), by, _unique(notes), clock() - start)


def warm_up(
    timer: Timer, workload: Workload, *, bound_s: float, clock: Clock = time.perf_counter, one_by_one: bool = False
) -> Pilot:
    """Run small batches until two in a row agree to .5 % (or two ticks), or ``bound_s`` seconds are over.

    ``one_by_one``: batches of one sample, none dropped.
    """
    start = clock()
    batch = Slot(workload.run, _WARM_UP_BATCH, workload.reset)
    slot = batch._replace(samples=1, dropped=0) if one_by_one else batch
    previous = math.nan
    while True:
        began = clock()
        times = timer.measure([slot], workload.cache)[0]
        ended = clock()
        centre = sample_stats.midmean(valid_samples(times))
        settled = abs(centre - previous) <= max(_SETTLED * centre, 2 * timer.tick_ns)
        if settled or ended - start >= bound_s:
            return Pilot(tuple(times), (ended - began) / (slot.dropped + slot.samples), settled)
        previous = centre


def sample_count(cost_s: float, rounds: int, budget_s: float, wanted: int = SAMPLES, least: int = LEAST_SAMPLES) -> int:
    """Samples per round so that all rounds fit into ``budget_s`` seconds, from ``least`` to ``wanted``.

    ``cost_s`` is the wall-clock time of one sample; each round takes one more, which is dropped.
    """
    affordable = int(budget_s / (cost_s * rounds)) - 1 if cost_s > 0 else wanted
    return max(min(wanted, affordable), min(wanted, least))


def _unsettled(pilot: Pilot) -> str:
    return (
        f"times had not settled to {_SETTLED:.1%} when the warm-up ended (last batch "
        f"{min(pilot.samples):.0f} to {max(pilot.samples):.0f} ns): a noisy workload, or clocks still moving"
    )


def _clocks(before: DeviceState, after: DeviceState) -> tuple[int, int] | None:
    if before.sm_clock_mhz is None or after.sm_clock_mhz is None:
        return None
    return before.sm_clock_mhz, after.sm_clock_mhz


def _unique(messages: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(messages))
