"""How often each instruction is in a kernel's machine code, by its opcode: finer than the classes of its profile."""

from __future__ import annotations

from collections import Counter

from pytest_gpuperf.compile.cubin.disassembly import disassemble
from pytest_gpuperf.compile.cubin.elf import read_elf
from pytest_gpuperf.model.evidence import KernelBinary


def in_order(binary: KernelBinary) -> list[str]:
    """Opcodes with their modifiers, from the first instruction to the last: ``VIADDMNMX.S16x2``."""
    section = read_elf(binary.cubin).section(f".text.{binary.symbol}")
    assert section is not None, f"{binary.name} has no machine code for {binary.arch}"
    code = disassemble(binary.arch, {binary.symbol: section.data})[binary.symbol]
    return [instruction.opcode for instruction in code]


def instructions(binary: KernelBinary) -> Counter[str]:
    """By opcode with its modifiers."""
    return Counter(in_order(binary))


def count(binary: KernelBinary, opcode: str) -> int:
    """With these modifiers or more: ``DFMA``, or ``LDG.E.LTC128B`` for what begins so."""
    return sum(n for name, n in instructions(binary).items() if name == opcode or name.startswith(f"{opcode}."))
