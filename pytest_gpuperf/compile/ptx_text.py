"""Reading PTX: the parameters of its kernels ("Parallel Thread Execution ISA", chapter 4)."""

from __future__ import annotations

import re
from collections.abc import Iterator

INTEGER_OR_POINTER = "64-bit integer or pointer"

_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|extern|weak)[ \t]+)*\.entry[ \t]+([\w$.]+)", re.MULTILINE)
_PARAMETERS = re.compile(r"\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\s*\.param\s+\.([fsu])(8|16|32|64)\s+(\.ptr\b)?[^\[]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_FUNCTION_NAME = re.compile(r"\.(?:entry|func)\b\s*(?:\([^)]*\)\s*)?([\w$]+)")
_VARIABLE_NAME = re.compile(r"\.(?:const|global|shared)\b(?:\s*\.\w+(?:\s+\d+)?)*\s+([A-Za-z_$][\w$]*)")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")


def ptx_parameter_types(ptx: str, symbol: str) -> tuple[str | None, ...] | None:
    """Types of the parameters of the entry ``symbol``; None if the entry is not in this PTX.

    One each of ``float``, ``double``, ``8-bit integer`` to ``32-bit integer``, ``pointer``, ``64-bit integer or
    pointer`` where ``.ptr`` is left out, as it is below sm_100, and None for what is passed as bytes
    (structures, vectors, ``__half``).  The element type of a pointer and the sign of an integer are not in PTX.
    """
    for entry in _ENTRY.finditer(ptx):
        if entry[1] == symbol:
            listed = _PARAMETERS.match(ptx, entry.end())
            inside = _COMMENT.sub(" ", listed[1]).strip() if listed is not None else ""
            return tuple(map(_parameter_type, inside.split(","))) if inside else ()
    return None


def _parameter_type(declaration: str) -> str | None:
    found = _PARAMETER.fullmatch(declaration)
    if found is None:
        return None
    kind, bits, is_pointer = found.groups()
    if kind == "f":
        return {"32": "float", "64": "double"}.get(bits)
    if is_pointer:
        return "pointer"
    return INTEGER_OR_POINTER if bits == "64" else f"{bits}-bit integer"


def unreachable_symbols(ptx: str, entry: str) -> frozenset[str]:
    """Symbols that this PTX declares and ``entry`` does not use, neither itself nor through what it uses.

    Nothing if the entry is not in it: then nothing is certain.
    """
    mentions: dict[str, set[str]] = {}
    for item in _items(_STRING.sub('""', _COMMENT.sub(" ", ptx))):
        found = _FUNCTION_NAME.search(item) or _VARIABLE_NAME.search(item)
        if found is not None:
            mentions.setdefault(found[1], set()).update(_IDENTIFIER.findall(item))
    if entry not in mentions:
        return frozenset()
    reached: set[str] = set()
    pending = [entry]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(mentions[name] & mentions.keys())
    return frozenset(mentions.keys() - reached)


def _items(bare: str) -> Iterator[str]:
    """Declarations at module level: each ends with a semicolon, or with the brace that closes a function."""
    depth = start = 0
    for mark in re.finditer(r"[{};]", bare):
        depth += (mark[0] == "{") - (mark[0] == "}")
        if depth:
            continue
        item = bare[start : mark.end()]
        if mark[0] == ";" or _FUNCTION_NAME.search(item) is not None:
            yield item
            start = mark.end()
