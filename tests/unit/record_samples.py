"""Records of workloads to compare, as two states of the baselines have them."""

from __future__ import annotations

from typing import Any

from pytest_gpuperf.model.evidence import Occupancy, StaticProfile, StaticRecord
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.time_record import Identity, TimeRecord, WorkloadRecords
from pytest_gpuperf.report.document import SCHEMA, RunReport

CODE = "c0" * 32
LAUNCH = "grid=(8, 1, 1) block=(256, 1, 1) shared=0"


def profile_of(**figures: Any) -> StaticProfile:
    """Of a small kernel without spills and shared memory."""
    known = {"registers": 32, "stack_bytes": 0, "spill_store_bytes": 0, "spill_load_bytes": 0, "shared_bytes": 0,
             "constant_bytes": 368, "barriers": 0, "code_bytes": 1152, "instructions": 61, "opcodes": {},
             "code_hash": CODE}  # fmt: skip
    return StaticProfile(**{**known, **figures})


def static_of(
    *, code: str = CODE, block: tuple[int, int, int] = (256, 1, 1), registers: int = 40, spills: int = 0,
    occupancy: float = 0.5, kernel: str = "scale", source: str = "50" * 32, grid: tuple[int, int, int] | None = None,
    **profile: int,
) -> StaticRecord:  # fmt: skip
    """``spills``: bytes stored, and as many loaded."""
    return StaticRecord(
        kernel=kernel, source_hash=source, block=block, grid=grid,
        profile=profile_of(
            registers=registers, spill_store_bytes=spills, spill_load_bytes=spills, opcodes={"global_load": 4},
            code_hash=code, **profile,
        ),
        occupancy=Occupancy(blocks_per_sm=4, warps_per_sm=32, fraction=occupancy, limiter="registers"),
    )  # fmt: skip


def identity_of(*arguments: str, code: str = CODE, launch: str = LAUNCH) -> Identity:
    return Identity(code=code, launch=launch, arguments=arguments)


def time_of(
    midmean: float = 6640.0, identity: Identity | None = None, counters: dict[str, float] | None = None,
    kernel: str = "scale", **changes: object,
) -> TimeRecord:  # fmt: skip
    """A record of one round."""
    return TimeRecord(**{
        "identity": identity or identity_of(), "timer": "cupti", "cache": "cold", "rounds": (midmean,),
        "counters": counters or {}, "kernel": kernel, **changes,
    })  # fmt: skip


def records_of(
    *, code: str = CODE, block: tuple[int, int, int] = (256, 1, 1), identity: Identity | None = None,
    static: bool = True,
) -> WorkloadRecords:  # fmt: skip
    """Static evidence for one architecture, and a time where there is an ``identity``."""
    of_code = {("sm_90", "nvrtc 13.0.88"): static_of(code=code, block=block)} if static else {}
    return WorkloadRecords(of_code, {"nvidia-h200": time_of(identity=identity)} if identity is not None else {})


def report_of(*tests: TestEvidence, **fields: Any) -> RunReport:
    """The report of a red run with these tests."""
    usual: dict[str, Any] = {
        "schema": SCHEMA, "date": "2026-11-22T12:00:00Z", "plugin": "0.1.0", "task": "gating", "exit_status": 1,
        "verdicts": {}, "problems": (), "warnings": (), "machines": ("NVIDIA H200",),
    }  # fmt: skip
    return RunReport(tests=tests, **{**usual, **fields})
