"""Reading ELF64 little-endian files: sections, symbols, relocations.  Pure; trusts no byte of the input.

Only what cubins use (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html).  Every offset is checked against
the file, sections and names may not overlap much.  What is not read ends in ``BadCubin`` and in nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections import defaultdict
from collections.abc import Sequence

from pytest_gpuperf.compile.compile_errors import BadCubin

SYMTAB, RELA, NOBITS, REL = 2, 4, 8, 9
_WITHOUT_BYTES = (0, NOBITS, 0x7000_0007, 0x7000_000A)
"""Types of sections that take no room in the file; the last two, not linked yet, are NOBITS afterwards."""
_RELOCATABLE = 1
STT_OBJECT, STT_FUNC = 1, 2
_SHN_UNDEF, _SHN_LORESERVE = 0, 0xFF00

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_REL = struct.Struct("<QQ")
_RELA = struct.Struct("<QQq")
_MAX_SHARED = 2
"""Bytes of all sections over those of the file: from sm_100 on, two sections (``.nv.merc``) lie in others."""
_MAX_NAME_BYTES = 64 << 10
"""Mangled names of nested templates have some thousand bytes."""
_MAX_NAMES = 8
"""Bytes of all names of a string table, over its own size; names may share their ends."""


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """One section; ``data`` is empty for one that takes no room in the file."""

    index: int
    name: str
    type: int
    flags: int
    size: int
    link: int
    info: int
    data: bytes


@dataclasses.dataclass(frozen=True, slots=True)
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


Relocation = tuple[int, int, int, int]
"""An address that the loader writes into a section: its offset, its type, the symbol's index, and the addend."""


@dataclasses.dataclass(frozen=True)
class Elf:
    """A file, read."""

    machine: int
    abi: int
    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocatable: bool
    """Not linked yet, as ``-rdc=true`` leaves it."""

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return self._by_name.get(name)

    def relocations(self, target: Section) -> list[Relocation]:
        """Relocations applied to ``target``, by offset.  Raises ``BadCubin``."""
        return sorted(one for section in self._relocating[target.index] for one in _relocations(section))

    def symbols_in(self, section: Section) -> Sequence[Symbol]:
        """Symbols that lie in a section, in the table's order."""
        return self._by_section[section.index]

    @functools.cached_property
    def _by_name(self) -> dict[str, Section]:
        return {section.name: section for section in reversed(self.sections)}

    @functools.cached_property
    def _relocating(self) -> defaultdict[int, list[Section]]:
        """Tables of relocations by the number of the section that they apply to."""
        found: defaultdict[int, list[Section]] = defaultdict(list)
        for section in self.sections:
            if section.type in (RELA, REL):
                found[section.info & 0xFFFFFF].append(section)
        return found

    @functools.cached_property
    def _by_section(self) -> defaultdict[int, list[Symbol]]:
        found: defaultdict[int, list[Symbol]] = defaultdict(list)
        for symbol in self.symbols:
            found[symbol.section].append(symbol)
        return found


def read_elf(content: bytes) -> Elf:
    """Parse ``content``.  Raises ``BadCubin`` if it is not a whole ELF64 little-endian file."""
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < _HEADER.size:
        raise BadCubin(f"not a cubin: it starts with {content[:28]!r}, not as a 64-bit ELF file does")
    ident, kind, machine, _version, _entry, phoff, shoff, flags, *counts = _HEADER.unpack_from(content)
    _ehsize, phentsize, phnum, shentsize, shnum, shstrndx = counts
    if shentsize != _SECTION.size or shstrndx >= shnum:
        raise BadCubin("not a cubin: its section table is malformed")
    _slice(content, phoff, phnum * phentsize, "table of segments")
    headers = list(_SECTION.iter_unpack(_slice(content, shoff, shnum * _SECTION.size, "section table")))
    if sum(size for _, type_, _, _, _, size, *_ in headers if type_ not in _WITHOUT_BYTES) > _MAX_SHARED * len(content):
        raise BadCubin("not a whole cubin: its sections overlap")
    table = _slice(content, headers[shstrndx][4], headers[shstrndx][5], "section names")
    names = _names(table, [name for name, *_ in headers])
    sections = tuple(
        Section(
            index, names[index], type_, flags_, size, link, info,
            b"" if type_ in _WITHOUT_BYTES else _slice(content, offset, size, f"section {index}"),
        )
        for index, (_, type_, flags_, _, offset, size, link, info, *_) in enumerate(headers)
    )  # fmt: skip
    return Elf(machine, ident[7], flags, sections, _symbols(sections), kind == _RELOCATABLE)


def section_names(content: bytes) -> bytes:
    """The table of the names of sections, which costs less than to parse a large file; empty where there is none."""
    try:
        _, _, _, _, _, _, shoff, *_, shstrndx = _HEADER.unpack_from(content)
        _, _, _, _, offset, size, *_ = _SECTION.unpack_from(content, shoff + shstrndx * _SECTION.size)
    except struct.error:
        return b""
    return content[offset : offset + size]


def _symbols(sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    table = next((section for section in sections if section.type == SYMTAB), None)
    if table is None:
        return ()
    if table.link >= len(sections) or len(table.data) % _SYMBOL.size:
        raise BadCubin("not a whole cubin: its symbol table is malformed")
    entries = list(_SYMBOL.iter_unpack(table.data))
    names = _names(sections[table.link].data, [name for name, *_ in entries])
    symbols = []
    for index, (_, info, other, section, value, size) in enumerate(entries):
        if in_section(section) and section >= len(sections):
            raise BadCubin(f"not a whole cubin: symbol {index} lies in a section that is not there")
        symbols.append(Symbol(index, names[index], info & 0xF, other, section, value, size))
    return tuple(symbols)


def _relocations(section: Section) -> list[Relocation]:
    entry = _RELA if section.type == RELA else _REL
    if len(section.data) % entry.size:
        raise BadCubin(f"not a whole cubin: {section.name} is cut short")
    records = entry.iter_unpack(section.data)
    return [(at, info & 0xFFFFFFFF, info >> 32, addend[0] if addend else 0) for at, info, *addend in records]


def in_section(index: int) -> bool:
    """True for the number of a section; others mark symbols that are external, absolute or common."""
    return _SHN_UNDEF < index < _SHN_LORESERVE


def _names(table: bytes, offsets: Sequence[int]) -> list[str]:
    """The NUL-terminated strings at the offsets.  Raises ``BadCubin``, also where they overlap over and over."""
    if not table and not any(offsets):
        return [""] * len(offsets)
    found, left = [], _MAX_NAMES * len(table)
    for offset in offsets:
        end = table.find(b"\0", offset, offset + _MAX_NAME_BYTES)
        if offset >= len(table) or end < 0:
            raise BadCubin("not a whole cubin: a name lies outside its string table, or does not end")
        left -= end - offset
        if left < 0:
            raise BadCubin("not a whole cubin: its names overlap")
        name = table[offset:end].decode(errors="backslashreplace")
        if not name.isprintable():
            raise BadCubin(f"not a whole cubin: a name has control characters ({name[:80]!a})")
        found.append(name)
    return found


def _slice(content: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(content):
        raise BadCubin(f"not a whole cubin: its {what} ends {offset + size - len(content)} bytes behind the file's end")
    return content[offset : offset + size]
