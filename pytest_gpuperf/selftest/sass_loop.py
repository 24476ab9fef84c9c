"""Instructions that a loop kernel executes: the jump back gives its body, the compare in it the iterations.  Exact."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.cubin.cubin_reader import read_cubin, text_of
from pytest_gpuperf.compile.cubin.disassembly import Instruction, disassemble, target_of, without_padding
from pytest_gpuperf.model.evidence import KernelBinary

_COMPARED = re.compile(r"\b(0x[0-9a-f]+|\d+)\s*,\s*!?U?PT\s*$")


class UnexpectedCode(Exception):
    """The compiler did not make one plain loop of the source, so that its work is not known."""


class LoopCode(NamedTuple):
    """A loop kernel as a thread executes it."""

    outside: int
    """Instructions before and after the loop."""
    body: int
    """Instructions of one iteration."""
    iterations: int

    @property
    def executed(self) -> int:
        """Instructions per thread."""
        return self.outside + self.body * self.iterations


def loop_codes(binaries: Sequence[KernelBinary]) -> list[LoopCode]:
    """Loop kernels of one architecture, counted.  Raises ``UnexpectedCode``, ``ToolchainMissing``, ``BadCubin``."""
    if not binaries:
        return []
    texts = {
        str(place): text_of(read_cubin(binary.cubin).elf, binary.symbol).data for place, binary in enumerate(binaries)
    }
    codes = disassemble(binaries[0].arch, texts)
    return [_counted(binary, without_padding(codes[str(place)])) for place, binary in enumerate(binaries)]


def _counted(binary: KernelBinary, code: Sequence[Instruction]) -> LoopCode:
    jumps = [line for line in code if line.opcode.startswith("BRA")]
    first = target_of(jumps[0]) if len(jumps) == 1 else None
    if first is None or first > jumps[0].address:
        raise UnexpectedCode(f"{binary.name} ({binary.arch}): {len(jumps)} jumps where one loop was written")
    body = [line for line in code if first <= line.address <= jumps[0].address]
    multiplied = sum(line.opcode.startswith("FFMA") for line in body)
    if multiplied != 1:
        raise UnexpectedCode(f"{binary.name} ({binary.arch}): {multiplied} FMAs per iteration where one was written")
    return LoopCode(len(code) - len(body), len(body), _iterations(binary, body))


def _iterations(binary: KernelBinary, body: Sequence[Instruction]) -> int:
    compares = [line for line in body if "ISETP" in line.opcode]
    found = _COMPARED.search(compares[0].operands) if len(compares) == 1 else None
    if found is None:
        raise UnexpectedCode(f"{binary.name} ({binary.arch}): its loop's end is not compared with a constant")
    return int(found[1], 0)
