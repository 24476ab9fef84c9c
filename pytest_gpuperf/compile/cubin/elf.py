"""Reading ELF64 little-endian files: sections, symbols, relocations.  Pure; trusts no byte of the input.

Only what cubins use (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html); every offset is
checked against the file, so hostile input ends in ``BadCubin`` and in nothing else.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import BadCubin

SYMTAB, RELA, NOBITS, REL = 2, 4, 8, 9
STT_OBJECT, STT_FUNC = 1, 2
_SHN_UNDEF, _SHN_LORESERVE = 0, 0xFF00

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_REL = struct.Struct("<QQ")
_RELA = struct.Struct("<QQq")
_MAX_SECTIONS = 65536


@dataclasses.dataclass(frozen=True)
class Section:
    """One section; ``data`` is empty for one that takes no room in the file."""

    index: int
    name: str
    type: int
    flags: int
    size: int
    link: int
    info: int
    alignment: int
    data: bytes


@dataclasses.dataclass(frozen=True)
class Symbol:
    """One entry of the symbol table."""

    index: int
    name: str
    type: int
    other: int
    section: int
    value: int
    """Offset in its section."""
    size: int


class Relocation(NamedTuple):
    """An address that the loader writes into a section."""

    offset: int
    type: int
    symbol: int
    addend: int


class Elf(NamedTuple):
    """A file, read."""

    machine: int
    abi: int
    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def relocations(self, target: Section) -> tuple[Relocation, ...]:
        """Relocations applied to ``target``, by offset.  Raises ``BadCubin``."""
        found: list[Relocation] = []
        for section in self.sections:
            if section.type in (RELA, REL) and section.info & 0xFFFFFF == target.index and section.data:
                found.extend(_relocations(section))
        return tuple(sorted(found))


def read_elf(content: bytes) -> Elf:
    """Parse ``content``.  Raises ``BadCubin`` if it is not a whole ELF64 little-endian file."""
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < _HEADER.size:
        raise BadCubin("not a cubin: it does not start as a 64-bit ELF file does")
    ident, _type, machine, _version, _entry, phoff, shoff, flags, *counts = _HEADER.unpack_from(content)
    _ehsize, phentsize, phnum, shentsize, shnum, shstrndx = counts
    if shentsize != _SECTION.size or not 0 < shnum < _MAX_SECTIONS or shstrndx >= shnum:
        raise BadCubin("not a cubin: its section table is malformed")
    _slice(content, shoff, shnum * _SECTION.size, "section table")
    _slice(content, phoff, phnum * phentsize, "table of segments")
    raw = [_SECTION.unpack_from(content, shoff + index * _SECTION.size) for index in range(shnum)]
    names = _slice(content, raw[shstrndx][4], raw[shstrndx][5], "section names")
    sections = tuple(_section(content, index, fields, names) for index, fields in enumerate(raw))
    return Elf(machine, ident[7], flags, sections, _symbols(sections))


def _section(content: bytes, index: int, fields: tuple[int, ...], names: bytes) -> Section:
    name, kind, flags, _address, offset, size, link, info, alignment, _entry = fields
    data = b"" if kind in (NOBITS, 0) else _slice(content, offset, size, f"section {index}")
    return Section(index, string_at(names, name), kind, flags, size, link, info, alignment, data)


def _symbols(sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    table = next((section for section in sections if section.type == SYMTAB), None)
    if table is None:
        return ()
    if table.link >= len(sections) or len(table.data) % _SYMBOL.size:
        raise BadCubin("not a whole cubin: its symbol table is malformed")
    names = sections[table.link].data
    symbols = []
    for index, (name, info, other, section, value, size) in enumerate(_SYMBOL.iter_unpack(table.data)):
        if in_section(section) and section >= len(sections):
            raise BadCubin(f"not a whole cubin: symbol {index} lies in a section that is not there")
        symbols.append(Symbol(index, string_at(names, name), info & 0xF, other, section, value, size))
    return tuple(symbols)


def _relocations(section: Section) -> list[Relocation]:
    entry = _RELA if section.type == RELA else _REL
    if len(section.data) % entry.size:
        raise BadCubin(f"not a whole cubin: {section.name} is cut short")
    records = entry.iter_unpack(section.data)
    return [Relocation(at, info & 0xFFFFFFFF, info >> 32, *(addend or (0,))) for at, info, *addend in records]


def in_section(index: int) -> bool:
    """True for the number of a section; others mark symbols that are external, absolute or common."""
    return _SHN_UNDEF < index < _SHN_LORESERVE


def string_at(table: bytes, offset: int) -> str:
    """The NUL-terminated string at ``offset`` of a string table."""
    end = table.find(b"\0", offset)
    if offset >= len(table) or end < 0:
        if offset == 0:
            return ""
        raise BadCubin("not a whole cubin: a name lies outside its string table")
    return table[offset:end].decode(errors="backslashreplace")


def _slice(content: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(content):
        raise BadCubin(f"not a whole cubin: its {what} ends {offset + size - len(content)} bytes behind the file's end")
    return content[offset : offset + size]
