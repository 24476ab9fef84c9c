"""The records of the files that differ between two states of the baselines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from pytest_gpuperf.baselines.file_types import EvidenceFile, TimeFile
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.snapshots import MANIFEST, Place, Snapshot, relative_path
from pytest_gpuperf.model.evidence import Key, Session, StaticRecord, WorkloadRecords


class Difference(NamedTuple):
    """What two states have on record of the workloads of files that differ."""

    before: Mapping[Key, WorkloadRecords]
    after: Mapping[Key, WorkloadRecords]
    elsewhere: frozenset[Key]
    """Those that files have which do not differ."""
    manifests: tuple[Manifest | None, Manifest | None]
    """Both None if they do not differ."""
    edited: tuple[tuple[str, Session, Session], ...] = ()
    """Recordings of one id that say something else, which no update makes: target, before and after."""


def difference(before: Snapshot, after: Snapshot) -> Difference:
    """Everything of the files that differ; one that cannot be read on a side is left out on the other too."""
    places = sorted((before.ids.keys() | after.ids.keys()) - {MANIFEST})
    equal = {place for place in places if before.ids.get(place) == after.ids.get(place)}
    old, new, elsewhere = no_records(), no_records(), no_records()
    edited: list[tuple[str, Session, Session]] = []
    for place in places:
        if place in equal or _skipped(place, before, after):
            continue
        files = before.file(place), after.file(place)
        if not _skipped(place, before, after):
            for records, file in zip((old, new), files, strict=True):
                add_records(records, place.module, file)
            edited += [(place.target, *both) for both in _edited(*files)]
    modules = {key.module for key in old.keys() ^ new.keys()}
    for place in sorted(equal):
        if place.module in modules:
            add_records(elsewhere, place.module, after.file(place))
    return Difference(dict(old), dict(new), frozenset(elsewhere), _manifests(before, after), tuple(edited))


def _edited(before: EvidenceFile | None, after: EvidenceFile | None) -> list[tuple[Session, Session]]:
    if not isinstance(before, TimeFile) or not isinstance(after, TimeFile):
        return []
    known = {session.id: session for session in before.sessions}
    return [(known[one.id], one) for one in after.sessions if known.get(one.id, one) != one]


def any_compared(before: Snapshot, after: Snapshot) -> bool:
    """After ``difference``: whether there is a file of evidence that no side had to leave out."""
    places = (before.ids.keys() | after.ids.keys()) - {MANIFEST}
    return any(not _skipped(place, before, after) for place in places)


def _manifests(before: Snapshot, after: Snapshot) -> tuple[Manifest | None, Manifest | None]:
    if before.ids.get(MANIFEST) == after.ids.get(MANIFEST):
        return None, None
    both = before.manifest(), after.manifest()
    return (None, None) if _skipped(MANIFEST, before, after) else both


def _skipped(place: Place, before: Snapshot, after: Snapshot) -> bool:
    path = relative_path(place)
    return path in before.skipped or path in after.skipped


RecordsByKey = defaultdict[Key, WorkloadRecords]


def no_records() -> RecordsByKey:
    """A mapping that fills itself."""
    return defaultdict(lambda: WorkloadRecords({}, {}))


def add_records(records: RecordsByKey, module: str, file: EvidenceFile | None) -> None:
    """Add a file's records, if there is one, to those of their workloads."""
    if file is None:
        return
    for toolchain, test, name, record in file.records():
        known = records[Key(module=module, test=test, workload=name)]
        if isinstance(record, StaticRecord):
            known.static[file.target, toolchain] = record
        else:
            known.times[file.target] = record
