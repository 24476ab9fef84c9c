"""How often each instruction is in a kernel's machine code, by its opcode: finer than the classes of its profile."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.machine_code.elf import read_elf
from pytest_gpuperf.compile.machine_code.sass import disassemble
from pytest_gpuperf.compile.toolkit import disassembler
from pytest_gpuperf.model.evidence import KernelBinary


def in_order(binary: KernelBinary) -> list[str]:
    """Opcodes with their modifiers, from the first instruction to the last: ``VIADDMNMX.S16x2``."""
    section = read_elf(binary.cubin).section(f".text.{binary.symbol}")
    assert section is not None, f"{binary.name} has no machine code for {binary.arch}"
    return _opcodes(binary.arch, bytes(section.data), CompileCache())


def instructions(binary: KernelBinary) -> Counter[str]:
    """By opcode with its modifiers."""
    return Counter(in_order(binary))


def count(binary: KernelBinary, opcode: str) -> int:
    """With these modifiers or more: ``DFMA``, or ``LDG.E.LTC128B`` for what begins so."""
    return sum(n for name, n in instructions(binary).items() if name == opcode or name.startswith(f"{opcode}."))


def _opcodes(arch: str, code: bytes, cache: CompileCache) -> list[str]:
    """Opcodes of machine code, kept beside what was compiled: each start of nvdisasm takes 0.2 s and more."""
    what = json.dumps(["opcodes", disassembler().version, arch, hashlib.sha256(code).hexdigest()])
    key = hashlib.sha256(what.encode()).hexdigest()
    kept = cache.get(key)
    if kept is not None:
        return json.loads(kept)
    found = [instruction.opcode for instruction in disassemble(arch, {"code": code})["code"]]
    cache.put(key, json.dumps(found).encode())
    return found
