"""Instructions taken apart: what is computed, where from and where to."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.machine_code.opcodes import class_of
from pytest_gpuperf.compile.machine_code.sass import Instruction, target_of

ZERO = frozenset({"RZ", "URZ", "SRZ"})
TRUE = frozenset({"PT", "UPT"})

_REGISTER = re.compile(r"U?R(?:\d+|Z)")
_PREDICATE = re.compile(r"!?U?P(?:\d+|T)")
_CONSTANT = re.compile(r"c\[0x0\]\[(0x[0-9a-f]+|U?RZ)\]")
_ADDRESS = re.compile(r"\[([^\]]*)\]$")
_STORES = ("STG", "STS", "STL", "ST", "RED", "REDG", "BAR", "EXIT", "BRA", "RET", "BSYNC", "BSSY", "BREAK", "LDGSTS")


class Operand(NamedTuple):
    """One source."""

    text: str
    """The register, or the constant's place, without its signs."""
    kind: str
    """``register``, ``predicate``, ``constant``, ``number`` or ``other``."""
    negative: bool = False
    inverted: bool = False
    """``~R5`` of a register, ``!P0`` of a predicate."""
    number: int = 0


class Step(NamedTuple):
    """One instruction, taken apart."""

    address: int
    opcode: str
    """With its modifiers."""
    base: str
    """First word of the opcode."""
    modifiers: frozenset[str]
    klass: str
    """Class of ``opcodes``."""
    guard: Operand | None
    """Predicate under which it runs."""
    results: tuple[str, ...]
    """Registers written; the second of a pair follows the first."""
    flags: tuple[str, ...]
    """Predicates written."""
    sources: tuple[Operand, ...]
    address_text: str
    """Inside of the brackets of a memory instruction; empty for others."""
    reads: tuple[str, ...]
    """Every register that has to be ready, and the guard."""
    writes: tuple[str, ...]
    """Results and flags."""
    target: int | None
    """Target of a jump or call."""


def decode(line: Instruction) -> Step:
    """Take one instruction apart."""
    base, *modifiers = line.opcode.split(".")
    parts = _split(line.operands)
    klass = class_of(line.opcode, line.operands)
    address_text = _address(parts)
    results, flags, sources = _roles(base, frozenset(modifiers), parts)
    guard = operand(line.predicate) if line.predicate else None
    reads = _reads(base, line.opcode, sources, address_text)
    return Step(
        line.address, line.opcode, base, frozenset(modifiers), klass, guard, results, flags,
        tuple(operand(part) for part in sources), address_text, reads if guard is None else (*reads, guard.text),
        (*results, *flags), target_of(line),
    )  # fmt: skip


def _split(operands: str) -> list[str]:
    return [part.strip().replace(".reuse", "") for part in operands.split(",")] if operands else []


def _address(parts: Sequence[str]) -> str:
    """Content of the last bracket that holds an address: for LDGSTS that is where it loads from."""
    found = [match[1] for part in parts if not part.startswith("c[") and (match := _ADDRESS.search(part))]
    return found[-1] if found else ""


def _roles(
    base: str, modifiers: frozenset[str], parts: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Registers written, predicates written, sources."""
    if base in _STORES:
        return (), (), tuple(parts)
    rest = list(parts)
    results: list[str] = []
    flags: list[str] = []
    first_is_flag = bool(rest) and _PREDICATE.fullmatch(rest[0]) is not None
    if rest and not first_is_flag and _REGISTER.fullmatch(rest[0]):
        results = registers_from(rest.pop(0), _width(base, modifiers))
    while rest and _PREDICATE.fullmatch(rest[0]) and not rest[0].startswith("!") and len(flags) < 2:
        flags.append(rest.pop(0))
    if first_is_flag and base in ("LOP3", "ULOP3", "SHFL") and rest and _REGISTER.fullmatch(rest[0]):
        results = registers_from(rest.pop(0), 1)  # LOP3.LUT P0, RZ, R0, ...
    return tuple(results), tuple(flags), tuple(rest)


def _width(base: str, modifiers: frozenset[str]) -> int:
    """Registers that a result takes."""
    if "128" in modifiers or base == "HMMA":
        return 4
    if base in ("I2F", "F2F") and "F64" in modifiers and "F32" not in modifiers:
        return 2
    wide = modifiers & {"64", "WIDE"} or base.startswith("D") or base == "CS2R"
    return 2 if wide and "32" not in modifiers else 1


def registers_from(first: str, count: int) -> list[str]:
    """``R4``, ``R5``: so many registers in a row; the zero register is one."""
    if first in ZERO or count == 1:
        return [first]
    stem = first.rstrip("0123456789")
    number = int(first[len(stem) :])
    return [f"{stem}{number + offset}" for offset in range(count)]


@functools.lru_cache(4096)
def operand(text: str) -> Operand:
    """``-R4``, ``~R5``, ``!P0``, ``0x20``, ``c[0x0][0x210]``: what it names and how it is changed."""
    if _PREDICATE.fullmatch(text):
        return Operand(text.lstrip("!"), "predicate", inverted=text.startswith("!"))
    negative, inverted = text.startswith("-") and not text.startswith("-0x"), text.startswith("~")
    bare = text.lstrip("-~") if negative or inverted else text
    if _REGISTER.fullmatch(bare) or bare == "SRZ":
        return Operand(bare, "register", negative, inverted)
    constant = _CONSTANT.fullmatch(bare)
    if constant:
        offset = 0 if constant[1].endswith("RZ") else int(constant[1], 16)
        return Operand(bare, "constant", negative, inverted, offset)
    try:
        return Operand(text, "number", number=int(text, 16) & 0xFFFFFFFFFFFFFFFF)
    except ValueError:
        return Operand(bare, "other")


def _reads(base: str, opcode: str, sources: Sequence[str], address_text: str) -> tuple[str, ...]:
    """Registers that the instruction waits for; of wide operands the second half too."""
    found: list[str] = []
    for part in (*sources, address_text):
        for name in _REGISTER.findall(part):
            if name in ZERO:
                continue
            wide = base.startswith("D") or base == "HMMA" or ".64" in opcode or f"{name}.64" in part
            found += registers_from(name, 2 if wide else 1)
    return tuple(dict.fromkeys(found))
