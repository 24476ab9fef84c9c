"""The recording rules: the old records of a file and new evidence in, new records out.  Pure.

Static evidence replaces what its toolchain had, and a time the one before it.  Counters of the same execution, and
secondary metrics, stay where the new recording has none.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from pytest_gpuperf.baselines.records import Place, Records
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, updated


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
    """The records of one target and module after an update."""
    records = {place: record for place, record in old.items() if place[0] not in removed}
    for place, record in new.items():
        records[place] = record if isinstance(record, StaticRecord) else _joined(records.get(place), record)
    return records


def _joined(old: TimeRecord | None, new: TimeRecord) -> TimeRecord:
    """The new record with what it lacks: secondary metrics and, if both ran the same thing alike, counters."""
    counts = Counts.of(new)
    if old is not None and new.identity.same_execution(old.identity) and old.cache == new.cache:
        counts = replaced(Counts.of(old), counts)
    return msgspec.structs.replace(
        new, beside=updated(None if old is None else old.beside, new.beside),
        counters=dict(counts.values), counter_ranges=dict(counts.ranges),
    )  # fmt: skip
