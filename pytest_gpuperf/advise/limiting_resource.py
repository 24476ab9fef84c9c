"""Compute, memory, latency, compute and memory, or divergence bound: what holds a kernel back, by itself.

With counters, by how busy SM and memory are.  Without, by what the test declares one run to move and to compute, over
the ceilings that were measured in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.model.advice import Bound, State

HIGH = 0.8
"""A part this busy is used well (Nsight Compute's own 'high throughput'; COURSE: more than 80 %)."""
LOW = 0.6
"""Below this neither part sets the pace: latency does (Nsight Compute's speed-of-light rule; BLOG: use 80 % of one)."""
CLOSE = 0.1
"""Two parts that differ by less set the pace together."""
FEW_LANES = 24.0
"""Active lanes of 32 below which divergence is worth a word (Nsight Compute's rule)."""

COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
ASK_FOR_COUNTERS = "counters would tell what else is busy: pytest --gpuperf --gpuperf-ncu=full"


def state_of(side: Side, peaks: Mapping[str, float]) -> State | None:
    """The state of one version, by the measured ceilings ``copy_bandwidth`` and ``fma_throughput``; None if unknown."""
    roofline = roofline_fraction(side, peaks)
    counters = side.counters
    if COMPUTE in counters and MEMORY in counters:
        compute, memory = counters[COMPUTE] / 100, counters[MEMORY] / 100
        bound, lanes = _bound(compute, memory), _lanes(counters)
        why = f"SM {compute:.0%} and memory {memory:.0%} of what they could do"
        if bound in ("compute", "compute and memory") and lanes is not None and lanes < FEW_LANES:
            return State(bound="divergence", why=f"{why}, {lanes:.1f} of 32 lanes active", roofline=roofline)
        return State(bound=bound, why=why, roofline=roofline)
    return _declared(side, peaks, roofline)


def _bound(compute: float, memory: float) -> Bound:
    if max(compute, memory) < LOW:
        return "latency"
    if min(compute, memory) >= LOW and (abs(compute - memory) < CLOSE or min(compute, memory) >= HIGH):
        return "compute and memory"
    return "compute" if compute > memory else "memory"


def _lanes(counters: Mapping[str, float]) -> float | None:
    issued, threads = counters.get("smsp__inst_executed.sum"), counters.get("smsp__thread_inst_executed.sum")
    return threads / issued if issued and threads is not None else None


def roofline_fraction(side: Side, peaks: Mapping[str, float]) -> float | None:
    """The least time that declared bytes and operations allow at the measured ceilings, over the time taken."""
    least = [seconds for seconds in _least_seconds(side, peaks) if seconds is not None]
    return max(least) / (side.time_ns * 1e-9) if least and side.time_ns else None


def _least_seconds(side: Side, peaks: Mapping[str, float]) -> tuple[float | None, float | None]:
    """By memory and by arithmetic."""
    moved, computed = peaks.get("copy_bandwidth"), peaks.get("fma_throughput")
    return (
        side.bytes / moved if side.bytes and moved else None,
        side.flops / computed if side.flops and computed else None,
    )


def _declared(side: Side, peaks: Mapping[str, float], roofline: float | None) -> State | None:
    if roofline is None or side.time_ns is None:
        return None
    memory, compute = (None if s is None else s / (side.time_ns * 1e-9) for s in _least_seconds(side, peaks))
    shares = ((memory, "copy bandwidth"), (compute, "FMA throughput"))
    why = " and ".join(f"{share:.0%} of the measured {peak}" for share, peak in shares if share is not None)
    bound = _bound(compute or 0.0, memory or 0.0)
    return State(bound=bound, why=why, roofline=roofline, missing=ASK_FOR_COUNTERS if bound == "latency" else "")


def why_unknown(side: Side, peaks: Mapping[str, float]) -> str:
    """What is missing for a state."""
    if side.time_ns is not None and not side.bytes and not side.flops:
        return "the test declares no bytes= or flops=, and there are no counters (--gpuperf-ncu=full)"
    return why_no_roofline(side, peaks)


def why_no_roofline(side: Side, peaks: Mapping[str, float]) -> str:
    """What is missing for a roofline fraction."""
    if side.time_ns is None:
        return "neither timed nor counted (it needs a GPU)" if not side.counters else "not timed"
    if not side.bytes and not side.flops:
        return "the test declares no bytes= or flops="
    if not peaks:
        return "no ceiling was measured beside it (a test that reads gpu.copy_bandwidth or gpu.fma_throughput has one)"
    return "of what the test declares no ceiling was measured beside it"
