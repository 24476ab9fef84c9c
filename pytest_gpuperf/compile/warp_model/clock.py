"""One warp's clock: when an instruction issues, what it waits for, and when its results will be there.

Rates: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions" (results per clock and SM), divided
by the four schedulers.  Latencies are rounded: 4 cycles of an FMA and 8 of a DADD (GTC 2025, "CUDA Techniques to
Maximize Compute and Instruction Throughput"); about 30 of an L1 or shared-memory access and 600 of one that goes to
memory (the same; R. Bourgeois, "Five basic performance advice": an L1 hit costs 5-10 FMAs, memory 50-100 and more).
"""

from __future__ import annotations

import functools

from pytest_gpuperf.compile.warp_model.decode import Step
from pytest_gpuperf.model.architectures import plain

LATENCY: dict[str, float] = {
    "fp16": 4, "fp32": 4, "fp64": 8, "integer": 4, "compare": 4, "move": 4, "mufu": 18, "conversion": 12,
    "shared_load": 30, "local_load": 30, "constant_load": 8, "global_load": 600, "texture": 600, "atomic": 600,
    "bulk_copy": 600, "tensor": 32,
}  # fmt: skip
"""Cycles from issue until the result can be used, by class of instruction; 1 for what is not named."""
BARRIER_CYCLES = 30
"""Cycles for which a barrier holds a warp up, even if all others are there."""

FULL_FP64 = frozenset({"sm_80", "sm_90", "sm_100"})
"""Half the single-precision rate or so; all others have two units per SM."""
HALF_FP32 = frozenset({"sm_75", "sm_80"})
"""64 single-precision units per SM instead of 128."""


@functools.cache
def issue_cycles(klass: str, arch: str) -> float:
    """Cycles for which an instruction of this class keeps its unit of one scheduler busy."""
    base = plain(arch)
    if klass == "fp64":
        return 2 if base in FULL_FP64 else 64
    if klass in ("fp32", "fp16"):
        return 2 if base in HALF_FP32 else 1
    return {"mufu": 8, "conversion": 8, "integer": 2, "compare": 2, "tensor": 16}.get(klass, 1)


class Clock:
    """Cycles of a scheduler, as one warp by itself sees them."""

    def __init__(self) -> None:
        self._now = 0.0
        self._ready: dict[str, tuple[float, str]] = {}
        """When a result will be there, and the class of what makes it."""

    def advance(self, step: Step) -> tuple[float, float, str]:
        """Cycles since the instruction before; of these the ones waited for sources, and the class of their maker."""
        ready, latest = self._ready, (0.0, "")
        for name in step.reads:
            if name in ready and ready[name] > latest:
                latest = ready[name]
        wait, waited_for = latest
        start = self._now + 1
        if step.operation == "BAR":
            wait, waited_for = start + BARRIER_CYCLES, step.klass
        waited = max(wait - start, 0.0)
        start += waited
        done = (start + LATENCY.get(step.klass, 1), step.klass)
        for name in step.writes:
            ready[name] = done
        cycles, self._now = start - self._now, start
        return cycles, waited, waited_for
