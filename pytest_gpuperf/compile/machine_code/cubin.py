"""Facts in a cubin about its kernels: names, parameters, registers, shared memory, launch bounds, sections.  Pure.

The attributes of ``.nv.info`` used here were established by compiling known kernels with NVRTC 12.9 to 13.5, and agree
with what ``cuobjdump -elf`` prints.  Shared memory and barriers agree with the log of ptxas 12.4 to 13.4, sm_75 to
sm_120.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.elf import STT_FUNC, STT_OBJECT, Elf, Section, Symbol, in_section, read_elf
from pytest_gpuperf.model.evidence import Parameter

EM_CUDA = 190
_ENTRY = 0x10
"""Bit of a symbol that is a kernel."""
_OLD_ABI = 0x33
"""ELF ABI of CUDA 12 and before: the architecture is in the low byte of the flags, later in the second."""

MAX_THREADS, PARAM_CBANK, EXTERNS, REQUIRED_THREADS = 0x05, 0x0A, 0x0F, 0x10
FRAME_SIZE, MIN_STACK_SIZE, KPARAM_INFO, REGCOUNT = 0x11, 0x12, 0x17, 0x2F
KPARAM_INFO_LARGE, NUM_BARRIERS, LANGUAGE = 0x45, 0x4C, 0x66
"""Numbers of attributes."""
_TILE_IR = 7
"""Value of ``LANGUAGE`` for kernels of cuTile, of tileiras 13.1 and later."""
HOST_CODE = ".nv.host"
"""Section of a tile kernel's cubin with code that the driver runs on the host before a launch: it forms descriptors."""

_RESERVED_SHARED_BYTES = 1024
"""Part of every block's shared memory that the driver takes; counted in a linked cubin from sm_90 on."""
_CONSTANT_BANKS = 32
"""As many as an instruction can name."""
_LARGE_PARAMETER_BYTES = 0xFFFFFF
"""Bits of ``KPARAM_INFO_LARGE`` that are the size; those above are the space that a pointer points to."""
_VARIABLES = (".nv.constant3", ".nv.global", ".nv.global.init")
_NAMED = re.compile(r"(?!__unnamed_)[A-Za-z_]")
"""Not a literal of the compiler's, such as ``$str``."""
_VERSION = re.compile(rb"V(\d+(?:\.\d+)+)")


class Attribute(NamedTuple):
    """One record of an ``.nv.info`` section."""

    number: int
    value: bytes


class CubinKernel(NamedTuple):
    """One kernel of a cubin."""

    symbol: str
    registers: int
    """Registers per thread; 0 if the cubin does not say."""
    stack_bytes: int
    parameters: tuple[Parameter, ...]
    max_threads_per_block: int | None
    """From ``__launch_bounds__``."""
    required_block: tuple[int, int, int] | None
    """From ``__block_size__`` or ``.reqntid``."""
    code_bytes: int
    shared_bytes: int
    """Static shared memory per block as declared."""
    barriers: int
    constant_bytes: int
    """Bytes in constant banks of its own, parameters included."""
    functions: tuple[str, ...]
    """Device functions that lie in its text section, by their own symbols."""
    attributes: tuple[Attribute, ...]


class Cubin(NamedTuple):
    """A cubin, read."""

    arch: str
    """``sm_90``; the ``a`` of ``sm_90a`` is not recorded in a cubin."""
    assembler: str
    """Version of ptxas: ``13.0.88``; empty if the cubin does not say."""
    kernels: dict[str, CubinKernel]
    elf: Elf


def read_cubin(content: bytes) -> Cubin:
    """Parse a cubin.  Raises ``BadCubin`` if it is none, is cut short or contradicts itself."""
    elf = read_elf(content)
    if elf.machine != EM_CUDA:
        raise BadCubin(f"not a cubin: an ELF file for machine {elf.machine}, not {EM_CUDA}")
    generation = elf.flags & 0xFF if elf.abi == _OLD_ABI else elf.flags >> 8 & 0xFF
    figures = _figures(elf)
    kernels: dict[str, CubinKernel] = {}
    for symbol in elf.symbols:
        if symbol.type == STT_FUNC and symbol.other & _ENTRY and in_section(symbol.section):
            if symbol.name in kernels:
                raise BadCubin(f"not a whole cubin: it has two kernels {symbol.name}")
            kernels[symbol.name] = _kernel(elf, symbol, figures, generation)
    note = elf.section(".note.nv.tkinfo")
    version = _VERSION.search(note.data) if note is not None else None
    return Cubin(f"sm_{generation}", version[1].decode() if version else "", kernels, elf)


def parameter_base(kernel: CubinKernel) -> int:
    """Offset of the kernel's parameters in constant bank 0, bytes; 0 if it has none."""
    place = _value(kernel.attributes, PARAM_CBANK)
    return int.from_bytes(place[4:6], "little") if place is not None and len(place) >= 6 else 0


@functools.lru_cache(maxsize=32)
def module_variables(content: bytes) -> Mapping[str, int]:
    """Sizes in bytes of the ``__constant__`` and ``__device__`` variables, by symbol.  Raises ``BadCubin``."""
    elf = read_cubin(content).elf
    sections = (section for name in _VARIABLES if (section := elf.section(name)) is not None)
    symbols = (symbol for section in sections for symbol in elf.symbols_in(section))
    return {one.name: one.size for one in symbols if one.type == STT_OBJECT and _NAMED.match(one.name)}


@functools.lru_cache(maxsize=32)
def is_tile_kernel(content: bytes, symbol: str) -> bool:
    """Whether cuTile made the kernel: it is launched in blocks of one thread, whatever threads it has."""
    return in_tile_ir(read_cubin(content).kernels[symbol])


def in_tile_ir(kernel: CubinKernel) -> bool:
    """Whether the kernel was compiled from Tile IR."""
    language = _value(kernel.attributes, LANGUAGE)
    return language is not None and int.from_bytes(language, "little") == _TILE_IR


def text_of(elf: Elf, symbol: str) -> Section:
    """The section that holds a kernel's machine code.  Raises ``BadCubin``."""
    section = elf.section(f".text.{symbol}")
    if section is None:
        raise BadCubin(f"no machine code for kernel {symbol} in this cubin")
    return section


def constant_banks(elf: Elf, symbol: str) -> list[Section]:
    """The constant banks that belong to one kernel alone, in the order of their names."""
    names = sorted(f".nv.constant{number}.{symbol}" for number in range(_CONSTANT_BANKS))
    return [bank for bank in map(elf.section, names) if bank is not None]


def _kernel(elf: Elf, symbol: Symbol, figures: Mapping[tuple[int, int], int], generation: int) -> CubinKernel:
    text = text_of(elf, symbol.name)
    attributes = tuple(_attributes(elf.section(f".nv.info.{symbol.name}")))
    bounds, required = (
        next((_unpack("<III", one) for one in attributes if one.number == number), None)
        for number in (MAX_THREADS, REQUIRED_THREADS)
    )
    inside = (one for one in elf.symbols_in(text) if one.type == STT_FUNC and one.index != symbol.index)
    return CubinKernel(
        symbol=symbol.name,
        registers=figures.get((REGCOUNT, symbol.index), 0),
        stack_bytes=figures.get((MIN_STACK_SIZE, symbol.index), figures.get((FRAME_SIZE, symbol.index), 0)),
        parameters=_parameters(attributes),
        max_threads_per_block=math.prod(bounds) if bounds is not None else None,
        required_block=(required[0], required[1], required[2]) if required is not None else None,
        code_bytes=text.size,
        shared_bytes=_shared_bytes(elf, symbol.name, generation),
        barriers=_barriers(text, attributes),
        constant_bytes=sum(bank.size for bank in constant_banks(elf, symbol.name)),
        functions=tuple(one.name.removeprefix(f"${symbol.name}$") for one in inside),
        attributes=attributes,
    )


def _figures(elf: Elf) -> dict[tuple[int, int], int]:
    """Figures of ``.nv.info``, one per symbol, by attribute and index of the symbol."""
    found = {}
    for attribute in _attributes(elf.section(".nv.info")):
        if attribute.number in (REGCOUNT, FRAME_SIZE, MIN_STACK_SIZE):
            index, figure = _unpack("<II", attribute)
            found[attribute.number, index] = figure
    return found


def _attributes(section: Section | None) -> Iterator[Attribute]:
    data, at = section.data if section is not None else b"", 0
    while at < len(data):
        if at + 4 > len(data):
            raise BadCubin("not a whole cubin: an attribute is cut short")
        form, number, short = struct.unpack_from("<BBH", data, at)
        at += 4
        size = short if form == 4 else 0
        if form not in (1, 2, 3, 4) or at + size > len(data):
            raise BadCubin("not a whole cubin: an attribute is a malformed record")
        yield Attribute(number, data[at : at + size] if form == 4 else data[at - 2 : at])
        at += size


def _parameters(attributes: Iterable[Attribute]) -> tuple[Parameter, ...]:
    found: dict[int, Parameter] = {}
    for attribute in attributes:
        if attribute.number in (KPARAM_INFO, KPARAM_INFO_LARGE):
            _index, ordinal, offset, size = _unpack("<IHHI", attribute)
            size = size >> 18 if attribute.number == KPARAM_INFO else size & _LARGE_PARAMETER_BYTES
            found[ordinal] = Parameter(offset=offset, size=size)
    if sorted(found) != list(range(len(found))):
        raise BadCubin("not a whole cubin: the parameters of a kernel are not numbered from 0")
    return tuple(found[ordinal] for ordinal in sorted(found))


def _value(attributes: Iterable[Attribute], number: int) -> bytes | None:
    return next((attribute.value for attribute in attributes if attribute.number == number), None)


def _shared_bytes(elf: Elf, symbol: str, generation: int) -> int:
    section = elf.section(f".nv.shared.{symbol}")
    size = section.size if section is not None else 0
    counted = generation >= 90 and not elf.relocatable and size >= _RESERVED_SHARED_BYTES
    return size - _RESERVED_SHARED_BYTES if counted else size


def _barriers(text: Section, attributes: Iterable[Attribute]) -> int:
    """An attribute of its own in the newer ABI, bits 20 to 26 of the section's flags in the older one."""
    own = _value(attributes, NUM_BARRIERS)
    return text.flags >> 20 & 0x7F if own is None else int.from_bytes(own[:4], "little")


def _unpack(layout: str, attribute: Attribute) -> tuple[int, ...]:
    try:
        return struct.unpack(layout, attribute.value)
    except struct.error as problem:
        raise BadCubin(
            f"not a whole cubin: attribute {attribute.number:#x} has {len(attribute.value)} bytes"
        ) from problem
