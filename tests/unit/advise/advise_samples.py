"""Usages, sides and cases for tests of advice."""

from __future__ import annotations

from typing import Any

from record_samples import profile_of

from pytest_gpuperf.advise.comparison import Case, Side, Usage
from pytest_gpuperf.model.evidence import Occupancy, StaticProfile, StaticRecord
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

COPY = Usage(
    issued=100.0, classes={"global_load": 4.0, "global_store": 1.0, "fp32": 20.0, "integer": 30.0},
    global_requests=5.0, global_bytes=640.0, global_sectors=20.0, global_ideal=20.0,
    global_width=4.0, single_warp_cycles=1000.0, waits={"global_load": 700.0, "fp32": 60.0}, warps=16.0, limit=16.0,
)  # fmt: skip
"""A coalesced kernel of moderate length that fills the SM."""


def profile(code: str = "a", **figures: Any) -> StaticProfile:
    return profile_of(**{"opcodes": {"fp32": 20}, "code_hash": code * 64, **figures})


def record(code: str = "a", *, block: int = 256, warps: int = 64, dynamic: int = 0, limiter: str = "warps",
           **figures: Any) -> StaticRecord:  # fmt: skip
    return StaticRecord(
        kernel="kernel", source_hash="0" * 64, profile=profile(code, **figures), block=(block, 1, 1),
        dynamic_shared_bytes=dynamic,
        occupancy=Occupancy(blocks_per_sm=warps * 32 // block, warps_per_sm=warps, fraction=warps / 64,
                            limiter=limiter),
    )  # fmt: skip


def side(static: StaticRecord | None = None, **more: Any) -> Side:
    return Side(arch="sm_90", static=static, **more)


def case(was: Usage = COPY, now: Usage = COPY, *, before: Side | None = None, after: Side | None = None,
         counted: bool = False) -> Case:  # fmt: skip
    return Case(before or side(record("a")), after or side(record("b")), was, now, counted)


def dry(executed: dict[str, float] | None = None, *accesses: Access, **figures: Any) -> WarpEstimate:
    counts = executed or {"fp32": 20.0, "integer": 30.0, "global_load": 4.0, "global_store": 1.0}
    return WarpEstimate(**{"model": 1, "executed": counts, "cycles": 1000.0, "accesses": accesses, **figures})


def load(sectors: float = 4.0, times: float = 4.0, size: int = 4, op: str = "global_load") -> Access:
    sizes = {"bytes": size, "distinct": 32 * size * times}
    return Access(op=op, times=times, sectors=sectors, wavefronts=1, **sizes)  # type: ignore[arg-type]
