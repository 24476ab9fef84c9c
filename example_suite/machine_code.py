"""What differs between two kernels in the machine code: opcodes that one has more of, and some of those instructions.

The code is that of the committed baselines, disassembled as the plugin does it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from recorded import ARCH, BASELINES

from pytest_gpuperf.baselines.cubin_store import read_cubin
from pytest_gpuperf.compile.machine_code.elf import read_elf
from pytest_gpuperf.compile.machine_code.sass import Instruction, disassemble, target_of, without_padding
from pytest_gpuperf.model.evidence import StaticRecord

_TELLING = re.compile(r"(?:LD|ST|ATOM|RED|MUFU|HMMA|HGMMA|VIADDMNMX|VIMNMX|UTMA|I2F|F2F|F2I|BAR)")
"""Opcodes whose modifiers tell what they do; of others only the part before the first dot is counted."""
_OF_SCOPE = re.compile(r"\.(?:E|STRONG|GPU|SYS|CONSTANT|SYNC|DEFER_BLOCKING|RELU_?)\b")
_WEIGHTS = {
    re.compile(r"[HIDQ]G?MMA"): 9.0,  # tensor cores
    re.compile(r"(?:LD|ST)[LSG]|ATOM|RED|UTMA|UBLKCP|BAR"): 3.0,  # memory and barriers
    re.compile(r"D(?:ADD|MUL|FMA|SETP)|MUFU|CALL|V\w+MNMX"): 3.0,  # dear arithmetic, and DPX
    re.compile(r"F(?:ADD|MUL|FMA)|BRA|BSSY|WARPSYNC|[IF]2[IF]|SHFL"): 2.0,
    re.compile(r"U?(?:MOV|LDC|LEA|LOP3|IADD3|SHF)|IMAD|S2U?R|NOP|EXIT|R2UR|CS2R|VIADD|HFMA2|ISETP"): 0.0,
}
"""How much an opcode that differs says; 1 for the rest.  Those of addresses and arguments say nothing: they are
counted, and never shown as decisive."""
_JUMPS = frozenset({"BRA", "BRX", "BSSY", "CALL", "JMP", "RET", "WARPSYNC"})
_LAST = re.compile(r"0x[0-9a-f]+\s*$")
SHOWN_OPCODES = 10
SHOWN_LINES = 3
"""Of each opcode, and opcodes of which instructions are shown."""


class MachineCode(NamedTuple):
    """Both sides of a pair."""

    naive: tuple[Instruction, ...]
    optimised: tuple[Instruction, ...]

    @property
    def counts(self) -> list[tuple[str, int, int]]:
        """Opcodes whose number differs, those first that say most."""
        sides = [Counter(opcode(each) for each in side) for side in self]
        rows = [(name, sides[0][name], sides[1][name]) for name in sides[0].keys() | sides[1].keys()]
        return sorted(
            (row for row in rows if row[1] != row[2]), key=lambda row: (-_weight(row), -abs(row[1] - row[2]), row[0])
        )

    @property
    def decisive(self) -> list[str]:
        """Instructions of the opcodes that differ most, from the side that has more of them.

        Where no opcode tells, those whose operands differ.
        """
        rows = [row for row in self.counts if _weight(row)]
        shown = []
        for name, naive, optimised in rows[:SHOWN_LINES]:
            sign, side = ("-", self.naive) if naive > optimised else ("+", self.optimised)
            own = [each for each in side if opcode(each) == name]
            shown += [f"{sign} {_text(each)}" for each in own[:SHOWN_LINES]]
            if len(own) > SHOWN_LINES:
                shown.append(f"{sign} ... {len(own)} {name} in all, {min(naive, optimised)} on the other side")
        return shown if self.counts else self._other_operands()

    def _other_operands(self) -> list[str]:
        changed = [(a, b) for a, b in zip(self.naive, self.optimised, strict=True) if _text(a) != _text(b)]
        return [f"{sign} {_text(each)}" for pair in changed[:SHOWN_LINES]
                for sign, each in zip("-+", pair, strict=True)]  # fmt: skip


def machine_codes(pairs: Sequence[tuple[StaticRecord, StaticRecord]]) -> list[MachineCode]:
    """Of each pair (naive, optimised), by one run of nvdisasm.  Raises ``CubinError``, ``ToolchainMissing``."""
    records = {record.profile.code_hash: record for pair in pairs for record in pair}
    texts = {name: _text_section(record) for name, record in records.items()}
    code = {name: without_padding(found) for name, found in disassemble(ARCH, texts).items()}
    return [MachineCode(*(code[record.profile.code_hash] for record in pair)) for pair in pairs]


def opcode(instruction: Instruction) -> str:
    """As it is counted: ``FFMA``, ``LDG.128``, ``MUFU.RCP``."""
    name = instruction.opcode
    return _OF_SCOPE.sub("", name) if _TELLING.match(name) else name.split(".")[0]


def _weight(row: tuple[str, int, int]) -> float:
    """How much an opcode says, times the difference in proportion, times how many bits that takes to count."""
    name, naive, optimised = row
    known = next((weight for names, weight in _WEIGHTS.items() if names.match(name)), 1.0)
    return known * abs(naive - optimised) / max(naive, optimised) * abs(naive - optimised).bit_length()


def _text(instruction: Instruction) -> str:
    """As nvdisasm prints it; where it jumps to, from the start of its own kernel."""
    predicate = f"@{instruction.predicate} " if instruction.predicate else ""
    operands, target = instruction.operands, target_of(instruction)
    if target is not None and instruction.opcode.split(".")[0] in _JUMPS:
        operands = _LAST.sub(hex(target), operands)
    return f"{predicate}{instruction.opcode} {operands}".rstrip()


def _text_section(record: StaticRecord) -> bytes:
    cubin = read_cubin(BASELINES, record.cubin)
    section = read_elf(cubin).section(f".text.{record.symbol or record.kernel}")
    if section is None:
        raise ValueError(f"{record.kernel} is not in its cubin, {record.cubin}")
    return bytes(section.data)
