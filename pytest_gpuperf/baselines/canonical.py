"""The one way to print an evidence file: equal content is equal bytes, and a change is a short diff.

Keys are sorted; a round, a session, an opcode table, an occupancy and a list of plain values take one line each; all
else is indented by two spaces.  Whole numbers have no fraction, others the shortest text that reads back the same.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from pytest_gpuperf.baselines.baseline_errors import UnwritableEvidenceError
from pytest_gpuperf.baselines.checks import BadContentError, check
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile
from pytest_gpuperf.model.evidence import Round

_EXACT = 2**53
"""Limit below which a double without a fraction is printed as a whole number and reads back the same."""
_ROUND_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Round)}


class _Line(NamedTuple):
    """A value that is printed on one line."""

    value: Any


def canonical_bytes(file: EvidenceFile) -> bytes:
    """UTF-8 JSON with a trailing newline.  Raises ``UnwritableEvidenceError`` for content that ``checks`` refuses."""
    try:
        check(file)
    except BadContentError as error:
        raise UnwritableEvidenceError(f"this evidence cannot become a baseline for {file.target}: {error}") from error
    tree = _plain(msgspec.to_builtins(file))
    _mark_static(tree) if isinstance(file, StaticFile) else _mark_time(tree)
    return (_text(tree, "") + "\n").encode("utf-8")


def _mark_static(tree: dict[str, Any]) -> None:
    for record in (one for tests in tree["toolchains"].values() for of in tests.values() for one in of.values()):
        record["profile"]["opcodes"] = _Line(record["profile"]["opcodes"])
        if "occupancy" in record:
            record["occupancy"] = _Line(record["occupancy"])


def _mark_time(tree: dict[str, Any]) -> None:
    tree["sessions"] = [_Line(session) for session in tree["sessions"]]
    for record in (one for workloads in tree["tests"].values() for one in workloads.values()):
        record["rounds"] = [_Line(_without_defaults(entry)) for entry in record["rounds"]]


def _without_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """A round without fields at their default: msgspec leaves out None and the like, but not a computed 0.0."""
    return {name: value for name, value in entry.items() if value != _ROUND_DEFAULTS.get(name)}


def _plain(value: Any) -> Any:
    """Lists for tuples, and whole numbers without a fraction."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


def _text(value: Any, indent: str) -> str:
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        entries = [f"{deeper}{_one_line(name)}: {_text(value[name], deeper)}" for name in sorted(value)]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(inner, _Line) for inner in value):
        return "[\n" + ",\n".join(deeper + _text(inner, deeper) for inner in value) + f"\n{indent}]"
    return _one_line(value.value if isinstance(value, _Line) else value)


def _one_line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
