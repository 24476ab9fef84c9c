"""Reads a compiler's other outputs: the assembler's report, and the parameters in its PTX.

The report (``--ptxas-options=-v``) is the only source of spilled bytes; its other figures are in the cubin too.  PTX:
"Parallel Thread Execution ISA", chapter 4.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|extern|weak)[ \t]+)*\.entry[ \t]+([\w$.]+)", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PARAMETERS = re.compile(r"\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\s*\.param\s+\.([fsu])(8|16|32|64)\s+(\.ptr\b)?[^\[]*")

_SPILLED = re.compile(
    r"Function properties for (\S+)\n[^\n]* bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)


class Spills(NamedTuple):
    """What one function spills, bytes per thread."""

    stores: int
    loads: int


def spills_in(log: str) -> dict[str, Spills]:
    """What each function spills that the log tells of, by symbol."""
    return {symbol: Spills(int(stores), int(loads)) for symbol, stores, loads in _SPILLED.findall(log)}


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
    return "64-bit integer or pointer" if bits == "64" else f"{bits}-bit integer"
