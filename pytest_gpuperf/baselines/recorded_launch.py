"""A kernel that this run did not launch, under the launch on record of it."""

from __future__ import annotations

import math

import msgspec

from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.judge.static_verdict import with_launch_of
from pytest_gpuperf.model.evidence import StaticRecord


def under_recorded_launch(record: StaticRecord, old: StaticRecord, arch: str) -> StaticRecord:
    """``record`` as it is if it was launched; else with the launch of ``old``, and the occupancy that it has there."""
    if record.block is not None:
        return record
    found = with_launch_of(record, old)
    if found.occupancy is not None or old.block is None or old.occupancy is None or math.prod(old.block) < 1:
        return found
    fits = occupancy(record.profile, arch, math.prod(old.block), max(old.dynamic_shared_bytes, 0))
    return msgspec.structs.replace(found, occupancy=fits)
