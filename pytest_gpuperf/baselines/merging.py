"""The recording rules: the old records of a file and new evidence in, new records out.  Pure.

Static evidence replaces what its toolchain had.  Time evidence of the same execution, timer and cache mode joins the
earlier rounds, the last five sessions of each workload being kept; anything else replaces them.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.records import Place, Records
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, updated

KEPT_SESSIONS = 5


@dataclasses.dataclass(frozen=True)
class Update:
    """Evidence of one run that is to become the baseline.  Which workloads to take is the caller's decision."""

    static: Mapping[tuple[str, str, Key], StaticRecord] = dataclasses.field(default_factory=dict)
    """By architecture (``sm_90``), toolchain (``nvrtc 13.0.88``) and workload."""
    time: Mapping[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    """By GPU model (``nvidia-h200``) and workload; each with the sessions of its rounds."""
    cubins: Collection[bytes] = ()
    """Machine code that the records name, unless the store has it already."""
    removed: Collection[tuple[str, Key]] | None = None
    """Records by target that go, of a full run; machine code that no record names goes with them.  None: all stay."""
    asked: Collection[str] | None = None
    """Architectures of the run: evidence of others is that of kernels that name them.  None: all are."""

    def by_file(self) -> dict[tuple[str, str], tuple[Records, set[Key]]]:
        """The new records of each file, and the workloads whose records go, by target and module."""
        found: defaultdict[tuple[str, str], tuple[dict[Place, Any], set[Key]]] = defaultdict(lambda: ({}, set()))
        for (arch, toolchain, key), record in self.static.items():
            found[arch, key.module][0][key, toolchain] = record
        for (device, key), timed in self.time.items():
            found[device, key.module][0][key, ""] = timed
        for target, key in self.removed or ():
            found[target, key.module][1].add(key)
        return dict(sorted(found.items()))


def merged(old: Records, new: Records, removed: Collection[Key] = ()) -> Records:
    """The records of one target and module after an update.  Raises ``BaselineError``."""
    records = {place: record for place, record in old.items() if place[0] not in removed}
    for place, record in new.items():
        records[place] = record if isinstance(record, StaticRecord) else _joined(records.get(place), record)
    return records


def _joined(old: TimeRecord | None, new: TimeRecord) -> TimeRecord:
    """The new record, with the old one's counters and, of the same timer, rounds if both ran the same thing alike."""
    rounds, counts = new.rounds, Counts.of(new)
    sessions = {one.id: one for one in new.sessions}
    if not {one.session for one in rounds} <= sessions.keys():
        raise BaselineError(f"{new.kernel}: the update lacks the session of a round")
    if old is not None and new.identity.same_execution(old.identity) and old.cache == new.cache:
        counts = replaced(Counts.of(old), counts)
        if old.timer == new.timer:
            rounds = (*(one for one in old.rounds if one.session not in sessions), *rounds)
            sessions = {one.id: one for one in old.sessions} | sessions
    kept = sorted(sessions.values(), key=lambda one: one.date)[-KEPT_SESSIONS:]
    return msgspec.structs.replace(
        new, rounds=tuple(one for session in kept for one in rounds if one.session == session.id),
        sessions=tuple(kept), beside=updated(None if old is None else old.beside, new.beside),
        counters=dict(counts.values), counter_ranges=dict(counts.ranges),
    )  # fmt: skip
