"""The line table of a cubin: from which source lines each instruction comes, through the functions inlined there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from pytest_gpuperf.compile.cache import CompileCache, remembered
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.elf import STT_FUNC
from pytest_gpuperf.compile.machine_code.sass import printed
from pytest_gpuperf.compile.toolkit import disassembler

_SECTION = ".debug_line"
_ENTRY = re.compile(
    r'^\s*//## File "(?P<file>[^"\n]*)", line (?P<line>\d+)|^\s*/\*(?P<at>[0-9a-f]{4,})\*/|^\s*\.type\s.*@function',
    re.MULTILINE,
)


class SourceLine(NamedTuple):
    """A line as the compiler calls it."""

    file: str
    line: int


Origin = tuple[SourceLine, ...]
"""The line of an instruction, then that of the call at which its function is inlined, up to the kernel's own."""


def line_table(cubin: bytes, symbol: str, arch: str, cache: CompileCache | None = None) -> Mapping[int, Origin]:
    """Origins of a kernel's instructions by address; empty for a cubin without line information.

    Raises ``BadCubin`` and ``ToolchainMissing``.
    """
    elf = read_cubin(cubin).elf
    index = next((one.index for one in elf.symbols if one.name == symbol and one.type == STT_FUNC), None)
    if elf.section(_SECTION) is None or index is None:
        return {}
    tool = disassembler()
    parts = ("line table", hashlib.sha256(cubin).digest(), index, tool.version)
    options = ("-gi", "-c", "-fun", str(index))
    return remembered(cache, parts, dict[int, Origin], lambda: _origins(printed(tool, arch, cubin, *options)))


def _origins(text: str) -> dict[int, Origin]:
    found: dict[int, Origin] = {}
    origin, begins = Origin(), True
    for entry in _ENTRY.finditer(text):
        if entry["line"]:
            origin = (*(() if begins else origin), SourceLine(entry["file"], int(entry["line"])))
        elif entry["at"] and origin:
            found[int(entry["at"], 16)] = origin
        elif not entry["at"]:
            origin = ()  # one of the compiler's own functions has no lines
        begins = not entry["line"]
    return found
