"""Compute, memory, latency, compute and memory, or divergence bound: what holds a kernel back, by itself.

With counters, by how busy SM and memory are.  Without, by what the test declares one run to move and to compute, over
the ceilings that were measured in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from pytest_gpuperf.advise.comparison import Side

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
ASK_FOR_COUNTERS = "counters would show what else is busy: pytest --gpuperf --gpuperf-ncu=full"
NO_ROOFLINE = (
    "it takes a time on a GPU, bytes= or flops= of the test, and its ceiling measured in the same run "
    "(gpu.copy_bandwidth or gpu.fma_throughput)"
)
"""What is missing for a roofline fraction, and without counters for any state."""


Bound = Literal["compute", "memory", "latency", "compute and memory", "divergence"]


class State(NamedTuple):
    """What holds a kernel back."""

    bound: Bound
    why: str
    """The figures that say so."""
    roofline: float | None = None
    """Least possible time, by the declared bytes and operations and the measured ceilings, over the time taken."""
    missing: str = ""
    """What would tell more."""


def state_of(side: Side, peaks: Mapping[str, float]) -> State | None:
    """The state of one version, by the measured ceilings ``copy_bandwidth`` and ``fma_throughput``; None if unknown.

    Its roofline fraction is the least time that declared bytes and operations allow at those, over the time taken.
    """
    declared = (("copy bandwidth", side.bytes, peaks.get("copy_bandwidth")),
                ("FMA throughput", side.flops, peaks.get("fma_throughput")))  # fmt: skip
    shares = {peak: amount / rate / (side.time_ns * 1e-9) for peak, amount, rate in declared
              if amount and rate and side.time_ns}  # fmt: skip
    roofline = max(shares.values(), default=None)
    counters = side.counters
    if COMPUTE in counters and MEMORY in counters:
        compute, memory = counters[COMPUTE] / 100, counters[MEMORY] / 100
        bound, lanes = _bound(compute, memory), _lanes(counters)
        why = f"SM {compute:.0%} and memory {memory:.0%} of what they could do"
        if bound in ("compute", "compute and memory") and lanes is not None and lanes < FEW_LANES:
            return State(bound="divergence", why=f"{why}, {lanes:.1f} of 32 lanes active", roofline=roofline)
        return State(bound=bound, why=why, roofline=roofline)
    if roofline is None:
        return None
    why = " and ".join(f"{share:.0%} of the measured {peak}" for peak, share in shares.items())
    bound = _bound(shares.get("FMA throughput", 0.0), shares.get("copy bandwidth", 0.0))
    return State(bound=bound, why=why, roofline=roofline, missing=ASK_FOR_COUNTERS if bound == "latency" else "")


def _bound(compute: float, memory: float) -> Bound:
    if max(compute, memory) < LOW:
        return "latency"
    if min(compute, memory) >= LOW and (abs(compute - memory) < CLOSE or min(compute, memory) >= HIGH):
        return "compute and memory"
    return "compute" if compute > memory else "memory"


def _lanes(counters: Mapping[str, float]) -> float | None:
    issued, threads = counters.get("smsp__inst_executed.sum"), counters.get("smsp__thread_inst_executed.sum")
    return threads / issued if issued and threads is not None else None
