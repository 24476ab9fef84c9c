"""The recording rules: the old records of a file and new evidence in, new records out.  Pure.

Static evidence replaces what its toolchain had.  Time evidence of the same execution, timer and cache mode joins the
earlier rounds, the last five sessions of each workload being kept; anything else replaces them.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.records import Name, R, RecordFile
from pytest_gpuperf.baselines.rounding import round_record, round_session, rounded_beside, with_counts
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import Session, TimeRecord, updated

KEPT_SESSIONS = 5


@dataclasses.dataclass(frozen=True)
class Update:
    """Evidence of one run that is to become the baseline.  Which workloads to take is the caller's decision."""

    static: Mapping[tuple[str, str, Key], StaticRecord] = dataclasses.field(default_factory=dict)
    """By architecture (``sm_90``), toolchain (``nvrtc 13.0.88``) and workload."""
    time: Mapping[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    """By GPU model (``nvidia-h200``) and workload."""
    figures: Mapping[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    """The same, of records that stay and get the counters and the figures beside the time that these have."""
    sessions: Collection[Session] = ()
    """Sessions that the time records' rounds name, oldest first."""
    cubins: Collection[bytes] = ()
    """Machine code that the time records name, unless the store has it already."""
    removed: Collection[tuple[str, Key]] | None = None
    """Records by target that go, of a full run; machine code that no record names goes with them.  None: all stay."""
    profile: str = ""
    """Tolerance profile, for a manifest that names none."""
    asked: Collection[str] | None = None
    """Architectures of the run: evidence of others is that of kernels that name them.  None: all are."""

    @property
    def targets(self) -> set[str]:
        """Architectures and GPU models that it has evidence of."""
        return {arch for arch, _, _ in self.static} | {device for device, _ in (*self.time, *self.figures)}

    def by_file(self) -> dict[tuple[str, str], FileUpdate]:
        """The parts of it by target and module."""
        found: defaultdict[tuple[str, str], FileUpdate] = defaultdict(FileUpdate)
        for (arch, toolchain, key), record in self.static.items():
            found[arch, key.module].static[Name(key.test, key.workload, toolchain)] = record
        for (device, key), timed in self.time.items():
            found[device, key.module].time[Name(key.test, key.workload)] = timed
        for (device, key), timed in self.figures.items():
            found[device, key.module].figures[Name(key.test, key.workload)] = timed
        for target, key in self.removed or ():
            found[target, key.module].removed.add((key.test, key.workload))
        return dict(sorted(found.items()))


@dataclasses.dataclass(frozen=True)
class FileUpdate:
    """The part of an update for one file."""

    static: dict[Name, StaticRecord] = dataclasses.field(default_factory=dict)
    time: dict[Name, TimeRecord] = dataclasses.field(default_factory=dict)
    figures: dict[Name, TimeRecord] = dataclasses.field(default_factory=dict)
    removed: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    """Tests and workloads."""


def merged_static(old: RecordFile[StaticRecord], update: FileUpdate) -> RecordFile[StaticRecord]:
    """The static records of one architecture and module after the update."""
    return _without(dataclasses.replace(old, records={**old.records, **update.static}), update)


def merged_time(
    old: RecordFile[TimeRecord], update: FileUpdate, new_sessions: Collection[Session]
) -> RecordFile[TimeRecord]:
    """The time records of one GPU model and module after the update.  Raises ``BaselineError``."""
    given = {session.id: round_session(session) for session in new_sessions}
    sessions = {**old.sessions, **given}
    records = dict(old.records)
    for name, record in update.time.items():
        for session in (entry.session for entry in record.rounds if entry.session not in given):
            raise BaselineError(f"{name.test} [{name.workload}]: the update lacks the session '{session}' of a round")
        records[name] = _joined(records.get(name), round_record(record, given), sessions)
    for name, record in update.figures.items():
        records[name] = _with_figures(records.get(name), record)
    return _without(RecordFile(old.target, records, sessions), update)


def _without(file: RecordFile[R], update: FileUpdate) -> RecordFile[R]:
    if not update.removed:
        return file
    kept = {name: one for name, one in file.records.items() if (name.test, name.workload) not in update.removed}
    return dataclasses.replace(file, records=kept)


def _with_figures(known: TimeRecord | None, given: TimeRecord) -> TimeRecord:
    """The record with counters and figures of ``given``.  Raises ``BaselineError`` if it is of other work by now."""
    if known is None or not (known.identity == given.identity or known.identity.same_execution(given.identity)):
        raise BaselineError(f"{given.kernel}: another update has recorded other work meanwhile: run this one again")
    beside = None if given.beside is None else rounded_beside(given.beside)
    return with_counts(msgspec.structs.replace(known, beside=updated(known.beside, beside)), Counts.of(given))


def _joined(old: TimeRecord | None, new: TimeRecord, sessions: Mapping[str, Session]) -> TimeRecord:
    """The new record, with the old one's counters and, of the same timer, rounds if both ran the same thing alike."""
    rounds, counts = list(new.rounds), Counts.of(new)
    if old is not None and new.identity.same_execution(old.identity) and old.cache == new.cache:
        counts = replaced(Counts.of(old), counts)
        if old.timer == new.timer:
            again = {entry.session for entry in new.rounds}
            rounds = [entry for entry in old.rounds if entry.session not in again] + rounds
    by_date = sorted({entry.session for entry in rounds}, key=lambda session: sessions[session].date)
    kept = by_date[-KEPT_SESSIONS:]
    rounds = sorted((entry for entry in rounds if entry.session in kept), key=lambda entry: kept.index(entry.session))
    beside = updated(None if old is None else old.beside, new.beside)
    return with_counts(msgspec.structs.replace(new, rounds=tuple(rounds), beside=beside), counts)
