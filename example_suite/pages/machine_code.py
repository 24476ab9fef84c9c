"""The difference between two kernels in the machine code: opcodes that one has more of, and some of those instructions.

The code is that of the committed baselines, disassembled as the plugin does it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pages.facts import ARCH, Recorded

from pytest_gpuperf.compile.machine_code.elf import read_elf
from pytest_gpuperf.compile.machine_code.sass import Instruction, disassemble, target_of, without_padding
from pytest_gpuperf.model.evidence import StaticRecord

_TELLING = re.compile(r"(?:LD|ST|ATOM|RED|MUFU|HMMA|HGMMA|VIADDMNMX|VIMNMX|UTMA|I2F|F2F|F2I|BAR)")
"""Opcodes whose modifiers say something; of others only the part before the first dot is counted."""
_OF_SCOPE = re.compile(r"\.(?:E|STRONG|GPU|SYS|CONSTANT|SYNC|DEFER_BLOCKING|RELU_?)\b")
_WEIGHTS = {
    re.compile(r"[HIDQ]G?MMA"): 9.0,  # tensor cores
    re.compile(r"(?:LD|ST)[LSG]|ATOM|RED|UTMA|UBLKCP|BAR"): 3.0,  # memory and barriers
    re.compile(r"D(?:ADD|MUL|FMA|SETP)|MUFU|CALL|V\w+MNMX"): 3.0,  # dear arithmetic, and DPX
    re.compile(r"F(?:ADD|MUL|FMA)|BRA|BSSY|WARPSYNC|[IF]2[IF]|SHFL"): 2.0,
    re.compile(r"U?(?:MOV|LDC|LEA|LOP3|IADD3|SHF)|IMAD|S2U?R|NOP|EXIT|R2UR|CS2R|VIADD|HFMA2|ISETP"): 0.0,
}
"""How decisive an opcode is that differs; 1 for the rest.  Those of addresses and arguments are counted alone."""
_JUMPS = frozenset({"BRA", "BRX", "BSSY", "CALL", "JMP", "RET", "WARPSYNC"})
_LAST = re.compile(r"0x[0-9a-f]+\s*$")
SHOWN_OPCODES, SHOWN_LINES = 3, 2
"""Opcodes of which instructions are shown, and how many of each."""
Code = Sequence[Instruction]


def codes_of(records: Iterable[StaticRecord], recorded: Recorded) -> Mapping[str, Code]:
    """By their hashes, by one run of nvdisasm.  Raises ``CubinError``, ``ToolchainMissing``."""
    texts = {}
    for one in records:
        section = read_elf(recorded.store.cubin(one.cubin)).section(f".text.{one.symbol or one.kernel}")
        assert section is not None, one.kernel
        texts[one.profile.code_hash] = bytes(section.data)
    return {name: without_padding(found) for name, found in disassemble(ARCH, texts).items()}


def counts(naive: Code, optimised: Code) -> list[tuple[str, int, int]]:
    """Opcodes whose number differs, the most decisive first."""
    was, now = (Counter(map(opcode, side)) for side in (naive, optimised))
    rows = [(name, was[name], now[name]) for name in was | now if was[name] != now[name]]
    return sorted(rows, key=lambda row: (-_weight(row), -abs(row[1] - row[2]), row[0]))


def decisive(naive: Code, optimised: Code) -> list[str]:
    """Instructions of the opcodes that differ most, from the side with more of them; else differing operands."""
    rows = counts(naive, optimised)
    if not rows:
        changed = [pair for pair in zip(map(_text, naive), map(_text, optimised), strict=True) if pair[0] != pair[1]]
        return [f"{sign} {text}" for pair in changed[:SHOWN_LINES] for sign, text in zip("-+", pair, strict=True)]
    shown = []
    for name, was, now in [row for row in rows if _weight(row)][:SHOWN_OPCODES]:
        sign, side = ("-", naive) if was > now else ("+", optimised)
        shown += [f"{sign} {_text(each)}" for each in side if opcode(each) == name][:SHOWN_LINES]
    return shown


def opcode(instruction: Instruction) -> str:
    """As it is counted: ``FFMA``, ``LDG.128``, ``MUFU.RCP``."""
    name = instruction.opcode
    return _OF_SCOPE.sub("", name) if _TELLING.match(name) else name.split(".")[0]


def _weight(row: tuple[str, int, int]) -> float:
    """Of an opcode, times the difference in proportion, times how many bits that takes to count."""
    name, was, now = row
    known = next((weight for names, weight in _WEIGHTS.items() if names.match(name)), 1.0)
    return known * abs(was - now) / max(was, now) * abs(was - now).bit_length()


def _text(instruction: Instruction) -> str:
    """As nvdisasm prints it; the target of a jump from the start of its own kernel."""
    operands, target = instruction.operands, target_of(instruction)
    if target is not None and instruction.opcode.split(".")[0] in _JUMPS:
        operands = _LAST.sub(hex(target), operands)
    return f"{f'@{instruction.predicate} ' if instruction.predicate else ''}{instruction.opcode} {operands}".rstrip()
