"""The recording rules: the old records of a file and new evidence in, new records out.  Pure.

Static evidence replaces what its toolchain had.  Time evidence of the same execution, timer and cache mode joins the
earlier rounds, the last five sessions of each workload being kept; anything else replaces them.  Figures are rounded
here, once: times and ticks to the digits that noise leaves, counts not at all.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.records import Place, Records
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import Beside, Round, Session, TimeRecord, updated

KEPT_SESSIONS = 5
TIME_DIGITS = 6
"""Of a midmean: its error is 0.0005 % at most."""
SUMS = (".sum", ".max", ".min")
"""Ends of metrics that count; others are ratios, which no gate compares exactly."""


@dataclasses.dataclass(frozen=True)
class Update:
    """Evidence of one run that is to become the baseline.  Which workloads to take is the caller's decision."""

    static: Mapping[tuple[str, str, Key], StaticRecord] = dataclasses.field(default_factory=dict)
    """By architecture (``sm_90``), toolchain (``nvrtc 13.0.88``) and workload."""
    time: Mapping[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    """By GPU model (``nvidia-h200``) and workload; each with the sessions of its rounds."""
    figures: Mapping[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    """The same, of records that stay and get the counters and the figures beside the time that these have."""
    cubins: Collection[bytes] = ()
    """Machine code that the records name, unless the store has it already."""
    removed: Collection[tuple[str, Key]] | None = None
    """Records by target that go, of a full run; machine code that no record names goes with them.  None: all stay."""
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
            found[arch, key.module].new[key, toolchain] = record
        for (device, key), timed in self.time.items():
            found[device, key.module].new[key, ""] = timed
        for (device, key), timed in self.figures.items():
            found[device, key.module].figures[key, ""] = timed
        for target, key in self.removed or ():
            found[target, key.module].removed.add(key)
        return dict(sorted(found.items()))


@dataclasses.dataclass(frozen=True)
class FileUpdate:
    """The part of an update for one file."""

    new: dict[Place, StaticRecord | TimeRecord] = dataclasses.field(default_factory=dict)
    figures: dict[Place, TimeRecord] = dataclasses.field(default_factory=dict)
    removed: set[Key] = dataclasses.field(default_factory=set)


def merged(old: Records, update: FileUpdate) -> Records:
    """The records of one target and module after the update.  Raises ``BaselineError``."""
    records = dict(old)
    for place, record in update.new.items():
        records[place] = record if isinstance(record, StaticRecord) else _joined(records.get(place), _rounded(record))
    for place, record in update.figures.items():
        records[place] = _with_figures(records.get(place), record)
    return {place: record for place, record in records.items() if place[0] not in update.removed}


def _with_figures(known: TimeRecord | None, given: TimeRecord) -> TimeRecord:
    """The record with counters and figures of ``given``.  Raises ``BaselineError`` if it is of other work by now."""
    if known is None or not (known.identity == given.identity or known.identity.same_execution(given.identity)):
        raise BaselineError(f"{given.kernel}: another update has recorded other work meanwhile: run this one again")
    beside = updated(known.beside, given.beside and _rounded_beside(given.beside))
    return _with_counts(msgspec.structs.replace(known, beside=beside), Counts.of(given))


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
    rounds = tuple(one for session in kept for one in rounds if one.session == session.id)
    beside = updated(None if old is None else old.beside, new.beside)
    record = msgspec.structs.replace(new, rounds=rounds, sessions=tuple(kept), beside=beside)
    return _with_counts(record, counts)


# --- rounding ------------------------------------------------------------------------------------


def _rounded(record: TimeRecord) -> TimeRecord:
    """The record as it will be stored, but for its counters."""
    rounds = (Round(session=one.session, midmean=significant(one.midmean, TIME_DIGITS)) for one in record.rounds)
    return msgspec.structs.replace(
        record, rounds=tuple(rounds), sessions=tuple(map(_rounded_session, record.sessions)),
        beside=record.beside and _rounded_beside(record.beside),
    )  # fmt: skip


def _rounded_session(session: Session) -> Session:
    """Tick and overhead to four digits: they are measured, and last bits differ from run to run."""
    tick_ns, overhead_ns = significant(session.tick_ns, 4), significant(session.overhead_ns, 4)
    return msgspec.structs.replace(session, tick_ns=tick_ns, overhead_ns=overhead_ns)


def _rounded_beside(beside: Beside) -> Beside:
    """An error to six digits, ratios to five, their times to four."""
    accuracy = None if beside.accuracy is None else significant(beside.accuracy, 6)
    host = beside.host
    if host is not None:
        ratios = tuple(significant(ratio, 5) for ratio in host.ratios)
        host = msgspec.structs.replace(host, ratios=ratios, time_ns=significant(host.time_ns, 4))
    return msgspec.structs.replace(beside, accuracy=accuracy, host=host)


def _with_counts(record: TimeRecord, counts: Counts) -> TimeRecord:
    """The record with these counters in place of its own: counts as they are, ratios to six digits."""
    ranges = {name: (_figure(least, 9), _figure(most, 9)) for name, (least, most) in counts.ranges.items()}
    values = {name: _figure(value, 9 if name.endswith(SUMS) else 6) for name, value in counts.values.items()}
    return msgspec.structs.replace(record, counters=values, counter_ranges=ranges)


def _figure(value: float, digits: int) -> float:
    return float(value) if float(value).is_integer() else significant(value, digits)


def significant(value: float, digits: int) -> float:
    """``value`` to ``digits`` significant digits; infinities and NaN pass through, for the checks to refuse by name."""
    return float(f"{value:.{digits - 1}e}")
