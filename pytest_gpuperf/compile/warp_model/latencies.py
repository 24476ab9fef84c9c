"""Rates of an SM's units by architecture, for the dry run and the advice.

Rates: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions" (results per clock and SM), divided
by the four schedulers.  Latencies are rounded: 4 cycles of an FMA and 8 of a DADD (GTC 2025, "CUDA Techniques to
Maximize Compute and Instruction Throughput"); about 30 of an L1 or shared-memory access and 600 of one that goes to
memory (the same; R. Bourgeois, "Five basic performance advice": an L1 hit costs 5-10 FMAs, memory 50-100 and more).
"""

from __future__ import annotations

import functools

from pytest_gpuperf.model.architectures import plain

LATENCY: dict[str, float] = {
    "fp16": 4, "fp32": 4, "fp64": 8, "integer": 4, "compare": 4, "move": 4, "mufu": 18, "conversion": 12,
    "shared_load": 30, "local_load": 30, "constant_load": 8, "global_load": 600, "texture": 600, "atomic": 600,
    "bulk_copy": 600, "tensor": 32,
}  # fmt: skip
"""Cycles from issue until the result can be used, by class of instruction; 1 for what is not named."""
LATENCY_OF_OPCODE = {"SHFL": 24, "REDUX": 24, "S2R": 20, "S2UR": 20}
"""Of instructions that differ from their class: shuffles, and reading a special register such as the thread's index."""
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
