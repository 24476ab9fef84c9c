"""Bytes of a file of records, which may come from anybody, to records and back.

Equal records are equal bytes.  What is read is checked by the same rules as what is written.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.baselines.baseline_errors import (
    BaselineError,
    has_unprintable,
    in_conflict,
    quoted,
    unreadable,
)
from pytest_gpuperf.baselines.layout import is_arch, is_sha256
from pytest_gpuperf.baselines.records import SCHEMA_VERSION, Head, Name, RecordFile, Recording, StaticLine, TimeLine
from pytest_gpuperf.model.evidence import StaticRecord, schema_of
from pytest_gpuperf.model.time_record import RecordedRound, Session, TimeRecord

MAX_FILE_BYTES = 16 << 20
_MOST_VALUES = 1_200_000
"""Commas, colons and lines of a file: read in 200 MB at most.  Ten thousand workloads have two thirds of it."""
MIN_TIME_NS, MAX_TIME_NS = 1e-3, 1e15
"""Judges take logarithms of times, and quotients."""
_EXACT = 2**53
"""Limit below which a double without a fraction is printed as a whole number and reads back the same."""
_MARKER = re.compile(rb"^(?:<<<<<<<|>>>>>>>) ", re.MULTILINE)
_ESCAPE = re.compile(rb'(?<!\\)(?:\\\\)*\\[^"\\]')
"""Any JSON escape but those of ``"`` and of the backslash: the encoder writes no other one."""
_ENCODER = msgspec.json.Encoder()
_STATIC, _TIME = msgspec.json.Decoder(StaticLine), msgspec.json.Decoder(TimeLine)


class _BadContent(ValueError):
    """Says what is wrong, and where."""


def read_bounded(path: Path, limit: int = MAX_FILE_BYTES) -> bytes | None:
    """The file's bytes, if there is one.  Raises ``BaselineError``, also for a pipe or above ``limit``."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise unreadable(path, "it is not a regular file")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, f"the system says: {error.strerror or error}") from error
    if len(content) > limit:
        raise unreadable(path, f"it is larger than {limit // 1024 // 1024} MB")
    return content


def encode(file: RecordFile[Any]) -> bytes:
    """UTF-8 with a trailing newline, sorted by test and workload.  Raises ``BaselineError`` as ``decode`` would."""
    lines = [Head(schema=SCHEMA_VERSION, target=file.target), *(_line(file, name) for name in sorted(file.records))]
    try:
        content = b"\n\n".join(
            _ENCODER.encode(_plain(msgspec.to_builtins(line, order="deterministic"))) for line in lines
        )
        _decoded(content, file.target)
    except (_BadContent, UnicodeEncodeError, OverflowError) as error:
        raise BaselineError(f"this evidence cannot become a baseline for {file.target}: {error}") from error
    if len(content) >= MAX_FILE_BYTES:
        raise BaselineError(
            f"the records of one test module for {file.target} would have {len(content)} bytes, and {MAX_FILE_BYTES} "
            "are read at most. Split the test module."
        )
    return content + b"\n"


def decode(content: bytes, place: object, target: str) -> RecordFile[Any]:
    """The records of a file of ``target``; ``place`` names it in messages.  Raises ``BaselineError``."""
    refuse_conflict(content, place)
    try:
        return _decoded(content, target)
    except _BadContent as error:
        raise unreadable(place, quoted(str(error), 400)) from error


def _decoded(content: bytes, target: str) -> RecordFile[Any]:
    """Raises ``_BadContent`` for whatever no file of records has."""
    at = 1
    decoder: msgspec.json.Decoder[Any] = _STATIC if is_arch(target) else _TIME
    records: dict[Name, Any] = {}
    sessions: dict[str, Session] = {}
    try:
        _check_text(content)
        lines = content.split(b"\n")
        _check_head(lines[0], target)
        for at, line in enumerate(lines[1:], 2):  # noqa: B007 errors name the line
            if line and not line.isspace():
                name, record = _record(decoder.decode(line), sessions)
                if name in records:
                    raise ValueError(f"the record of {name.test} [{name.workload}] is there twice")
                _check(name, record)
                records[name] = record
    except RecursionError:
        raise _BadContent(f"line {at} is nested too deeply") from None
    except ValueError as error:  # of msgspec and of Unicode too
        raise _BadContent(f"line {at}: {error}") from error
    return RecordFile(target, records, sessions)


def refuse_conflict(content: bytes, place: object) -> None:
    """Raise ``BaselineError`` for a file in which a merge left its markers."""
    marker = _MARKER.search(content)
    if marker is not None:
        raise in_conflict(place, content.count(b"\n", 0, marker.start()) + 1)


def _plain(value: Any) -> Any:
    """The value with whole numbers that have no fraction."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT else value


def _line(file: RecordFile[Any], name: Name) -> StaticLine | TimeLine:
    record = file.records[name]
    if isinstance(record, StaticRecord):
        return StaticLine(test=name.test, workload=name.workload, toolchain=name.toolchain, record=record)
    of_session: dict[str, list[float]] = {}
    for one in record.rounds:
        of_session.setdefault(one.session, []).append(one.midmean)
    if not of_session or not of_session.keys() <= file.sessions.keys():
        raise BaselineError(f"{name.test} [{name.workload}] has no rounds, or some of a session that is not known")
    sessions = sorted((file.sessions[one] for one in of_session), key=lambda one: one.date)
    recordings = (Recording(**msgspec.structs.asdict(one), midmeans=tuple(of_session[one.id])) for one in sessions)
    bare = msgspec.structs.replace(record, rounds=())
    return TimeLine(test=name.test, workload=name.workload, sessions=tuple(recordings), record=bare)


def _record(line: StaticLine | TimeLine, sessions: dict[str, Session]) -> tuple[Name, StaticRecord | TimeRecord]:
    """The name and the record of a line, whose sessions are put to ``sessions``."""
    if isinstance(line, StaticLine):
        return Name(line.test, line.workload, line.toolchain), line.record
    rounds: list[RecordedRound] = []
    for one in line.sessions:
        if one.id not in sessions:
            facts = msgspec.structs.asdict(one)
            del facts["midmeans"]
            sessions[one.id] = Session(**facts)
        rounds += (RecordedRound(session=one.id, midmean=midmean) for midmean in one.midmeans)
    return Name(line.test, line.workload), msgspec.structs.replace(line.record, rounds=tuple(rounds))


# --- conditions beyond the types -----------------------------------------------------------------


def _check_text(content: bytes) -> None:
    if sum(map(content.count, (b",", b":", b"\n"))) > _MOST_VALUES:
        raise ValueError(f"the file has more than {_MOST_VALUES} values")
    if has_unprintable(content.replace(b"\r\n", b"").replace(b"\n", b"").decode("utf-8")) or _ESCAPE.search(content):
        raise ValueError("there is a control character in a text, or an escaped one")


def _check_head(line: bytes, target: str) -> None:
    schema = schema_of(line)
    if schema != SCHEMA_VERSION:
        remedy = "upgrade pytest-gpuperf" if schema > SCHEMA_VERSION else "record it again"
        raise ValueError(f"its schema is {schema}, and this pytest-gpuperf reads {SCHEMA_VERSION}: {remedy}")
    found = msgspec.json.decode(line, type=Head).target
    if found != target:
        raise ValueError(f"its target is '{found}', and it lies in the folder of '{target}'")


def _check(name: Name, record: StaticRecord | TimeRecord) -> None:
    """Raises ``ValueError`` for what judges could not compute with."""
    where = f"{name.test} [{name.workload}]"
    if record.cubin and not is_sha256(record.cubin):
        raise ValueError(f"{where}: its cubin is no SHA-256")
    if isinstance(record, StaticRecord):
        profile = record.profile
        counts = (profile.registers, profile.instructions, *profile.opcodes.values(), *(record.block or ()))
        if not all(0 <= count < _EXACT for count in counts):
            raise ValueError(f"{where}: a count is below zero, or too large")
        return
    host = record.beside.host if record.beside is not None else None
    times = [*(one.midmean for one in record.rounds), *((host.time_ns, *host.ratios) if host is not None else ())]
    if not record.rounds or not all(MIN_TIME_NS <= one <= MAX_TIME_NS for one in times):
        raise ValueError(f"{where}: there is no time, or one outside of {MIN_TIME_NS:g} to {MAX_TIME_NS:g} ns")
