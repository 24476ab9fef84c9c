"""Small, explicit evidence for the tests of ``judge``."""

from __future__ import annotations

from typing import Any

import msgspec
from record_samples import profile_of

from pytest_gpuperf.model.evidence import Key, Occupancy, StaticRecord

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")

PROFILE = profile_of(
    shared_bytes=1024, constant_bytes=560, barriers=1, code_bytes=1024, instructions=60,
    opcodes={"global_load": 4, "global_store": 4, "fp32": 20}, code_hash="aa",
)  # fmt: skip
OCCUPANCY = Occupancy(blocks_per_sm=8, warps_per_sm=64, fraction=1.0, limiter="warps")
HALF = Occupancy(blocks_per_sm=4, warps_per_sm=32, fraction=0.5, limiter="registers")
STATIC = StaticRecord(kernel="copy", source_hash="s", profile=PROFILE, block=(256, 1, 1), occupancy=OCCUPANCY)


def static(*, occupancy: Occupancy | None = OCCUPANCY, dynamic_shared_bytes: int = 0, **profile: Any) -> StaticRecord:
    """The sample kernel with some figures changed (and therefore another hash)."""
    changed = msgspec.structs.replace(PROFILE, **{"code_hash": "bb", **profile})
    return msgspec.structs.replace(
        STATIC, profile=changed, occupancy=occupancy, dynamic_shared_bytes=dynamic_shared_bytes
    )
