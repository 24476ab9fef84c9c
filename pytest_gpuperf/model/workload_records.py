"""All that baselines have of one workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pytest_gpuperf.model.evidence import Session, StaticRecord, TimeRecord
from pytest_gpuperf.model.timed_round import RecordedRound


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


def rounds_on(uuid: str, record: TimeRecord, sessions: Mapping[str, Session]) -> tuple[RecordedRound, ...]:
    """Those that were taken on this GPU; those of a session that is not among ``sessions`` are another GPU's."""
    return tuple(one for one in record.rounds if one.session in sessions and sessions[one.session].uuid == uuid)
