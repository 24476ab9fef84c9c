"""The one way to print an evidence file: equal content is equal bytes, and a change is a short diff.

Keys are sorted; the figures of a machine code, its hashes, a launch, a session and what was timed in it, a family of
counters and a list of plain values take one line each; all else is indented by two spaces.  Whole numbers have no
fraction, others the shortest text that reads back the same.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from pytest_gpuperf.baselines.baseline_errors import UnwritableEvidenceError
from pytest_gpuperf.baselines.checks import BadContentError, check, check_plain
from pytest_gpuperf.baselines.documents import document_of
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile

_EXACT = 2**53
"""Limit below which a double without a fraction is printed as a whole number and reads back the same."""


class _Line(NamedTuple):
    """A value that is printed on one line."""

    value: Any


def canonical_bytes(file: EvidenceFile) -> bytes:
    """UTF-8 JSON with a trailing newline.  Raises ``UnwritableEvidenceError`` for content that ``checks`` refuses."""
    try:
        tree = _plain(msgspec.to_builtins(document_of(file)))
        check_plain(tree)
        check(file)
    except BadContentError as error:
        raise UnwritableEvidenceError(f"this evidence cannot become a baseline for {file.target}: {error}") from error
    _mark_static(tree) if isinstance(file, StaticFile) else _mark_time(tree)
    return (_text(tree, "") + "\n").encode("utf-8")


def _mark_static(tree: dict[str, Any]) -> None:
    for part in tree["toolchains"].values():
        for code in part["codes"].values():
            for name in ("figures", "hashes"):
                code[name] = _Line(code[name])
            if "occupancy" in code:
                code["occupancy"] = {shape: _Line(value) for shape, value in code["occupancy"].items()}
        part["tests"] = {function: _cases(cases) for function, cases in part["tests"].items()}


def _cases(cases: dict[str, dict[str, Any]]) -> _Line | dict[str, Any]:
    """What has a single entry takes a line, and otherwise each of its entries does."""
    if len(cases) == 1 and all(len(workloads) == 1 for workloads in cases.values()):
        return _Line(cases)
    return {
        parameters: _Line(workloads) if len(workloads) == 1 else {name: _Line(one) for name, one in workloads.items()}
        for parameters, workloads in cases.items()
    }


def _mark_time(tree: dict[str, Any]) -> None:
    tree["sessions"] = [_Line(session) for session in tree["sessions"]]
    tree["codes"] = {label: _Line(code) for label, code in tree["codes"].items()}
    for use in (one for cases in tree["tests"].values() for of in cases.values() for one in of.values()):
        for name in ("rounds", "counters", "beside"):
            if name in use:
                use[name] = {key: _Line(value) for key, value in use[name].items()}


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
