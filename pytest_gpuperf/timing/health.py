"""Was a round disturbed, and what to do?  Pure functions; a disturbance never fails a kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_gpuperf.model.timed_round import DeviceState, Round
from pytest_gpuperf.timing import sample_stats

REFUSED_RESOLUTION = 0.005
"""A time that is resolved no better than the tightest profile's tolerance is refused ..."""
COARSE_RESOLUTION = 0.001
"""... and one that is resolved no better than this is remarked on."""
OUTLIERS_ALLOWED = 0.10
DRIFT_ALLOWED = 0.0025
"""Half of the tightest profile's tolerance."""
CLOCK_CHANGE_ALLOWED = 0.01


class Batch(NamedTuple):
    """One round with what is known of how it was taken."""

    round: Round
    before: DeviceState
    """The GPU's state before it."""
    after: DeviceState
    step_ns: float
    """Resolution of its samples (``resolution.step_of``)."""
    outliers: float = 0.0
    """Share that ``sample_stats.outlier_share`` found."""
    pauses_ns: tuple[float, ...] = ()
    """Times for which the GPU left work in its queue alone, as far as the timer sees it."""


def disturbances(batch: Batch, *, alternating: bool = False, averages: bool = False) -> tuple[str, ...]:
    """Everything that makes this round unfit as evidence, as messages with advice; empty if it is fit.

    ``alternating``: the samples of all rounds go to and fro between two levels (``sample_stats.alternates``), which is
    neither drift nor outliers.  ``averages``: the timer's steps average out (``resolution_of``).
    """
    return (
        *_of_the_gpu(batch.before, batch.after),
        *_of_pauses(batch.pauses_ns),
        *(() if alternating else _of_the_samples(batch)),
        *_of_the_timer(batch.round, batch.step_ns, averages),
    )


def disturbed_by(batch: Batch, *, alternating: bool = False) -> float:
    """By how much disturbances can have moved this round, as a log: infinite where that is not known, 0 for none.

    A drift moves a round by no more than itself, and a coarse timer by none.
    """
    outliers = batch.outliers > OUTLIERS_ALLOWED and not alternating
    if outliers or batch.pauses_ns or any(_of_the_gpu(batch.before, batch.after)):
        return math.inf
    drift = abs(batch.round.drift)
    return drift if drift > DRIFT_ALLOWED and not alternating else 0.0


def remarks(round: Round, samples: sample_stats.Samples, step_ns: float, *, averages: bool = False) -> tuple[str, ...]:
    """Remarks on rounds that are fit all the same: ``round`` is one of them, ``samples`` are those of all."""
    found = (_bimodal(samples, step_ns), _coarse(round, step_ns, averages))
    return tuple(message for message in found if message)


def resolution_of(round: Round, step_ns: float, averages: bool) -> float:
    """Share of the round's time that its readings resolve; 0 where noise wider than a step makes them finer.

    One step, or two standard errors of a mean of readings whose starts and ends meet the clock's steps at random
    phases (``averages``): readings are then off by up to a step, with a sd of at most half of one, and their mean is
    not.  That goes for CUPTI's time stamps; the end of a graph is noticed in steps that depend on where it lies.
    """
    if round.quantiles[3] - round.quantiles[1] >= step_ns:
        return 0.0
    return step_ns / round.midmean / (math.sqrt(round.samples) if averages else 1.0)


def clock_moved(first_mhz: float | None, last_mhz: float | None) -> bool:
    """True if two readings of the SM clock differ by more than 1 % of the first; False where one is not known."""
    if not first_mhz or not last_mhz:
        return False
    return abs(last_mhz - first_mhz) > CLOCK_CHANGE_ALLOWED * first_mhz


def _of_the_gpu(before: DeviceState, after: DeviceState) -> Iterator[str]:
    reasons = sorted({*before.throttle_reasons, *after.throttle_reasons})
    if reasons:
        yield (
            f"the GPU was throttled ({', '.join(reasons)}): let it cool down, raise its power limit, or lock "
            f"its clocks with 'nvidia-smi --lock-gpu-clocks'"
        )
    first, last = before.sm_clock_mhz, after.sm_clock_mhz
    if clock_moved(first, last):
        yield (
            f"the SM clock went from {first} to {last} MHz during the round: warm the GPU up for longer or lock "
            f"its clocks with 'nvidia-smi --lock-gpu-clocks'"
        )
    others = sorted({*before.other_processes, *after.other_processes})
    if others:
        ids = ", ".join(str(process) for process in others)
        yield f"another process computes on this GPU (pid {ids}): end it, or choose a free GPU by CUDA_VISIBLE_DEVICES"


def _of_pauses(pauses_ns: Sequence[float]) -> Iterator[str]:
    if pauses_ns:
        often = "once" if len(pauses_ns) == 1 else f"{len(pauses_ns)} times"
        yield (
            f"the GPU left work in its queue alone {often}, for up to {max(pauses_ns) / 1e6:.1f} ms: another process "
            f"computes on it, perhaps one of another container; end it, or choose a free GPU by CUDA_VISIBLE_DEVICES"
        )


def _of_the_samples(batch: Batch) -> Iterator[str]:
    drift = batch.round.drift
    if abs(drift) > DRIFT_ALLOWED:
        yield (
            f"times drifted by {drift:+.2%} within the round: the GPU was not yet warm or its clocks moved; "
            f"measure again, or lock its clocks"
        )
    if batch.outliers > OUTLIERS_ALLOWED:
        yield (
            f"{batch.outliers:.0%} of the samples are outliers (more than 1 %, 3 us and three interquartile ranges "
            f"above the third quartile): something else uses the GPU or its memory; close it and measure again"
        )


def _of_the_timer(round: Round, step_ns: float, averages: bool) -> Iterator[str]:
    if resolution_of(round, step_ns, averages) > REFUSED_RESOLUTION:
        yield (
            f"a time of {round.midmean:.0f} ns is only {round.midmean / step_ns:.0f} steps of {step_ns:g} ns of the "
            f"timer: give the kernel more work, or use cache='warm' with the graph timer, which times many "
            f"launches together"
        )


def _coarse(round: Round, step_ns: float, averages: bool) -> str:
    resolution = resolution_of(round, step_ns, averages)
    if not COARSE_RESOLUTION < resolution <= REFUSED_RESOLUTION:
        return ""
    steps = round.midmean / step_ns
    return (
        f"a time of {steps:.0f} steps of the timer resolves about {resolution:.1%}: more work per launch resolves more"
    )


def _bimodal(samples: sample_stats.Samples, step_ns: float) -> str:
    found = [f"{one.share:.0%} around {one.centre:.0f} ns" for one in sample_stats.groups(samples, step_ns)]
    if not found:
        return ""
    return (
        f"times fall into two groups, {' and '.join(found)}: look for alternating clocks, input-dependent paths or "
        f"memory placement"
    )
