"""Machine code to instructions, by nvdisasm, and to the classes of their opcodes.

One process disassembles all kernels that are known: its start takes 0.15 to 0.3 s, each kernel next to nothing.
Plain text of the bare instructions (``-raw -binary``) is a quarter faster than JSON, and says the same.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

import msgspec

from pytest_gpuperf.compile.compile_errors import STATIC_EXTRA, ToolchainMissing
from pytest_gpuperf.compile.toolkit import InstalledTool, disassembler

INSTRUCTION_BYTES = 16
"""Every instruction of sm_75 and later."""

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;", re.MULTILINE)
_SECONDS = 60
KEPT = 64
"""Texts that a process keeps: options that change nothing and versions of a kernel give the same code again."""

Name = TypeVar("Name", bound=Hashable)


class Instruction(NamedTuple):
    """One SASS instruction."""

    address: int
    """Bytes from the start of its text section."""
    predicate: str
    """``!P0``; empty for one that is always executed."""
    opcode: str
    """With its modifiers: ``LDG.E.128``."""
    operands: str
    start: int = 0
    """Start of its section in what was disassembled together; targets of jumps count from there."""


def disassemble(arch: str, texts: Mapping[Name, bytes]) -> dict[Name, tuple[Instruction, ...]]:
    """Instructions of each text section, by any name, in one run of nvdisasm.  Raises ``ToolchainMissing``."""
    if not any(texts.values()):
        return dict.fromkeys(texts, ())
    tool = disassembler()
    output = run_nvdisasm(tool, arch, b"".join(texts.values()))
    lines = [Instruction(int(at, 16), *words) for at, *words in _LINE.findall(output)]
    expected = sum(map(len, texts.values())) // INSTRUCTION_BYTES
    if [line.address for line in lines] != [index * INSTRUCTION_BYTES for index in range(expected)]:
        raise ToolchainMissing(
            f"{tool.path} ({tool.version}) prints {len(lines)} instructions of {expected} "
            f"in a form this plugin does not read. Install another: {STATIC_EXTRA}"
        )
    found: dict[Name, tuple[Instruction, ...]] = {}
    start = 0
    for name, code in texts.items():
        end = start + len(code)
        own = lines[start // INSTRUCTION_BYTES : end // INSTRUCTION_BYTES]
        found[name] = tuple(line._replace(address=line.address - start, start=start) for line in own)
        start = end
    return found


@functools.lru_cache(maxsize=KEPT)
def run_nvdisasm(tool: InstalledTool, arch: str, code: bytes) -> str:
    """What nvdisasm prints of bare instructions.  Raises ``ToolchainMissing``."""
    with TemporaryDirectory(prefix="gpuperf-") as folder:
        file = Path(folder, "code.bin")
        file.write_bytes(code)
        command = [str(tool.path), "-raw", "-ndf", "-b", arch.replace("sm_", "SM"), str(file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise ToolchainMissing(
                f"{tool.path} does not run ({problem}). Install another: {STATIC_EXTRA}"
            ) from problem
    if done.returncode != 0:
        why = next(iter((done.stderr or done.stdout).strip().splitlines()), "no reason given")
        raise ToolchainMissing(
            f"nvdisasm {tool.version} cannot disassemble code for {arch}: {why}. A newer one may: {STATIC_EXTRA}"
        )
    return done.stdout


def without_padding(instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Less what follows the last instruction that can run: NOPs and the jump to itself that guards them."""
    end = len(instructions)
    while end and instructions[end - 1].opcode == "NOP":
        end -= 1
    if end:
        last = instructions[end - 1]
        end -= last.opcode == "BRA" and not last.predicate and target_of(last) == last.address
    return instructions[:end]


_TARGET = re.compile(r"(?:^|[\s,])(0x[0-9a-f]+)\s*$")


def target_of(instruction: Instruction) -> int | None:
    """Target of a jump or call, in bytes from the start of its section; None if a register holds it."""
    found = _TARGET.search(instruction.operands)
    return int(found[1], 16) - instruction.start if found else None


# --- classes of opcodes --------------------------------------------------------------------------

CLASSES = msgspec.json.decode(Path(__file__).with_name("opcodes.json").read_bytes(), type=dict[str, str])
"""Class to the opcodes in it, as NVIDIA's "CUDA Binary Utilities" lists them for Turing to Blackwell."""
CLASS_OF = {opcode: name for name, opcodes in CLASSES.items() for opcode in opcodes.split()}

_MOVES = re.compile(r"IMAD\.MOV\b|HFMA2(?:\.MMA)? R\d+, -RZ, RZ, ")
"""The compiler moves with arithmetic where that unit is idle: a product of zeros, plus the value."""


def class_of(opcode: str, operands: str = "") -> str:
    """The class of ``LDG.E.128``: ``global_load``."""
    if _MOVES.match(f"{opcode} {operands}"):
        return "move"
    return CLASS_OF.get(opcode.partition(".")[0], "other")


def histogram(instructions: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Instructions (opcode and operands) per class, in alphabetical order; classes that do not occur are left out."""
    return dict(sorted(Counter(class_of(opcode, operands) for opcode, operands in instructions).items()))
