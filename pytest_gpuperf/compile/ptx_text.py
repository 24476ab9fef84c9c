"""Reading PTX: one kernel out of a module, its parameters, and how often each instruction occurs in it.

PTX syntax: "Parallel Thread Execution ISA", chapter 4.  Counts are of instructions written, not executed.
"""

from __future__ import annotations

import re

from pytest_gpuperf.compile.machine_code.symbols import find_kernel

INTEGER_OR_POINTER = "64-bit integer or pointer"

_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|extern|weak)[ \t]+)*\.entry[ \t]+([\w$.]+)", re.MULTILINE)
_PARAMETERS = re.compile(r"\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\s*\.param\s+\.([fsu])(8|16|32|64)\s+(\.ptr\b)?[^\[]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_STATEMENT_END = re.compile(r"[;{}]")
_LABEL = re.compile(r"^\s*[\w$%]+\s*:(?!:)\s*")
_PREDICATE = re.compile(r"^@!?%?[\w$]+\s+")
_OPCODE = re.compile(r"[a-z]\w*(?:(?:\.|::)\w+)*")


def ptx_of(ptx: str, name: str) -> str:
    """The entry of a kernel, by symbol or plain C++ name, to its closing brace.  Raises ``UnknownKernel``."""
    entries = {found[1]: found.start() for found in _ENTRY.finditer(ptx)}
    start = entries[find_kernel(name, entries, "this PTX")]
    at = ptx.index("{", start)
    depth = 0
    for brace in re.finditer(r"[{}]", ptx[at:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return ptx[start : at + brace.end()].lstrip()
    return ptx[start:]


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


def ptx_instructions(ptx: str) -> dict[str, int]:
    """Count of each instruction in the text: ``{"fma.rn.f32": 64, ...}``, in alphabetical order."""
    bare = _STRING.sub('""', _COMMENT.sub(" ", ptx))
    counts: dict[str, int] = {}
    for statement in _STATEMENT_END.split(bare):
        text = statement.strip()
        while (label := _LABEL.match(text)) is not None:
            text = text[label.end() :]
        opcode = _OPCODE.match(_PREDICATE.sub("", text, count=1))
        if opcode is not None:
            counts[opcode[0]] = counts.get(opcode[0], 0) + 1
    return dict(sorted(counts.items()))
