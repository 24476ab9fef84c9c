"""Reading the assembler's report (``--ptxas-options=-v``): the only source of spilled bytes.

Shared memory is taken from here too: from sm_90 on the cubin's own figure includes what the driver reserves.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '")
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
        if found := _ENTRY.search(line):
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
