"""Instructions taken apart: what is computed, where from and where to."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.machine_code.sass import Instruction, class_of, target_of

ZEROS = frozenset({"RZ", "URZ", "SRZ"})
TRUE = frozenset({"PT", "UPT"})
WORD_BYTES = 4
COMPILER_BANK = 1 << 20
"""Added to the places of constant bank 2, in which the compiler keeps constants of its own."""

_REGISTER = re.compile(r"U?R(?:\d+|Z)")
_PREDICATE = re.compile(r"!?U?P(?:\d+|T)")
_CONSTANT = re.compile(r"c\[0x([02])\]\[(0x[0-9a-f]+|U?RZ)\]")
_ADDRESS = re.compile(r"\[([^\]]*)\]$")
_TERM = re.compile(r"(U?R(?:\d+|Z))((?:\.\w+)*)|(-?0x[0-9a-f]+)")
_STORES = ("STG", "STS", "STL", "ST", "RED", "REDG", "BAR", "EXIT", "BRA", "RET", "BSYNC", "BSSY", "BREAK", "LDGSTS")
MATRIX = ("LDSM", "STSM")
"""Move 1, 2 or 4 matrices of 8 x 8 halves, of which each lane has a word; its address is that of a row."""
_BYTES_OF_MATRICES = {"2": 8, "4": 16}
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


class Operand(NamedTuple):
    """One source."""

    text: str
    """The register, the predicate or the constant's place, without its signs."""
    kind: str
    """``register``, ``predicate``, ``constant``, ``number`` or ``other``."""
    negative: bool = False
    inverted: bool = False
    """``~R5`` of a register, ``!P0`` of a predicate."""
    number: int = 0
    words: int = 1
    """Registers, of 32 bits each, that it takes."""


class Step(NamedTuple):
    """One instruction, taken apart."""

    address: int
    operation: str
    """First word of the opcode, without the U of the uniform form."""
    modifiers: frozenset[str]
    klass: str
    """``global_load``: one of ``sass.CLASSES``."""
    guard: Operand | None
    """Predicate under which it runs."""
    results: tuple[str, ...]
    """Registers written; the second of a pair follows the first."""
    flags: tuple[str, ...]
    """Predicates written."""
    writes: tuple[str, ...]
    """Results, then flags."""
    numbers: tuple[Operand, ...]
    """Sources that are no predicates."""
    predicates: tuple[Operand, ...]
    """Sources that are predicates."""
    terms: tuple[tuple[str, int], ...]
    """Of a memory instruction's address: registers with their factors, and ``("", number)``."""
    bytes: int
    """Per lane, of a memory instruction."""
    reads: tuple[str, ...]
    """Every register that has to be ready, and the guard."""
    target: int | None
    """Target of a jump or call."""


def decode(line: Instruction) -> Step:
    """Take one instruction apart."""
    made = _taken_apart(line.predicate, line.opcode, line.operands)
    return made._replace(address=line.address, target=target_of(line))


@functools.lru_cache(1 << 15)
def _taken_apart(predicate: str, opcode: str, operands: str) -> Step:
    """The instruction at no place: versions of a kernel have most of theirs in common."""
    base, *words = opcode.split(".")
    modifiers = frozenset(words)
    parts = [part.strip().replace(".reuse", "") for part in operands.split(",")] if operands else []
    address = _address(parts)
    results, flags, sources = _roles(base, modifiers, parts)
    given = [_sized(operand(part), base, modifiers, place, results) for place, part in enumerate(sources)]
    guard = operand(predicate) if predicate else None
    reads = _reads(base, opcode, sources, address)
    return Step(
        0, base.removeprefix("U"), modifiers, class_of(opcode, operands), guard, results, flags,
        results + flags, tuple(one for one in given if one.kind != "predicate"),
        tuple(one for one in given if one.kind == "predicate"),
        _terms(address), _bytes(base, modifiers), reads if guard is None else (*reads, guard.text), None,
    )  # fmt: skip


def _bytes(base: str, modifiers: frozenset[str]) -> int:
    """Per lane, of a memory instruction."""
    sizes = _BYTES_OF_MATRICES if base in MATRIX else _BYTES
    return next((sizes[word] for word in modifiers if word in sizes), WORD_BYTES)


def _address(parts: Sequence[str]) -> str:
    """Content of the last bracket that holds an address: for LDGSTS that is where it loads from."""
    found = [match[1] for part in parts if not part.startswith("c[") and (match := _ADDRESS.search(part))]
    return found[-1] if found else ""


def _terms(address: str) -> tuple[tuple[str, int], ...]:
    """``R2.X4+0x10``: ``("R2", 4), ("", 16)``."""
    found = []
    for name, suffix, number in _TERM.findall(address):
        scale = re.search(r"\.X(\d+)", suffix)
        found.append(("", int(number, 16)) if number else (name, int(scale[1]) if scale else 1))
    return tuple(found)


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
    if base == "HMMA":
        return 2 if "F16" in modifiers else 4
    if base == "LDSM" or "128" in modifiers:
        return _bytes(base, modifiers) // WORD_BYTES
    wide = modifiers & {"64", "WIDE"} or base.startswith("D") or base == "CS2R"
    return 2 if wide and "32" not in modifiers else 1


def registers_from(first: str, count: int) -> list[str]:
    """``R4``, ``R5``: so many registers in a row; the zero register is one."""
    if first in ZEROS or count == 1:
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
        offset = 0 if constant[2].endswith("RZ") else int(constant[2], 16)
        offset += COMPILER_BANK if constant[1] == "2" else 0
        return Operand(bare, "constant", negative, inverted, offset)
    try:
        return Operand(text, "number", number=int(text, 16))
    except ValueError:
        return Operand(bare, "other")


def _sized(one: Operand, base: str, modifiers: frozenset[str], place: int, results: Sequence[str]) -> Operand:
    """The source with as many words as the instruction takes of it."""
    if base in ("LDC", "ULDC", "LDCU"):
        return one._replace(words=len(results))
    if "64" in modifiers or ("SETP" in base and modifiers & {"S64", "U64"}):
        return one._replace(words=2)
    wide = base in ("IMAD", "UIMAD") and place == 2 and modifiers & {"WIDE", "HI"}
    return one._replace(words=2) if wide else one


def _reads(base: str, opcode: str, sources: Iterable[str], address: str) -> tuple[str, ...]:
    """Registers that the instruction waits for; of wide operands the second half too."""
    found: list[str] = []
    for part in (*sources, address):
        for name in _REGISTER.findall(part):
            if name not in ZEROS:
                wide = base.startswith("D") or base == "HMMA" or ".64" in opcode or f"{name}.64" in part
                found += registers_from(name, 2 if wide else 1)
    return tuple(dict.fromkeys(found))
