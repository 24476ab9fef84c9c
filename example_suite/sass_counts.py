"""How often each instruction is in a kernel's machine code, by its opcode: finer than the classes of its profile."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pytest_gpuperf.compile.cubin.disassembly import disassemble
from pytest_gpuperf.compile.cubin.elf import read_elf


def instructions(kernel: Any, arch: str) -> Counter[str]:
    """By opcode with its modifiers (``VIADDMNMX.S16x2``), for one of the architectures that it was compiled for."""
    binary = kernel.binaries[arch]
    section = read_elf(binary.cubin).section(f".text.{binary.symbol}")
    assert section is not None, f"{binary.name} has no machine code for {arch}"
    return Counter(instruction.opcode for instruction in disassemble(arch, {0: section.data})[0])


def count(kernel: Any, arch: str, opcode: str) -> int:
    """With any modifiers: ``DFMA``, but also ``LDG.E.LTC128B`` for those that begin with it."""
    found = instructions(kernel, arch)
    return sum(n for name, n in found.items() if name == opcode or name.startswith(f"{opcode}."))
