"""Was a round disturbed, and what to do?  Pure functions; a disturbance never fails a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_gpuperf.model.evidence import DeviceState, Round
from pytest_gpuperf.timing import sample_stats

REFUSED_TICKS = 200
COARSE_TICKS = 1000
OUTLIERS_ALLOWED = 0.10
DRIFT_ALLOWED = 0.0025
"""Half of the tightest profile's tolerance."""
CLOCK_CHANGE_ALLOWED = 0.01


def disturbances(
    round: Round, before: DeviceState, after: DeviceState, step_ns: float, *, outliers: float = 0.0
) -> tuple[str, ...]:
    """Everything that makes this round unfit as evidence, as messages with advice; empty if it is fit.

    ``step_ns`` is the resolution of the round's samples (``resolution.step_of``), ``outliers`` the share that
    ``sample_stats.outlier_share`` found.  ``before`` and ``after`` are the GPU's state around the round.
    """
    return (*_of_the_gpu(before, after), *_of_the_samples(round, step_ns, outliers))


def remarks(round: Round, samples: sample_stats.Samples, step_ns: float) -> tuple[str, ...]:
    """Remarks on rounds that are fit all the same: ``round`` is one of them, ``samples`` are those of all."""
    found = (_bimodal(samples, step_ns), _coarse(round, step_ns))
    return tuple(message for message in found if message)


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


def _of_the_samples(round: Round, step_ns: float, outliers: float) -> Iterator[str]:
    if abs(round.drift) > DRIFT_ALLOWED:
        yield (
            f"times drifted by {round.drift:+.2%} within the round: the GPU was not yet warm or its clocks moved; "
            f"measure again, or lock its clocks"
        )
    if outliers > OUTLIERS_ALLOWED:
        yield (
            f"{outliers:.0%} of the samples are outliers (more than 1 % and three interquartile ranges above "
            f"the third quartile): something else uses the GPU or its memory; close it and measure again"
        )
    if round.midmean < REFUSED_TICKS * step_ns and not _dithered(round, step_ns):
        yield (
            f"a time of {round.midmean:.0f} ns is only {round.midmean / step_ns:.0f} steps of {step_ns:g} ns of the "
            f"timer: give the kernel more work, or use cache='warm' with the graph timer, which times many "
            f"launches together"
        )


def _coarse(round: Round, step_ns: float) -> str:
    steps = round.midmean / step_ns if step_ns else COARSE_TICKS
    if not REFUSED_TICKS <= steps < COARSE_TICKS or _dithered(round, step_ns):
        return ""
    return (
        f"a time of {steps:.0f} steps of the timer resolves about {1 / steps:.1%}: more work per launch resolves more"
    )


def _bimodal(samples: sample_stats.Samples, step_ns: float) -> str:
    found = [f"{one.share:.0%} around {one.centre:.0f} ns" for one in sample_stats.groups(samples, step_ns)]
    if not found:
        return ""
    return (
        f"times fall into two groups, {' and '.join(found)}: look for alternating clocks, input-dependent paths or "
        f"memory placement"
    )


def _dithered(round: Round, step_ns: float) -> bool:
    """Noise wider than the step spreads the samples over neighbouring steps, and their mean resolves below one."""
    return round.quantiles[3] - round.quantiles[1] >= step_ns
