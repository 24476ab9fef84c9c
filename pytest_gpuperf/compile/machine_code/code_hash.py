"""One hash for everything in a cubin that a kernel's execution depends on, made without a disassembler.

In it: the kernel's section of machine code with the device functions that the compiler put there, device functions in
sections of their own, the launch facts (registers, stack, shared memory, barriers, bounds, parameters, constant banks)
and, if the kernel reads any of them, all constants and initialised variables of the module.  Not in it: names, line
tables, the source file, other kernels, but for the constants that they bring along.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator

from pytest_gpuperf.compile.machine_code import cubin as cubin_format
from pytest_gpuperf.compile.machine_code.cubin import Cubin, CubinKernel, text_of
from pytest_gpuperf.compile.machine_code.elf import Elf, Section, in_section
from pytest_gpuperf.model.architectures import ARCHITECTURES

FORM = 2
"""Raised whenever equal machine code gets another hash than before."""
_OF_MODULE = (".nv.constant3", ".nv.constant4", ".nv.global.init")
"""``__constant__`` variables, addresses of what is used, variables with initial values and messages."""
_BANKS_OF_MODULE = (3, 4)
_INSTRUCTION = struct.Struct("<QQ")
_BANK_BIT = 54
"""Where every instruction that reads a constant bank has its number, in five bits; immediate values may lie there too.

Found by nvdisasm 13 in all 226 kernels that read bank 3 or 4, of 750 for sm_75 to sm_120.
"""


def code_hash(cubin: Cubin, kernel: CubinKernel) -> str:
    """SHA-256 in hex of ``kernel``.  Raises ``BadCubin``."""
    elf = cubin.elf
    parts = [b"gpuperf code %d" % FORM, *_section(elf, text_of(elf, kernel.symbol)), *_launch_facts(cubin, kernel)]
    functions = [_digest(_section(elf, one)) for one in _device_functions(cubin)]
    if functions or _may_read_module(cubin, kernel):
        for section in filter(None, map(elf.section, _OF_MODULE)):
            parts += [section.name.encode(), *_section(elf, section)]
    return _digest([*parts, *sorted(functions)]).hex()


def _may_read_module(cubin: Cubin, kernel: CubinKernel) -> bool:
    """Whether the kernel may read constants or variables of the module; True where that is not known."""
    text = text_of(cubin.elf, kernel.symbol)
    if cubin.arch not in ARCHITECTURES or len(text.data) % _INSTRUCTION.size or cubin.elf.relocations(text):
        return True
    return any(low >> _BANK_BIT & 0x1F in _BANKS_OF_MODULE for low, _ in _INSTRUCTION.iter_unpack(text.data))


def _digest(parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(struct.pack("<Q", len(part)) + part)
    return digest.digest()


def _device_functions(cubin: Cubin) -> Iterator[Section]:
    """Functions in sections of their own, as ``-rdc=true`` leaves them."""
    kernels = {f".text.{symbol}" for symbol in cubin.kernels}
    return (one for one in cubin.elf.sections if one.name.startswith(".text.") and one.name not in kernels)


def _section(elf: Elf, section: Section) -> tuple[bytes, bytes]:
    """Its bytes, and the addresses that the loader writes into them, less the names of what lies there."""
    addresses = []
    for at, kind, index, addend in elf.relocations(section):
        symbol = elf.symbols[index] if index < len(elf.symbols) else None
        if symbol is None or not in_section(symbol.section):
            place = (symbol.name if symbol else str(index)).encode()
        else:
            place = struct.pack("<QQ", symbol.value, symbol.size)
        addresses.append(struct.pack("<QQqQ", at, kind, addend, len(place)) + place)
    return section.data, b"".join(addresses)


def _launch_facts(cubin: Cubin, kernel: CubinKernel) -> list[bytes]:
    """What a launch needs in addition to code; for a tile kernel also the host code that the driver runs before it."""
    figures = (kernel.registers, kernel.stack_bytes, kernel.shared_bytes, kernel.barriers)
    facts = [struct.pack("<4Q", *figures)]
    for number, value in sorted(kernel.attributes):
        facts.append(bytes([number]) + _without_symbols(cubin.elf, number, value))
    for bank in cubin_format.constant_banks(cubin.elf, kernel.symbol):
        facts += [bank.name.removesuffix(f".{kernel.symbol}").encode(), *_section(cubin.elf, bank)]
    host = cubin.elf.section(cubin_format.HOST_CODE) if cubin_format.in_tile_ir(kernel) else None
    return facts if host is None else [*facts, host.data]


def _without_symbols(elf: Elf, number: int, value: bytes) -> bytes:
    """An attribute's value less symbol indices, which depend on what else is in the file."""
    if number == cubin_format.PARAM_CBANK:
        return value[4:]
    if number == cubin_format.EXTERNS:
        indices = (index for (index,) in struct.iter_unpack("<I", value[: len(value) // 4 * 4]))
        return ",".join(sorted(elf.symbols[index].name for index in indices if index < len(elf.symbols))).encode()
    return value
