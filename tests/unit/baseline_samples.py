"""Evidence to build baselines from, in the shape that real recordings have."""

from __future__ import annotations

import hashlib

from record_samples import profile_of

from pytest_gpuperf.baselines.store import Baselines, Update
from pytest_gpuperf.model.evidence import Key, Occupancy, StaticRecord
from pytest_gpuperf.model.time_record import HostTime, Identity, Session, TimeRecord

H200 = "nvidia-h200"
NVRTC = "nvrtc 13.0.88"
CUBIN = b"\x7fELF cubin of the transpose"


def make_key(
    test: str = "test_transpose", workload: str = "padded", module: str = "example_suite/test_transpose.py"
) -> Key:
    return Key(module=module, test=test, workload=workload)


def make_static(registers: int = 32, opcodes: dict[str, int] | None = None, config: str = "") -> StaticRecord:
    usual = {"global_load": 4, "barrier": 1, "shared_store": 4}
    profile = profile_of(
        registers=registers, shared_bytes=4224, barriers=1, opcodes=usual if opcodes is None else opcodes
    )
    occupancy = Occupancy(blocks_per_sm=2, warps_per_sm=32, fraction=2 / 3, limiter="registers")
    return StaticRecord(
        kernel="transpose_padded", source_hash="50" * 32, profile=profile, block=(32, 32, 1), occupancy=occupancy,
        config=config,
    )  # fmt: skip


def make_session(number: int = 1, **changes: object) -> Session:
    """Session ``number`` was taken on the number-th of November."""
    fields: dict[str, object] = {
        "id": f"202611{number:02}T101500-9f3a", "date": f"2026-11-{number:02}T10:15:00Z", "gpu": "NVIDIA H200",
        "uuid": "GPU-1", "driver": "580.95.05", "toolchain": NVRTC, "timer": "cupti", "tick_ns": 32.0,
        "overhead_ns": 0.0,
    }  # fmt: skip
    return Session(**{**fields, **changes})  # type: ignore[arg-type]


def make_time(session: Session, *, rounds: tuple[float, ...] = (51234.2, 51234.2), **changes: object) -> TimeRecord:
    fields: dict[str, object] = {
        "identity": Identity(code="c0" * 32, launch="grid=(1024, 1, 1) block=(32, 32, 1) shared=0"),
        "timer": "cupti", "cache": "cold", "rounds": rounds,
        "session": session, "kernel": "transpose_padded", "cubin": hashlib.sha256(CUBIN).hexdigest(),
        "block": (32, 32, 1),
    }  # fmt: skip
    return TimeRecord(**{**fields, **changes})  # type: ignore[arg-type]


def make_host_time(**changes: object) -> HostTime:
    fields: dict[str, object] = {
        "ratios": (1.234567, 1.25, 1.24), "time_ns": 8123.456, "cpu": "Some CPU 9000", "made_by": "CPython 3.12",
    }  # fmt: skip
    return HostTime(**{**fields, **changes})  # type: ignore[arg-type]


def static_update(record: StaticRecord | None = None, key: Key | None = None, toolchain: str = NVRTC) -> Update:
    return Update(static={("sm_90", toolchain, key or make_key()): record or make_static()})


def time_update(session: Session, record: TimeRecord | None = None, key: Key | None = None) -> Update:
    return Update(time={(H200, key or make_key()): record or make_time(session)}, cubins=[CUBIN])


def keys_of(baselines: Baselines, target: str) -> tuple[Key, ...]:
    """Every workload with a baseline for a target, sorted."""
    modules = [module for one, module in baselines.places() if one == target]
    return tuple(sorted({key for module in modules for key, _ in baselines.load(target, module)}))
