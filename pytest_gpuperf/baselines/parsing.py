"""Bytes of an evidence file, which may come from anybody, to a typed record or a ``BaselineError``."""

from __future__ import annotations

import contextlib
import gc
import json
import math
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from pytest_gpuperf.baselines.baseline_errors import NewerSchemaError, UnreadableBaselineError, quoted
from pytest_gpuperf.baselines.checks import BadContentError, check, check_plain
from pytest_gpuperf.baselines.document_types import Document, StaticDocument, TimeDocument
from pytest_gpuperf.baselines.documents import file_of
from pytest_gpuperf.baselines.file_types import EvidenceFile
from pytest_gpuperf.baselines.layout import is_arch
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION

MAX_JSON_BYTES = 16 * 1024 * 1024
MOST = {"objects": ((b"}", b"]"), 280_000), "keys": ((b":",), 700_000), "values": ((b",",), 1_000_000)}
"""Characters that end one of a kind, and how many a file may have, so that it takes 200 MB at most to read.

Ten thousand workloads have a third to a half of it.  What is opened and not closed is nested too deeply, or no JSON.
"""
_MOST_KEYS = 100_000
"""Of one object: ten times as many tests as a module may well have."""
_MARKER = re.compile(r"^(?:<<<<<<<|>>>>>>>) ", re.MULTILINE)


Raw = dict[str, Any]


class _RefusedError(ValueError):
    """JSON that a lenient parser would accept and this one does not."""


class _ConflictError(_RefusedError):
    """A merge stopped half-way and left its markers."""


def read_bounded(path: Path, limit: int) -> bytes | None:
    """The file's bytes, if there is one.  Raises ``UnreadableBaselineError``, also for a pipe or above ``limit``."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UnreadableBaselineError(path, "it is not a regular file")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableBaselineError(path, f"the system says: {error.strerror or error}") from error
    if len(content) > limit:
        raise UnreadableBaselineError(path, f"it is larger than {limit // 1024 // 1024} MB")
    return content


def decode(content: bytes, path: Path, target: str) -> EvidenceFile:
    """Typed content of an evidence file of ``target``.  Raises ``UnreadableBaselineError`` and ``NewerSchemaError``."""
    try:
        with _without_collection():
            return _decoded(content, path, target)
    except UnicodeEncodeError:
        raise UnreadableBaselineError(path, "it has text of lone surrogates, which is no UTF-8") from None
    except RecursionError:
        raise UnreadableBaselineError(path, "it is nested too deeply") from None
    except (_RefusedError, BadContentError, msgspec.ValidationError) as error:
        merging = isinstance(error, _ConflictError)
        raise UnreadableBaselineError(path, quoted(str(error), 400), merging=merging) from error


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Inside, nobody looks for circles of references: parsing makes none, and the search takes a third of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decoded(content: bytes, path: Path, target: str) -> EvidenceFile:
    raw = _current(_parse(content), path)
    if raw.get("target") != target:
        raise _RefusedError(
            f"it says that its target is {_shown(raw.get('target'))}, but lies in the folder of '{target}'"
        )
    expected = "static" if is_arch(target) else "time"
    if raw.get("kind") != expected:
        raise _RefusedError(
            f"its kind is {_shown(raw.get('kind'))}, and in the folder of '{target}' must be '{expected}'"
        )
    kind: type[Document] = StaticDocument if expected == "static" else TimeDocument
    file = file_of(msgspec.convert(raw, kind))
    check(file)
    return file


def _parse(content: bytes) -> Raw:
    """JSON, with all of its hazards refused: duplicate keys, NaN, numbers beyond 64 bits, anything but an object."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _RefusedError(f"it is not UTF-8 (byte {error.start})") from error
    if not text.strip():
        raise _RefusedError("it is empty")
    _refuse_dense(content)
    try:
        raw = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise _syntax(text, error) from error
    if not isinstance(raw, dict):
        raise _RefusedError("it holds no JSON object")
    check_plain(raw)
    return raw


def _refuse_dense(content: bytes) -> None:
    """Raise ``_RefusedError`` where there is more in it than in the records of any module."""
    for kind, (marks, most) in MOST.items():
        if sum(content.count(mark) for mark in marks) > most:
            raise _RefusedError(f"it has more than {most} {kind}")


def _syntax(text: str, error: json.JSONDecodeError) -> _RefusedError:
    if marker := _MARKER.search(text):
        number = text.count("\n", 0, marker.start()) + 1
        return _ConflictError(f"line {number} is an unresolved merge conflict")
    return _RefusedError(f"line {error.lineno}, column {error.colno}: {error.msg}")


def _unique(pairs: list[tuple[str, Any]]) -> Raw:
    if len(pairs) > _MOST_KEYS:
        raise _RefusedError(f"one object has {len(pairs)} keys")
    table = dict(pairs)
    if len(table) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _RefusedError(f"the key '{quoted(twice)}' appears twice in one object")
    return table


def _no_constant(name: str) -> NoReturn:
    raise _RefusedError(f"it holds {name}, which is not a number that a baseline may have")


def _integer(digits: str) -> int:
    if len(digits) > len(str(-(2**63))):
        raise _RefusedError(f"it holds an integer of {len(digits)} characters")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _RefusedError(f"the number {quoted(digits)} is out of range")
    return value


def _current(raw: Raw, path: Path) -> Raw:
    version = raw.get("schema")
    if isinstance(version, bool) or not isinstance(version, int):
        raise _RefusedError(f"its schema version is {_shown(version)}, not a whole number")
    if version > SCHEMA_VERSION:
        raise NewerSchemaError(path, version, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        raise _RefusedError(f"its schema version is {version}, and this pytest-gpuperf reads {SCHEMA_VERSION}")
    return raw


def _shown(value: Any) -> str:
    return "missing" if value is None else f"'{quoted(str(value))}'" if isinstance(value, (str, int)) else "not text"
