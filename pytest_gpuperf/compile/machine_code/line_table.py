"""The line table of a cubin: from which source lines each instruction comes, through the functions inlined there.

What ptxas writes of DWARF 2 (https://dwarfstd.org/doc/dwarf-2.0.0.pdf, section 6.2), and an opcode of NVIDIA's for
inlined calls.  nvdisasm prints the same, and takes a quarter of a second for each cubin.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.elf import STT_FUNC
from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES

_SECTION = ".debug_line"
_HEADER = struct.Struct("<IHIBBbBB")
_EXTENDED, _COPY, _ADVANCE, _LINE, _FILE = range(5)
_END, _ADDRESS, _INLINED = 1, 2, 0x90
"""Opcodes behind ``_EXTENDED``; the last has the number of the row, from 1, that a function is inlined at, or 0."""
_DEEPEST = 64
"""Calls one in the other."""


class SourceLine(NamedTuple):
    """A line as the compiler calls it."""

    file: str
    line: int


Origin = tuple[SourceLine, ...]
"""The line of an instruction, then that of the call at which its function is inlined, up to the kernel's own."""


def line_table(cubin: bytes, symbol: str) -> Mapping[int, Origin]:
    """Origins of a kernel's instructions by address; empty for a cubin without line information.

    Raises ``BadCubin``, also for what ptxas does not write.
    """
    elf = read_cubin(cubin).elf
    table = elf.section(_SECTION)
    kernel = next((one for one in elf.symbols if one.name == symbol and one.type == STT_FUNC), None)
    if table is None or kernel is None:
        return {}
    text = elf.sections[kernel.section]
    functions = {one.index: one.value for one in elf.symbols_in(text) if one.type == STT_FUNC}
    begins = {at for at, _, index, _ in elf.relocations(table) if index in functions}
    rows = dict.fromkeys(functions.values(), Origin())  # the compiler's own functions have no lines
    try:
        rows.update(_rows(_Stream(table.data), begins))
    except (LookupError, ValueError, ArithmeticError, struct.error) as problem:
        raise BadCubin(f"{_SECTION} cannot be read: {problem}") from problem
    found, origin = dict[int, Origin](), Origin()
    for address in range(0, len(text.data), INSTRUCTION_BYTES):
        if origin := rows.get(address, origin):
            found[address] = origin
    return found


class _Stream(io.BytesIO):
    def fixed(self, form: str) -> int:
        return int(struct.unpack(form, self.read(struct.calcsize(form)))[0])

    def number(self, *, signed: bool = False) -> int:
        """LEB128."""
        value, shift, byte = 0, 0, 0x80
        while byte & 0x80 and shift < 64:
            byte = self.fixed("B")
            value |= (byte & 0x7F) << shift
            shift += 7
        return value - (1 << shift if signed and byte & 0x40 else 0)

    def name(self) -> str:
        text = self.read(self.getvalue().index(0, self.tell()) - self.tell())
        self.read(1)
        return text.decode(errors="replace")


def _rows(stream: _Stream, begins: Collection[int]) -> Iterator[tuple[int, Origin]]:
    """Address and origin of each row of the sequences whose first address is at one of ``begins``."""
    while header := stream.read(_HEADER.size):
        length, version, _, least, _, base, span, special = _HEADER.unpack(header)
        end = stream.tell() + length - _HEADER.size + 4
        stream.read(special - 1)
        folders, files = ["", *iter(stream.name, "")], [""]
        while name := stream.name():
            folder, _, _ = stream.number(), stream.number(), stream.number()
            files.append("/".join(filter(None, (folders[folder], name))))
        if version not in (2, 3) or least != 1:
            raise ValueError(f"DWARF {version}")
        while stream.tell() < end:
            yield from _sequence(stream, begins, files, range(base, base + span), special)


def _sequence(
    stream: _Stream, begins: Collection[int], files: Sequence[str], steps: Sequence[int], special: int
) -> Iterator[tuple[int, Origin]]:
    address, file, line, inlined_at, is_wanted = 0, 1, 1, 0, False
    rows = [Origin()]
    while True:
        opcode = stream.fixed("B")
        if opcode >= special or opcode == _COPY:
            if opcode >= special:
                address += (opcode - special) // len(steps)
                line += steps[(opcode - special) % len(steps)]
            rows.append((SourceLine(files[file], line), *rows[inlined_at][:_DEEPEST]))
            if is_wanted:
                yield address, rows[-1]
        elif opcode == _ADVANCE:
            address += stream.number()
        elif opcode == _LINE:
            line += stream.number(signed=True)
        elif opcode == _FILE:
            file = stream.number()
        elif opcode == _EXTENDED:
            following, opcode = stream.number() + stream.tell(), stream.fixed("B")
            if opcode == _ADDRESS:
                is_wanted, address = stream.tell() in begins, stream.fixed("<Q")
            elif opcode == _INLINED:
                inlined_at = stream.number()
            elif opcode == _END:
                return
            stream.seek(following)
        else:
            raise ValueError(f"opcode {opcode}")
