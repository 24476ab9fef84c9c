"""All that baselines have of one workload."""

from __future__ import annotations

from typing import NamedTuple

from pytest_gpuperf.model.evidence import StaticRecord, TimeRecord


class WorkloadRecords(NamedTuple):
    """The records of one workload, for every target."""

    static: dict[tuple[str, str], StaticRecord]
    """By architecture and toolchain."""
    times: dict[str, TimeRecord]
    """By GPU model."""

    @property
    def kernel(self) -> str:
        """What it launches, as the user names it; empty for a callable."""
        names = [one.kernel for one in self.static.values()] + [one.kernel for one in self.times.values()]
        return next(filter(None, names), "")
