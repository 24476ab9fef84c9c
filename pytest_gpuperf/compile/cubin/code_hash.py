"""One hash for everything in a cubin that a kernel's execution depends on.

In it: the kernel's instructions, the device functions it calls, the constants and initialised globals it refers to,
its constant banks, registers, shared memory, barriers, stack, launch bounds and parameter layout.  Not in it: names,
line tables, the source file, other kernels.  What cannot be followed goes in whole.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import struct
from collections.abc import Callable, Iterator, Sequence

from pytest_gpuperf.compile.cubin import cubin_reader as cubin_format
from pytest_gpuperf.compile.cubin.cubin_reader import Cubin, CubinKernel, text_of
from pytest_gpuperf.compile.cubin.disassembly import Instruction
from pytest_gpuperf.compile.cubin.elf import STT_FUNC
from pytest_gpuperf.compile.cubin.references import ReferenceWalk, bank_symbols

FORM = 1
"""Raised whenever equal machine code gets another hash than before."""
_MOST_STEPS = 200_000
"""Instructions that are walked, all tries together, to find out what the PTX on record had excluded: about a second."""


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


def has_code(cubin: Cubin, kernel: CubinKernel, instructions: Sequence[Instruction], code_hash: str) -> bool:
    """Whether ``code_hash`` is that of this kernel, by nothing but its cubin.

    What the assembler's log says is in the cubin too.  What PTX excluded of a constant bank that the kernel indexes is
    not: nothing is tried first, then all but few of its symbols, and few.
    """
    resources = (kernel.registers, kernel.shared_bytes, kernel.barriers)
    tries = 1 + _MOST_STEPS // max(len(instructions), 1)
    return any(
        hash_code(cubin, kernel, instructions, resources, functools.partial(frozenset, excluded)) == code_hash
        for excluded in itertools.islice(_exclusions(cubin), tries)
    )


def _exclusions(cubin: Cubin) -> Iterator[frozenset[str]]:
    """Every set of symbols in constant banks: none, then all but few and few in turn."""
    yield frozenset()
    names = sorted(bank_symbols(cubin.elf))
    for size in range(len(names) // 2 + 1):
        for few in itertools.combinations(names, size):
            yield frozenset(names).difference(few)
        for few in itertools.combinations(names, size):
            yield frozenset(few)


def _launch_facts(cubin: Cubin, kernel: CubinKernel) -> list[bytes]:
    """Parameter layout, bounds, constant banks of its own, registers: what a launch needs besides code."""
    facts = [struct.pack("<qq", kernel.registers, kernel.stack_bytes)]
    for number, value in sorted(kernel.attributes):
        facts.append(bytes([number]) + _without_symbols(cubin, number, value))
    for bank in cubin_format.constant_banks(cubin.elf, kernel.symbol):
        facts.append(bank.name.removesuffix(f".{kernel.symbol}").encode() + bank.data)
        facts.extend(struct.pack("<qqq", at, kind, addend) for at, kind, _, addend in cubin.elf.relocations(bank))
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
