"""The records of a test module for one target, and the bytes of their file, which may come from anybody.

A file has a head and then a line for each record, with an empty line between: git merges changes of neighbouring
records only where an unchanged line lies between them.  Equal records are equal bytes.  What is read is checked by the
same rules as what is written.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError, has_unprintable, quoted, unreadable
from pytest_gpuperf.baselines.layout import is_arch, is_sha256
from pytest_gpuperf.model.evidence import Key, Record, StaticRecord, schema_of
from pytest_gpuperf.model.time_record import SecondaryMetrics, Session, TimeRecord

SCHEMA_VERSION = 7
"""Of the files of records; a file of another version is refused."""
MAX_FILE_BYTES = 16 << 20
_MOST_VALUES = 1_200_000
"""Commas, colons and lines of a file: read in 200 MB at most.  Ten thousand workloads have two thirds of it."""
MIN_TIME_NS, MAX_TIME_NS = 1e-3, 1e15
"""Judges take logarithms of times, and quotients."""
TIME_DIGITS, OTHER_DIGITS = 6, 9
"""Of a midmean, an error of 0.0005 % at most; of what else of a time record has a fraction, such as counters."""
_EXACT = 2**53
"""Limit below which a double without a fraction is printed as a whole number and reads back the same."""
_MARKER = re.compile(rb"^(?:<<<<<<<|>>>>>>>) ", re.MULTILINE)
_ESCAPE = re.compile(rb'(?<!\\)(?:\\\\)*\\[^"\\]')
"""Any JSON escape but those of ``"`` and of the backslash: the encoder writes no other one."""


class Head(Record, frozen=True):
    """The first line of a file."""

    schema: int
    """``SCHEMA_VERSION``"""
    target: str
    """Architecture or GPU model, equal to the folder's name."""


class StaticLine(Record, frozen=True):
    """What the machine code of one workload says, by one compiler."""

    test: str
    workload: str
    toolchain: str
    """``nvrtc 13.0.88``"""
    record: StaticRecord


class TimeLine(Record, frozen=True):
    """The time and the counters of one workload on one GPU model."""

    test: str
    workload: str
    sessions: tuple[Session, ...]
    """One, with the times of its rounds."""
    record: TimeRecord
    """Without its rounds and session, which the line has."""


Place = tuple[Key, str]
"""What tells the records of a file apart: the workload and the toolchain, which is empty for a time."""
Records = Mapping[Place, Any]
"""Of a file: ``StaticRecord`` for an architecture, ``TimeRecord`` for a GPU model."""


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
    if content.startswith(b"version https://git-lfs."):
        raise BaselineError(f"{path} is a pointer of Git LFS. To do: git lfs pull; in CI, a checkout with lfs: true")
    if len(content) > limit:
        raise unreadable(path, f"it is larger than {limit // 1024 // 1024} MB")
    return content


def encode(records: Records, target: str) -> bytes:
    """UTF-8 with a trailing newline, sorted by test and workload; figures of time records are rounded here, once.

    Raises ``BaselineError`` as ``decode`` would.
    """
    digits = None if is_arch(target) else OTHER_DIGITS
    head = Head(schema=SCHEMA_VERSION, target=target)
    lines = [head, *(_line(*place, records[place]) for place in sorted(records))]
    plain = (_plain(msgspec.to_builtins(line, order="deterministic"), digits) for line in lines)
    try:
        content = b"\n\n".join(map(msgspec.json.encode, plain))
        _decoded(content, target, "")
    except (ValueError, OverflowError) as error:
        raise BaselineError(f"this evidence cannot become a baseline for {target}: {error}") from error
    if len(content) >= MAX_FILE_BYTES:
        raise BaselineError(
            f"the records of one test module for {target} would have {len(content)} bytes, and {MAX_FILE_BYTES} are "
            "read at most. Split the test module."
        )
    return content + b"\n"


def _line(key: Key, toolchain: str, record: StaticRecord | TimeRecord) -> StaticLine | TimeLine:
    if isinstance(record, StaticRecord):
        return StaticLine(test=key.test, workload=key.workload, toolchain=toolchain, record=record)
    midmeans = tuple(rounded(one, TIME_DIGITS) for one in record.rounds)
    sessions = (msgspec.structs.replace(record.session, midmeans=midmeans),) if record.session is not None else ()
    bare = msgspec.structs.replace(record, rounds=(), session=None)
    return TimeLine(test=key.test, workload=key.workload, sessions=sessions, record=bare)


def _plain(value: Any, digits: int | None) -> Any:
    """The value with so many significant digits, and with whole numbers that have no fraction."""
    if isinstance(value, dict):
        return {name: _plain(inner, digits) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, digits) for inner in value]
    if not isinstance(value, float):
        return value
    figure = value if digits is None or value.is_integer() else rounded(value, digits)
    return int(figure) if figure.is_integer() and abs(figure) < _EXACT else figure


def rounded(value: float, digits: int) -> float:
    """``value`` to ``digits`` significant digits; infinities and NaN pass through, for the checks to refuse by name."""
    return float(f"{value:.{digits - 1}e}")


def decode(content: bytes, path: object, target: str, module: str) -> Records:
    """The records of a file; ``path`` names it in messages.  Raises ``BaselineError``."""
    refuse_conflict(content, path)
    try:
        return _decoded(content, target, module)
    except ValueError as error:
        raise unreadable(path, quoted(str(error), 400)) from error


def _decoded(content: bytes, target: str, module: str) -> Records:
    """Raises ``ValueError``, which names the line, for whatever no file of records has."""
    at = 1
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(StaticLine if is_arch(target) else TimeLine)
    records: dict[Place, Any] = {}
    sessions: dict[Session, Session] = {}
    try:
        _check_text(content)
        lines = content.split(b"\n")
        _check_head(lines[0], target)
        for at, line in enumerate(lines[1:], 2):  # noqa: B007 errors name the line
            if line and not line.isspace():
                found = decoder.decode(line)
                place = Key(module=module, test=found.test, workload=found.workload), getattr(found, "toolchain", "")
                name = f"{found.test} [{found.workload}]"
                if place in records:
                    raise ValueError(f"the record of {name} is there twice")
                records[place] = _record(found, sessions)
                _check(name, records[place])
    except (ValueError, RecursionError) as error:  # of msgspec and of Unicode too
        raise ValueError(f"line {at}: {error}") from error
    return records


def _record(line: StaticLine | TimeLine, known: dict[Session, Session]) -> StaticRecord | TimeRecord:
    """The record of a line; equal sessions of several are one object in memory."""
    if isinstance(line, StaticLine):
        return line.record
    if not line.sessions:
        return line.record
    bare = msgspec.structs.replace(line.sessions[-1], midmeans=())
    return msgspec.structs.replace(line.record, rounds=line.sessions[-1].midmeans, session=known.setdefault(bare, bare))


def refuse_conflict(content: bytes, place: object) -> None:
    """Raise ``BaselineError`` for a file in which a merge left its markers."""
    marker = _MARKER.search(content)
    if marker is not None:
        line = content.count(b"\n", 0, marker.start()) + 1
        raise BaselineError(
            f"{place}: this baseline cannot be read: line {line} is an unresolved merge conflict.\n"
            "Resolve the code first. Then take one side and record what differs: git checkout --ours -- baselines && "
            "pytest --update-baselines=all"
        )


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


def _check(name: str, record: StaticRecord | TimeRecord) -> None:
    """Raises ``ValueError`` for what judges could not compute with."""
    if record.cubin and not is_sha256(record.cubin):
        raise ValueError(f"{name}: its cubin is no SHA-256")
    if isinstance(record, StaticRecord):
        profile = record.profile
        counts = (profile.registers, profile.instructions, *profile.opcodes.values(), *(record.block or ()))
        if not all(0 <= count < _EXACT for count in counts):
            raise ValueError(f"{name}: a count is below zero, or too large")
        return
    secondary = record.secondary or SecondaryMetrics()
    host = secondary.host
    times = [*record.rounds, *((host.time_ns, *host.ratios) if host is not None else ())]
    if not all(MIN_TIME_NS <= one <= MAX_TIME_NS for one in times):
        raise ValueError(f"{name}: a time is outside of {MIN_TIME_NS:g} to {MAX_TIME_NS:g} ns")
