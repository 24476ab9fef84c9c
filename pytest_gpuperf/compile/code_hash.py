"""One hash for everything in a cubin that a kernel's execution depends on.

In it: the kernel's instructions, the device functions it calls, the constants and initialised globals it
refers to, its constant banks, registers, shared memory, barriers, stack, launch bounds and parameter layout.
Not in it: names, line tables, the source file, other kernels.

What the linker lays out for all kernels of a file together would let a neighbour shine through: offsets in
the shared constant banks 3 (``__constant__``) and 4 (addresses), and the order of device functions.  So an
instruction that refers to one of these is hashed as its text, with the thing referred to in the place of the
offset; every other instruction is hashed as its bytes.  Where a reference cannot be followed (an index in a
register), the offset stays and everything goes in that the access may reach: the hash may then differ without
need, and never agrees without right.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.compile import cubin as cubin_format
from pytest_gpuperf.compile.cubin import Cubin, CubinKernel, text_of
from pytest_gpuperf.compile.disassembly import INSTRUCTION_BYTES, Instruction, target_of, without_padding
from pytest_gpuperf.compile.elf import (
    NOBITS,
    SHN_LORESERVE,
    SHN_UNDEF,
    STT_FUNC,
    STT_OBJECT,
    Elf,
    Relocation,
    Section,
    Symbol,
)

_BANK = re.compile(r"c\[0x([34])\]\[(0x[0-9a-f]+|U?RZ)\]")
_BANK_BY_REGISTER = re.compile(r"c\[0x([34])\]\[[^\]]*R\d[^\]]*\]|(?<!des)c\[U?R\d+\]")
_JUMPS = ("CALL", "RET", "BRA", "JMP")
_SCHEDULING_BITS = 105
"""Stall counts, barriers and reuse flags lie above this bit of an instruction; its text does not show them."""
_RESTATE_CODE = frozenset({0x1C, 0x25, 0x28, 0x29, 0x31, 0x34, 0x39, 0x46, 0x47})
"""Attributes that only list code offsets: the code is hashed itself."""


def hash_code(
    cubin: Cubin,
    kernel: CubinKernel,
    instructions: Sequence[Instruction],
    resources: Sequence[int],
    named: frozenset[str] | None = None,
) -> str:
    """SHA-256 in hex for ``kernel``.

    ``resources`` are the figures that only the assembler's log gives; ``named`` are the symbols that the kernel's
    PTX mentions, directly or through what it mentions.
    """
    walk = _Walk(cubin.elf, text_of(cubin.elf, kernel.symbol), tuple(instructions), named)
    entry = next(symbol for symbol in cubin.elf.symbols if symbol.name == kernel.symbol and symbol.type == STT_FUNC)
    walk.follow(entry)
    digest = hashlib.sha256(b"gpuperf code 1\0")
    for part in (*walk.parts(), *_launch_facts(cubin, kernel), struct.pack(f"<{len(resources)}q", *resources)):
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.hexdigest()


def _launch_facts(cubin: Cubin, kernel: CubinKernel) -> list[bytes]:
    """Parameter layout, bounds, constant banks of its own, registers: what a launch needs besides code."""
    facts = [struct.pack("<qq", kernel.registers, kernel.stack_bytes)]
    symbols = cubin.elf.symbols
    for number, value in sorted(kernel.attributes):
        if number in _RESTATE_CODE:
            continue
        if number == cubin_format.PARAM_CBANK:
            value = value[4:]  # a symbol's index comes first
        elif number == cubin_format.EXTERNS:
            indices = (index for (index,) in struct.iter_unpack("<I", value[: len(value) // 4 * 4]))
            value = ",".join(sorted(symbols[index].name for index in indices if index < len(symbols))).encode()
        facts.append(bytes([number]) + value)
    for bank in cubin_format.constant_banks(cubin.elf, kernel.symbol):
        facts.append(bank.name.removesuffix(f".{kernel.symbol}").encode() + bank.data)
        facts.extend(struct.pack("<qqq", at, kind, addend) for at, kind, _, addend in cubin.elf.relocations(bank))
    return facts


class _Piece(NamedTuple):
    """A function or object reached, in the order of first mention."""

    symbol: Symbol
    lines: list[bytes]


class _Walk:
    """Follows references from a kernel, giving each thing reached a number instead of a name."""

    def __init__(
        self, elf: Elf, text: Section, instructions: tuple[Instruction, ...], named: frozenset[str] | None
    ) -> None:
        self._elf = elf
        self._named = named
        self._text = text
        self._instructions = instructions
        self._numbers: dict[int, int] = {}
        self._pieces: list[_Piece] = []
        self._done = 0
        self._whole_banks: set[str] = set()
        self._text_relocations: dict[int, list[Relocation]] = {}
        for relocation in elf.relocations(text):
            at = relocation.offset // INSTRUCTION_BYTES * INSTRUCTION_BYTES
            self._text_relocations.setdefault(at, []).append(relocation)

    def follow(self, entry: Symbol) -> None:
        """Hash ``entry`` and everything it leads to."""
        self._number(entry)
        self._drain()
        for symbol in self._functions():  # reached through pointers only: their place in the section counts too
            if symbol.index not in self._numbers:
                self._number(symbol)
                self._pieces[-1].lines.append(f"at {symbol.value}".encode())
                self._drain()

    def _drain(self) -> None:
        while self._done < len(self._pieces):
            piece = self._pieces[self._done]
            self._done += 1
            if piece.symbol.type == STT_FUNC and piece.symbol.section == self._text.index:
                self._function(piece)
            elif piece.symbol.section == SHN_UNDEF or piece.symbol.section >= SHN_LORESERVE:
                piece.lines.append(b"external " + piece.symbol.name.encode())
            else:
                self._object(piece)

    def parts(self) -> list[bytes]:
        """What was reached, ready to be hashed."""
        found = [b"\n".join(piece.lines) for piece in self._pieces]
        for name in sorted(self._whole_banks):
            bank = self._elf.section(name)
            found.append(name.encode() + (bank.data if bank is not None else b""))
        return found

    def _number(self, symbol: Symbol) -> int:
        if symbol.index not in self._numbers:
            self._numbers[symbol.index] = len(self._pieces)
            self._pieces.append(_Piece(symbol, []))
        return self._numbers[symbol.index]

    def _function(self, piece: _Piece) -> None:
        start, end = self._extent(piece.symbol)
        first, last = start // INSTRUCTION_BYTES, -(-end // INSTRUCTION_BYTES)
        body = without_padding(self._instructions[first:last])
        returns = (
            {line.address + INSTRUCTION_BYTES for line in body if line.opcode.startswith("CALL")} if start else set()
        )
        for line in body:
            piece.lines.append(self._line(line, start, end, returns))

    def _extent(self, symbol: Symbol) -> tuple[int, int]:
        """Bytes of a function: up to the next one, since a kernel's own size counts those it calls."""
        starts = (other.value for other in self._functions() if other.value > symbol.value)
        return symbol.value, min(starts, default=self._text.size)

    def _line(self, line: Instruction, start: int, end: int, returns: set[int]) -> bytes:
        code = self._text.data[line.address : line.address + INSTRUCTION_BYTES]
        mark = b""
        for at, kind, symbol, addend in self._text_relocations.get(line.address, ()):
            mark += f" reloc {at - line.address} {kind} {self._reference(symbol, addend)}".encode()
        operands = self._banks(line.operands)
        operands = self._jump(line, operands, start, end, returns)
        if operands == line.operands:
            return code + mark
        scheduling = int.from_bytes(code, "little") >> _SCHEDULING_BITS
        return f"@{line.predicate} {line.opcode} {operands} {scheduling:x}".encode() + mark

    def _banks(self, operands: str) -> str:
        if "c[" not in operands:
            return operands
        for found in _BANK_BY_REGISTER.finditer(operands):
            for bank in (found[1],) if found[1] else ("3", "4"):
                self._any_of(f".nv.constant{bank}")
        return _BANK.sub(self._bank_reference, operands)

    def _any_of(self, bank: str) -> None:
        """An access by index: what it may reach is what the kernel names in PTX, or the whole bank."""
        section = self._elf.section(bank)
        if section is None:
            return
        if self._named is None or section.name.endswith("4"):
            self._whole_banks.add(bank)
            return
        variables = (s for s in self._elf.symbols if s.section == section.index and s.type == STT_OBJECT)
        reachable = [symbol for symbol in variables if symbol.name in self._named]
        for symbol in sorted(reachable, key=lambda symbol: symbol.value):
            self._number(symbol)
        if not reachable:
            self._whole_banks.add(bank)

    def _bank_reference(self, found: re.Match[str]) -> str:
        bank = self._elf.section(f".nv.constant{found[1]}")
        offset = 0 if found[2].endswith("RZ") else int(found[2], 16)
        if bank is None:
            return found[0]
        if found[1] == "4":
            slots = {relocation.offset: relocation for relocation in self._elf.relocations(bank)}
            slot = slots.get(offset & ~7)
            if slot is None:
                return found[0]
            content = bank.data[slot.offset : slot.offset + 8].hex()
            return f"&{self._reference(slot.symbol, slot.addend)}+{offset & 7} {content}"
        symbol = _symbol_at(self._elf, bank, offset)
        if symbol is None:
            self._whole_banks.add(bank.name)
            return found[0]
        return f"*{self._number(symbol)}+{offset - symbol.value}"

    def _jump(self, line: Instruction, operands: str, start: int, end: int, returns: set[int]) -> str:
        """The target outside the own function by number; a return address inside a called function by distance."""
        if line.opcode.split(".")[0] in _JUMPS:
            target = target_of(line)
            if target is None or start <= target < end:
                return operands
            callee = self._function_at(target)
            return operands if callee is None else f"{operands.rpartition('0x')[0]}#{self._number(callee)}"
        if returns and line.opcode.startswith("MOV"):
            register, _, value = operands.rpartition(", ")
            if value.startswith("0x") and int(value, 16) in returns:
                return f"{register}, return+{int(value, 16) - start}"
        return operands

    def _function_at(self, address: int) -> Symbol | None:
        return next((symbol for symbol in self._functions() if symbol.value == address), None)

    def _functions(self) -> list[Symbol]:
        """Functions of the text section, in its order."""
        own = (symbol for symbol in self._elf.symbols if symbol.type == STT_FUNC and symbol.section == self._text.index)
        return sorted(own, key=lambda symbol: symbol.value)

    def _reference(self, index: int, addend: int) -> str:
        if index >= len(self._elf.symbols):
            return f"?{index}+{addend}"
        return f"#{self._number(self._elf.symbols[index])}+{addend}"

    def _object(self, piece: _Piece) -> None:
        """A variable: its initial bytes and the addresses in them.  A function of another section: its bytes."""
        symbol = piece.symbol
        section = self._elf.sections[symbol.section]
        end = symbol.value + symbol.size if symbol.size else section.size
        piece.lines.append(f"object {symbol.type} {symbol.size} {section.type == NOBITS}".encode())
        piece.lines.append(section.data[symbol.value : end])
        for relocation in self._elf.relocations(section):
            if symbol.value <= relocation.offset < end:
                reference = self._reference(relocation.symbol, relocation.addend)
                piece.lines.append(f"{relocation.offset - symbol.value} {relocation.type} {reference}".encode())


def _symbol_at(elf: Elf, section: Section, offset: int) -> Symbol | None:
    """The variable that holds this byte of a section."""
    for symbol in elf.symbols:
        inside = symbol.value <= offset < symbol.value + symbol.size
        if inside and symbol.type == STT_OBJECT and symbol.section == section.index:
            return symbol
    return None
