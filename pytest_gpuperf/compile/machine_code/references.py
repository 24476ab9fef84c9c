"""Following a kernel's references through a cubin, so that what it uses can be hashed without names and places.

Offsets in the constant banks 3 (``__constant__``) and 4 (addresses) and the order of device functions depend on the
other kernels of a file.  So an instruction that refers to one of these is given as its text, with the thing referred to
in the place of the offset; every other one as its bytes.  Where an index in a register hides the reference, the offset
stays, and everything goes in that the access may reach.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.elf import (
    NOBITS,
    STT_FUNC,
    STT_OBJECT,
    Elf,
    Relocation,
    Section,
    Symbol,
    in_section,
)
from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES, Instruction, target_of, without_padding

_BANK = re.compile(r"c\[0x([34])\]\[(0x[0-9a-f]+|U?RZ)\]")
_BANK_BY_REGISTER = re.compile(r"c\[0x([34])\]\[[^\]]*R\d[^\]]*\]|(?<!des)c\[U?R\d+\]")
_JUMPS = ("CALL", "RET", "BRA", "JMP")
_SCHEDULING_BITS = 105
"""Stall counts, barriers and reuse flags lie above this bit of an instruction; its text does not show them."""
_MOST_BYTES = 8
"""Bytes that a walk may collect, over those of all sections: real ones collect no byte twice."""
_LEAST_BYTES = 1 << 20
"""A walk may always collect as much."""
_MOST_LOOKS = 300_000
"""Symbols and relocations that a walk may look at, where they overlap; real ones take some thousand."""


class _Piece(NamedTuple):
    """A function or object reached, in the order of first mention."""

    symbol: Symbol
    lines: list[bytes]


class ReferenceWalk:
    """Follows references from a kernel, giving each thing reached a number instead of a name."""

    def __init__(
        self,
        elf: Elf,
        text: Section,
        instructions: Sequence[Instruction],
        unreachable: Callable[[], frozenset[str]],
    ) -> None:
        self._elf = elf
        self._unreachable = unreachable
        self._text = text
        self._instructions = tuple(instructions)
        self._numbers: dict[int, int] = {}
        self._pieces: list[_Piece] = []
        self._done = 0
        self._indexed: dict[str, list[bytes]] = {}
        self._places: dict[tuple[int, int], list[Symbol]] = {}
        self._relocations: dict[int, tuple[Relocation, ...]] = {}
        self._ends: dict[int, list[int]] = {}
        """By bank: how far its first objects reach, by their number."""
        if len(self._functions()) > 1 + self._text.size // INSTRUCTION_BYTES:
            raise BadCubin("not a whole cubin: its kernel has more functions than instructions")
        self._starts = [symbol.value for symbol in self._functions()]
        self._first_at = {symbol.value: symbol for symbol in reversed(self._functions())}
        self._bytes_left = max(_LEAST_BYTES, _MOST_BYTES * sum(len(section.data) for section in elf.sections))
        self._looks_left = _MOST_LOOKS
        self._text_relocations: dict[int, list[Relocation]] = {}
        for relocation in elf.relocations(text):
            at = relocation.offset // INSTRUCTION_BYTES * INSTRUCTION_BYTES
            self._text_relocations.setdefault(at, []).append(relocation)

    def follow(self, entry: Symbol) -> None:
        """Collect ``entry`` and everything it leads to."""
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
            elif not in_section(piece.symbol.section):
                piece.lines.append(b"external " + piece.symbol.name.encode())
            else:
                self._object(piece)

    def parts(self) -> list[bytes]:
        """Everything that was reached, in the order of first mention, ready to be hashed."""
        found = [line for piece in self._pieces for line in (b"piece", *piece.lines)]
        for name, lines in sorted(self._indexed.items()):
            found += [name.encode(), *lines]
        return found

    def _number(self, symbol: Symbol) -> int:
        if symbol.index not in self._numbers:
            self._numbers[symbol.index] = len(self._pieces)
            self._pieces.append(_Piece(symbol, []))
        return self._numbers[symbol.index]

    def _function(self, piece: _Piece) -> None:
        start = piece.symbol.value  # up to the next function, since a kernel's own size counts those it calls
        later = bisect.bisect_right(self._starts, start)
        end = self._starts[later] if later < len(self._starts) else self._text.size
        first, last = start // INSTRUCTION_BYTES, -(-end // INSTRUCTION_BYTES)
        self._collect(max(0, last - first) * INSTRUCTION_BYTES)
        body = without_padding(self._instructions[first:last])
        returns = {line.address + INSTRUCTION_BYTES for line in body if start and line.opcode.startswith("CALL")}
        for line in body:
            piece.lines.append(self._line(line, start, end, returns))

    def _line(self, line: Instruction, start: int, end: int, returns: set[int]) -> bytes:
        code = self._text.data[line.address : line.address + INSTRUCTION_BYTES]
        mark = b""
        for at, kind, symbol, addend in self._text_relocations.get(line.address, ()):
            mark += f" reloc {at - line.address} {kind} {self._reference(symbol, addend)}".encode()
        operands = self._jump(line, self._banks(line), start, end, returns)
        if operands == line.operands:
            return code + mark
        scheduling = int.from_bytes(code, "little") >> _SCHEDULING_BITS
        return f"@{line.predicate} {line.opcode} {operands} {scheduling:x}".encode() + mark

    def _banks(self, line: Instruction) -> str:
        if "c[" not in line.operands:
            return line.operands
        for found in _BANK_BY_REGISTER.finditer(line.operands):
            for bank in (found[1],) if found[1] else ("3", "4"):
                self._any_of(f".nv.constant{bank}")
        return _BANK.sub(lambda found: self._bank_reference(found, _width(line.opcode)), line.operands)

    def _any_of(self, name: str) -> None:
        """An access by index: all that lies in the bank, less what the kernel's PTX shows it cannot mean."""
        bank = self._elf.section(name)
        if bank is None or name in self._indexed:
            return
        lines = self._indexed[name] = []
        excluded = self._unreachable()
        for slot in self._relocations_of(bank):
            if slot.symbol >= len(self._elf.symbols) or self._elf.symbols[slot.symbol].name not in excluded:
                lines.append(f"{slot.offset} {self._reference(slot.symbol, slot.addend)}".encode())
        own = self._placed(STT_OBJECT, bank)
        for symbol in own:
            if symbol.name not in excluded:
                self._number(symbol)
        if not own:
            self._collect(len(bank.data))
            lines.append(bank.data)

    def _bank_reference(self, found: re.Match[str], width: int) -> str:
        """Content of this place of bank 3 or 4 instead of the place; a wide access may read two things."""
        bank = self._elf.section(f".nv.constant{found[1]}")
        if bank is None:
            return found[0]
        offset = 0 if found[2].endswith("RZ") else int(found[2], 16)
        known = (self._addresses if found[1] == "4" else self._variables)(bank, offset, width)
        if not known:
            self._any_of(bank.name)
        return known or found[0]

    def _addresses(self, bank: Section, offset: int, width: int) -> str:
        slots = self._between(bank, offset - 7, offset + width)
        if not slots or slots[0].offset > offset:
            return ""
        parts = []
        for slot in slots:
            content = bank.data[slot.offset : slot.offset + 8].hex()
            parts.append(f"&{self._reference(slot.symbol, slot.addend)}{slot.offset - offset:+} {content}")
        return " ".join(parts)

    def _variables(self, bank: Section, offset: int, width: int) -> str:
        placed = self._placed(STT_OBJECT, bank)
        if bank.index not in self._ends:
            self._ends[bank.index] = list(itertools.accumulate((s.value + s.size for s in placed), max))
        first = bisect.bisect_right(self._ends[bank.index], offset)
        near = placed[first : bisect.bisect_left(placed, offset + width, key=lambda symbol: symbol.value)]
        self._look(len(near))
        read = [s for s in near if offset < s.value + s.size]
        if not read or read[0].value > offset:
            return ""
        return " ".join(f"*{self._number(symbol)}{symbol.value - offset:+}" for symbol in read)

    def _jump(self, line: Instruction, operands: str, start: int, end: int, returns: set[int]) -> str:
        """The target outside the own function by number; a return address inside a called function by distance."""
        if line.opcode.split(".")[0] in _JUMPS:
            target = target_of(line)
            if target is None or start <= target < end:
                return operands
            callee = self._first_at.get(target)
            return operands if callee is None else f"{operands.rpartition('0x')[0]}#{self._number(callee)}"
        if returns and line.opcode.startswith("MOV"):
            register, _, value = operands.rpartition(", ")
            if value.startswith("0x") and int(value, 16) in returns:
                return f"{register}, return+{int(value, 16) - start}"
        return operands

    def _functions(self) -> list[Symbol]:
        return self._placed(STT_FUNC, self._text)

    def _placed(self, kind: int, section: Section) -> list[Symbol]:
        """Symbols of one kind in a section, in its order."""
        place = kind, section.index
        if place not in self._places:
            own = (one for one in self._elf.symbols_in(section) if one.type == kind)
            self._places[place] = sorted(own, key=lambda symbol: symbol.value)
        return self._places[place]

    def _relocations_of(self, section: Section) -> tuple[Relocation, ...]:
        if section.index not in self._relocations:
            self._relocations[section.index] = self._elf.relocations(section)
        return self._relocations[section.index]

    def _between(self, section: Section, start: int, end: int) -> tuple[Relocation, ...]:
        """Relocations of a section from ``start`` and before ``end``, by offset."""
        everywhere = self._relocations_of(section)
        found = everywhere[bisect.bisect_left(everywhere, (start,)) : bisect.bisect_left(everywhere, (end,))]
        self._look(len(found))
        return found

    def _collect(self, size: int) -> None:
        """Count bytes that go into the hash.  Raises ``BadCubin`` where things lie in each other over and over."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise BadCubin("not a whole cubin: what its kernel refers to overlaps")

    def _look(self, count: int) -> None:
        """Count what is looked at.  Raises ``BadCubin`` as above."""
        self._looks_left -= count
        if self._looks_left < 0:
            raise BadCubin("not a whole cubin: what its kernel refers to overlaps")

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
        data = section.data[symbol.value : end]
        self._collect(len(data))
        piece.lines.append(data)
        for relocation in self._between(section, symbol.value, end):
            reference = self._reference(relocation.symbol, relocation.addend)
            piece.lines.append(f"{relocation.offset - symbol.value} {relocation.type} {reference}".encode())


def bank_symbols(elf: Elf) -> frozenset[str]:
    """Names of all that lies in the constant banks 3 and 4, or that these refer to."""
    found: set[str] = set()
    for bank in filter(None, (elf.section(f".nv.constant{number}") for number in (3, 4))):
        found.update(one.name for one in elf.symbols_in(bank) if one.type == STT_OBJECT)
        slots = (slot.symbol for slot in elf.relocations(bank))
        found.update(elf.symbols[index].name for index in slots if index < len(elf.symbols))
    return frozenset(found - {""})


def _width(opcode: str) -> int:
    """Bytes that an instruction reads from a constant bank, by its modifiers."""
    if ".128" in opcode:
        return 16
    return 8 if opcode.startswith("D") or ".64" in opcode or ".WIDE" in opcode else 4
