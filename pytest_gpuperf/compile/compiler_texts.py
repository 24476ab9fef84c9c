"""Reading what a compiler writes beside machine code: the assembler's report, and the parameters in its PTX.

The report (``--ptxas-options=-v``) is the only source of spilled bytes.  Shared memory is taken from it too: from sm_90
on the cubin's own figure includes what the driver reserves.  PTX: "Parallel Thread Execution ISA", chapter 4.
"""

from __future__ import annotations

import re
from typing import NamedTuple

INTEGER_OR_POINTER = "64-bit integer or pointer"

_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|extern|weak)[ \t]+)*\.entry[ \t]+([\w$.]+)", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PARAMETERS = re.compile(r"\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\s*\.param\s+\.([fsu])(8|16|32|64)\s+(\.ptr\b)?[^\[]*")

_REPORTED_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '")
_FUNCTION = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_CUMULATIVE = re.compile(r"(\d+) bytes cumulative stack size")
_SHARED = re.compile(r"(\d+) bytes smem")


class Frame(NamedTuple):
    """Stack of one function, bytes per thread."""

    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


class PtxasUsage(NamedTuple):
    """Resources that one kernel takes."""

    registers: int
    barriers: int
    shared_bytes: int
    cumulative_stack_bytes: int | None
    """With the functions it calls; None if it calls none or ptxas cannot tell."""


class Report(NamedTuple):
    """The whole log: frames of all functions by symbol, usage of the kernels by symbol."""

    frames: dict[str, Frame]
    usage: dict[str, PtxasUsage]


def read_log(log: str) -> Report:
    """Everything the log says about functions and kernels; other lines are passed over."""
    frames: dict[str, Frame] = {}
    usage: dict[str, PtxasUsage] = {}
    entry = function = ""
    for line in log.splitlines():
        if found := _REPORTED_ENTRY.search(line):
            entry = found[1]
        elif found := _FUNCTION.search(line):
            function = found[1]
        elif found := _FRAME.search(line):
            frames[function] = Frame(int(found[1]), int(found[2]), int(found[3]))
        elif found := _USED.search(line):
            usage[entry] = PtxasUsage(
                registers=int(found[1]),
                barriers=_figure(_BARRIERS, line) or 0,
                shared_bytes=_figure(_SHARED, line) or 0,
                cumulative_stack_bytes=_figure(_CUMULATIVE, line),
            )
    return Report(frames, usage)


def _figure(pattern: re.Pattern[str], line: str) -> int | None:
    found = pattern.search(line)
    return int(found[1]) if found else None


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
