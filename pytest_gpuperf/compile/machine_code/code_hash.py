"""One hash for everything in a cubin that a kernel's execution depends on.

In it: the kernel's instructions, the device functions it calls, the constants and initialised globals it refers to,
its constant banks, registers, shared memory, barriers, stack, launch bounds and parameter layout, and of a tile kernel
what the driver runs on the host before a launch.  Not in it: names, line tables, the source file, other kernels.  What
cannot be followed goes in whole.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Callable, Iterator, Sequence

from pytest_gpuperf.compile.machine_code import cubin as cubin_format
from pytest_gpuperf.compile.machine_code.cubin import Cubin, CubinKernel, text_of
from pytest_gpuperf.compile.machine_code.elf import STT_FUNC
from pytest_gpuperf.compile.machine_code.references import ReferenceWalk, bank_symbols
from pytest_gpuperf.compile.machine_code.sass import Instruction

FORM = 1
"""Raised whenever equal machine code gets another hash than before."""
_MOST_BYTES = 2 << 20
"""Of cubins that are walked, all tries together, to find out what the PTX on record had excluded."""


def hash_code(
    cubin: Cubin,
    kernel: CubinKernel,
    instructions: Sequence[Instruction],
    resources: Sequence[int],
    unreachable: Callable[[], frozenset[str]] = frozenset,
) -> str:
    """SHA-256 in hex for ``kernel``.

    ``resources`` are the figures that only the assembler's log gives; ``unreachable`` tells, when asked, the
    symbols of the module that this kernel certainly does not use.
    """
    walk = ReferenceWalk(cubin.elf, text_of(cubin.elf, kernel.symbol), instructions, unreachable)
    walk.follow(next(s for s in cubin.elf.symbols if s.name == kernel.symbol and s.type == STT_FUNC))
    digest = hashlib.sha256(b"gpuperf code %d\0" % FORM)
    for part in (*walk.parts(), *_launch_facts(cubin, kernel), struct.pack(f"<{len(resources)}q", *resources)):
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.hexdigest()


def bytes_hash(cubin: Cubin, kernel: CubinKernel) -> str:
    """A hash of what a kernel's own sections say, instructions as bytes: nvdisasm is not asked.

    Equal bytes are equal code as far as the kernel goes; the functions, constants and globals that it refers to are
    not in it.  Other bytes may be the same code at other places of a bank, which ``hash_code`` sees through.
    """
    text = text_of(cubin.elf, kernel.symbol)
    digest = hashlib.sha256(b"gpuperf bytes %d\0" % FORM)
    slots = b"".join(struct.pack("<qqq", at, kind, addend) for at, kind, _, addend in cubin.elf.relocations(text))
    for part in (text.data, slots, *_launch_facts(cubin, kernel), struct.pack("<q", kernel.shared_bytes)):
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.hexdigest()


def own_hash(cubin: Cubin, kernel: CubinKernel, instructions: Sequence[Instruction], excluded: frozenset[str]) -> str:
    """The hash by nothing but the cubin, which has what the assembler's log says too."""
    resources = (kernel.registers, kernel.shared_bytes, kernel.barriers)
    return hash_code(cubin, kernel, instructions, resources, lambda: excluded)


def may_be_recorded_as(
    code_hash: str, cubin: Cubin, kernel: CubinKernel, instructions: Sequence[Instruction], own: str
) -> bool:
    """Whether the kernel, whose hash by the cubin alone is its ``own``, may have this one on record.

    What PTX excluded of a constant bank that the kernel indexes is in no cubin: all but few of its symbols are tried,
    and few, until much was walked.
    """
    tries = _MOST_BYTES // max(sum(len(section.data) for section in cubin.elf.sections), 1)
    sets = itertools.islice(_exclusions(cubin), tries)
    return code_hash == own or any(own_hash(cubin, kernel, instructions, one) == code_hash for one in sets)


def _exclusions(cubin: Cubin) -> Iterator[frozenset[str]]:
    """Every set of symbols in constant banks, but for none: all but few and few in turn."""
    names = frozenset(bank_symbols(cubin.elf))
    for size in range((len(names) + 1) // 2):
        for few in map(frozenset, itertools.combinations(sorted(names), size)):
            yield names - few
        for few in map(frozenset, itertools.combinations(sorted(names), size + 1)):
            yield few


def _launch_facts(cubin: Cubin, kernel: CubinKernel) -> list[bytes]:
    """Parameter layout, bounds, constant banks of its own, registers: what a launch needs besides code."""
    facts = [struct.pack("<qq", kernel.registers, kernel.stack_bytes)]
    for number, value in sorted(kernel.attributes):
        facts.append(bytes([number]) + _without_symbols(cubin, number, value))
    for bank in cubin_format.constant_banks(cubin.elf, kernel.symbol):
        facts.append(bank.name.removesuffix(f".{kernel.symbol}").encode() + bank.data)
        facts.extend(struct.pack("<qqq", at, kind, addend) for at, kind, _, addend in cubin.elf.relocations(bank))
    host = cubin.elf.section(cubin_format.HOST_CODE) if cubin_format.in_tile_ir(kernel) else None
    if host is not None:
        facts.append(host.data)
    return facts


def _without_symbols(cubin: Cubin, number: int, value: bytes) -> bytes:
    """An attribute's value less symbol indices, which depend on what else is in the file."""
    if number == cubin_format.PARAM_CBANK:
        return value[4:]
    if number == cubin_format.EXTERNS:
        indices = (index for (index,) in struct.iter_unpack("<I", value[: len(value) // 4 * 4]))
        symbols = cubin.elf.symbols
        return ",".join(sorted(symbols[index].name for index in indices if index < len(symbols))).encode()
    return value
