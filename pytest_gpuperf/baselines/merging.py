"""The recording rules: old file and new evidence in, new file out.  Pure.

Static evidence replaces what its toolchain had; other toolchains stay.  Time evidence of the same execution, timer and
cache mode joins the earlier rounds, the last five sessions of each workload being kept; anything else replaces them.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Collection, Iterable, Mapping

import msgspec

from pytest_gpuperf.baselines.baseline_errors import UnwritableEvidenceError
from pytest_gpuperf.baselines.file_types import StaticFile, TimeFile
from pytest_gpuperf.baselines.rounding import (
    round_record,
    round_session,
    rounded_beside,
    with_counts,
)
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.model.beside_figures import Beside, updated
from pytest_gpuperf.model.evidence import Identity, Key, Session, StaticRecord, TimeRecord

KEPT_SESSIONS = 5


@dataclasses.dataclass(frozen=True)
class Update:
    """Evidence of one run that is to become the baseline.  Which workloads to take is the caller's decision."""

    static: Mapping[tuple[str, str, Key], StaticRecord] = dataclasses.field(default_factory=dict)
    """By architecture (``sm_90``), toolchain (``nvrtc 13.0.88``) and workload."""
    time: Mapping[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    """By GPU model (``nvidia-h200``) and workload."""
    counters: Mapping[tuple[str, Key], Counts] = dataclasses.field(default_factory=dict)
    """The same, for workloads whose time record stays as it is and gets these counters."""
    beside: Mapping[tuple[str, Key], Beside] = dataclasses.field(default_factory=dict)
    """The same, for workloads whose time is on record or in this update and which get these figures."""
    stays: Mapping[tuple[str, Key], Identity] = dataclasses.field(default_factory=dict)
    """What the records ran that stay and get counters or figures, as this run found them."""
    sessions: Collection[Session] = ()
    """Sessions that the time records' rounds name, oldest first."""
    cubins: Collection[bytes] = ()
    """Machine code that the time records name, unless the store has it already."""
    profile: str = ""
    """Tolerance profile, for a manifest that names none."""
    asked: Collection[str] | None = None
    """Architectures of the run: evidence of others is that of kernels that name them.  None: all are."""

    @property
    def targets(self) -> set[str]:
        """Architectures and GPU models that it has evidence of."""
        return {arch for arch, _, _ in self.static} | {
            device for device, _ in (*self.time, *self.counters, *self.beside)
        }

    @property
    def toolchains(self) -> set[str]:
        """Compilers of its static evidence."""
        return {toolchain for _, toolchain, _ in self.static}


def merge_static(old: StaticFile | None, target: str, new: Iterable[tuple[str, Key, StaticRecord]]) -> StaticFile:
    """``new``: toolchain, key, record; all keys of one module.

    Their order says nothing: tests end in another one on workers.  Of several sources or cubins of equal code, those of
    the last key are taken.
    """
    toolchains = {
        toolchain: {test: dict(workloads) for test, workloads in tests.items()}
        for toolchain, tests in (old.toolchains if old else {}).items()
    }
    latest: dict[tuple[str, ...], StaticRecord] = {}
    for toolchain, key, record in sorted(new, key=operator.itemgetter(0, 1)):
        toolchains.setdefault(toolchain, {}).setdefault(key.test, {})[key.workload] = record
        latest[_code(toolchain, record)] = record
    for toolchain, tests in toolchains.items():
        for workloads in tests.values():
            for name, record in workloads.items():
                known = latest.get(_code(toolchain, record), record)
                if known is not record:
                    workloads[name] = _from_the_source_of(record, known)
    return StaticFile(target=target, toolchains=toolchains, schema=SCHEMA_VERSION)


def of_one_source(static: Mapping[tuple[str, str, Key], StaticRecord]) -> dict[tuple[str, str, Key], StaticRecord]:
    """Records of an update as ``merge_static`` is going to have them: those of equal code in a file name one cubin."""

    def code_of(place: tuple[str, str, Key]) -> tuple[str, ...]:
        arch, toolchain, key = place
        return (arch, key.module, *_code(toolchain, static[place]))

    latest = {code_of(place): static[place] for place in sorted(static)}
    return {place: _from_the_source_of(record, latest[code_of(place)]) for place, record in static.items()}


def _code(toolchain: str, record: StaticRecord) -> tuple[str, ...]:
    """What makes records those of one machine code."""
    return toolchain, record.kernel, record.symbol, record.profile.code_hash


def _from_the_source_of(record: StaticRecord, latest: StaticRecord) -> StaticRecord:
    """Of equal code, the record with the source and the cubin of the one that was taken last."""
    return msgspec.structs.replace(record, source_hash=latest.source_hash, cubin=latest.cubin or record.cubin)


def merge_time(
    old: TimeFile | None,
    target: str,
    new: Iterable[tuple[Key, TimeRecord]],
    sessions: Collection[Session],
    counters: Iterable[tuple[Key, Counts]] = (),
    beside: Iterable[tuple[Key, Beside]] = (),
    stays: Iterable[tuple[Key, Identity]] = (),
) -> TimeFile:
    """``new``: keys of one module; ``counters`` replace those on record.

    Figures ``beside`` the time take the place of those of their kind alone.

    Raises ``UnwritableEvidenceError``, also where a record that ``stays`` is of other work by now.
    """
    for key, identity in stays:
        there = old.tests.get(key.test, {}).get(key.workload) if old else None
        if there is not None and there.identity != identity and not there.identity.same_execution(identity):
            raise UnwritableEvidenceError(
                f"{key}: another update has recorded other work meanwhile: run this one again"
            )
    given = {session.id: round_session(session) for session in sessions}
    table = by_date([*(old.sessions if old else ()), *given.values()])
    tests = {test: dict(workloads) for test, workloads in (old.tests if old else {}).items()}
    for key, record in new:
        for name in (entry.session for entry in record.rounds if entry.session not in given):
            raise UnwritableEvidenceError(f"{key}: a round names session '{name}', which the update does not have")
        workloads = tests.setdefault(key.test, {})
        workloads[key.workload] = _joined(workloads.get(key.workload), round_record(record, given), table)
    for key, counts in counters:
        known = tests.get(key.test, {}).get(key.workload)
        if known is None:
            raise UnwritableEvidenceError(f"{key}: counters belong to a time on record, and there is none")
        tests[key.test][key.workload] = with_counts(known, counts)
    for key, figures in beside:
        known = tests.get(key.test, {}).get(key.workload)
        if known is None:
            raise UnwritableEvidenceError(f"{key}: figures beside a time belong to one on record, and there is none")
        all_of_it = updated(known.beside, rounded_beside(figures))
        tests[key.test][key.workload] = msgspec.structs.replace(known, beside=all_of_it)
    return referenced_only(TimeFile(target=target, sessions=tuple(table.values()), tests=tests, schema=SCHEMA_VERSION))


def referenced_only(file: TimeFile) -> TimeFile:
    """The file without the sessions that no round names any more."""
    named = {entry.session for *_, record in file.records() for entry in record.rounds}
    return msgspec.structs.replace(file, sessions=tuple(session for session in file.sessions if session.id in named))


def by_date(sessions: Iterable[Session]) -> dict[str, Session]:
    """By id, oldest first; of two with one id the later given; equal dates stay in the order given."""
    latest = {session.id: session for session in sessions}
    return {session.id: session for session in sorted(latest.values(), key=lambda session: session.date)}


def _joined(old: TimeRecord | None, new: TimeRecord, sessions: Mapping[str, Session]) -> TimeRecord:
    """The new record, with the old one's counters and, of the same timer, rounds if both ran the same thing alike."""
    rounds, counts = list(new.rounds), Counts.of(new)
    if old is not None and _alike(old, new):
        counts = replaced(Counts.of(old), counts)
        if old.timer == new.timer:
            again = {entry.session for entry in new.rounds}
            rounds = [entry for entry in old.rounds if entry.session not in again] + rounds
    place = {session: index for index, session in enumerate(sessions)}
    kept = set(sorted({entry.session for entry in rounds}, key=place.__getitem__)[-KEPT_SESSIONS:])
    rounds = sorted((entry for entry in rounds if entry.session in kept), key=lambda entry: place[entry.session])
    beside = updated(None if old is None else old.beside, new.beside)
    return with_counts(msgspec.structs.replace(new, rounds=tuple(rounds), beside=beside), counts)


def _alike(old: TimeRecord, new: TimeRecord) -> bool:
    """Whether both ran the same thing from the same caches: what was counted stays, and times of one timer do."""
    return new.identity.same_execution(old.identity) and old.cache == new.cache
