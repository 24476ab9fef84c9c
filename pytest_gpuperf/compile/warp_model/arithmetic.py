"""Values that a warp computes: a number for all lanes, one per lane, or unknown; and the arithmetic of SASS with them.

Registers hold 32 bits without a sign, predicates 0 or 1.  Rules are of integers and predicates, lane by lane: only
what addresses, indices and branch conditions are made of; every other instruction has an unknown result.  Where an
instruction writes two registers, the number has 64 bits; where it writes a carry, that is bit 32 of the sum.
Meaning of the instructions: NVIDIA's "CUDA Binary Utilities", and PTX's for what PTX turns into one of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from pytest_gpuperf.compile.warp_model.decode import Step

WARP = 32
WORD = 0xFFFFFFFF

Bits = int | tuple[int, ...] | None
"""A number, one for each lane, or None if it is unknown."""


class Value(NamedTuple):
    """Content of a register or predicate."""

    bits: Bits
    example: bool = False
    """It depends on arguments or on a launch that nobody knows."""


UNKNOWN = Value(None)
ZERO, ONE = Value(0), Value(1)


def signed(bits: int) -> int:
    """32 bits read as a signed number."""
    return bits - ((bits & 0x80000000) << 1)


def signed64(bits: int) -> int:
    """64 bits read as a signed number."""
    return bits - ((bits & 1 << 63) << 1)


def lanes_of(bits: int | tuple[int, ...]) -> tuple[int, ...]:
    """One number per lane, whatever it was."""
    return (bits,) * WARP if isinstance(bits, int) else bits


def narrow(lanes: tuple[int, ...]) -> int | tuple[int, ...]:
    """A single number where all lanes agree: what follows is then cheap."""
    return lanes[0] if lanes.count(lanes[0]) == WARP else lanes


def combine(function: Callable[..., int], *values: Value) -> Value:
    """Apply a function of numbers lane by lane; unknown if one of them is."""
    example, alike, known = False, True, []
    for bits, own in values:
        if bits is None:
            return UNKNOWN
        example = example or own
        known.append(bits)
        alike = alike and isinstance(bits, int)
    if alike:
        return Value(function(*known), example)
    return Value(narrow(tuple(map(function, *map(lanes_of, known)))), example)


# --- rules ---------------------------------------------------------------------------------------

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
}  # fmt: skip
JOIN: dict[str, Callable[[int, int], int]] = {"AND": lambda a, b: a & b, "OR": lambda a, b: a | b,
                                              "XOR": lambda a, b: a ^ b}  # fmt: skip
NORMAL = 2.0**-126
"""The smallest float whose inverse is one, too."""

Values = tuple[Value, ...]
Rule = Callable[[Step, Values, Values], Values]
"""From the sources, numbers and predicates, to the results: the register (or pair, as one number) first, then the
predicates.  A rule may give fewer results than there are."""


def rule_of(step: Step) -> Rule | None:
    """None for an instruction whose result or form is unknown."""
    rule, needed = RULES.get(step.operation, (None, 0))
    return rule if len(step.numbers) >= needed else None


def _reader(step: Step) -> Callable[[int], int]:
    """How a number of 32 bits is read."""
    return int if "U32" in step.modifiers else signed


def _move(_step: Step, numbers: Values, _predicates: Values) -> Values:
    return numbers[:1]


def _add(step: Step, numbers: Values, predicates: Values) -> Values:
    """IADD3 and its kin: up to three numbers, and with ``.X`` the carry of the lower word."""
    if "64" in step.modifiers:
        return (combine(lambda *given: sum(given) & (1 << 64) - 1, *numbers),)
    carries = predicates[:2] if "X" in step.modifiers else ()
    return _with_carries(step, combine(lambda *given: sum(given), *numbers, *carries), 32)


def _with_carries(step: Step, total: Value, width: int) -> Values:
    """The sum in ``width`` bits, and its carry: of three numbers it may be 2, and then either predicate holds."""
    carries = (combine(lambda bits, least=least: int(bits >> width >= least), total)
               for least in range(1, len(step.flags) + 1))  # fmt: skip
    return (combine(lambda bits: bits & (1 << width) - 1, total), *carries)


def _multiply_add(step: Step, numbers: Values, predicates: Values) -> Values:
    """IMAD in all its forms: a product plus a number."""
    read = _reader(step)
    given = (*numbers[:3], *(predicates[:1] if "X" in step.modifiers else ()))
    if "WIDE" in step.modifiers:
        return _with_carries(step, combine(lambda a, b, c, carry=0: read(a) * read(b) + c + carry, *given), 64)
    if "HI" in step.modifiers:
        return (combine(lambda a, b, c: read(a) * read(b) + c >> 32 & WORD, *numbers[:3]),)
    return (combine(lambda a, b, c, carry=0: a * b + c + carry & WORD, *given),)


def _scaled_add(step: Step, numbers: Values, predicates: Values) -> Values:
    """LEA: a number shifted left, plus another; ``.HI`` takes what the shift pushes out of the word."""
    if "HI" not in step.modifiers:
        total = combine(lambda a, b, s: (a << (s & 31) & WORD) + b, *numbers[:2], numbers[-1])
        return _with_carries(step, total, 32)
    low, base, shift = numbers[0], numbers[1], numbers[-1]
    high = combine(lambda bits: WORD if bits >> 31 else 0, low) if "SX32" in step.modifiers else numbers[2]
    given = (low, high, base, shift, *(predicates[:1] if "X" in step.modifiers else ()))
    total = combine(lambda a, h, b, s, carry=0: ((h << 32 | a) << (s & 31) >> 32 & WORD) + b + carry, *given)
    return _with_carries(step, total, 32)


def _shift(step: Step, numbers: Values, _predicates: Values) -> Values:
    """SHF: low word, distance, high word."""
    upper, wraps = "HI" in step.modifiers, "W" in step.modifiers
    is_signed, wide = bool(step.modifiers & {"S32", "S64"}), bool(step.modifiers & {"U64", "S64"})

    def shift(a: int, s: int, h: int) -> int:
        s = s & 31 if wraps else min(s, 64 if wide else 32)
        if "L" in step.modifiers:
            return (h << 32 | a) << s >> (32 if upper else 0) & WORD
        h = signed(h) if is_signed else h
        if upper and not wraps and not wide:
            return h >> s & WORD
        return (h << 32 | a) >> s >> (32 if upper else 0) & WORD

    return (combine(shift, *numbers[:3]),)


def _logic(step: Step, numbers: Values, _predicates: Values) -> Values:
    """LOP3: any function of three bits, given as its truth table; the predicate says whether anything is left."""
    table = numbers[3].bits
    if not isinstance(table, int):
        return ()
    result = combine(_lut(table), *numbers[:3])
    found = (result,) if step.results else ()
    return (*found, *(combine(lambda bits: int(bits != 0), result) for _ in step.flags))


def _lut(table: int) -> Callable[[int, int, int], int]:
    def apply(a: int, b: int, c: int) -> int:
        found = 0
        for index in range(8):
            if table >> index & 1:
                found |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
        return found & WORD

    return apply


def _compare(step: Step, numbers: Values, predicates: Values) -> Values:
    """ISETP: a comparison, joined with a predicate; ``.EX`` compares upper words after the lower ones."""
    relation = next((COMPARE[name] for name in COMPARE if name in step.modifiers), None)
    join = next((JOIN[name] for name in JOIN if name in step.modifiers), None)
    if relation is None or join is None or len(predicates) < (2 if "EX" in step.modifiers else 1):
        return ()
    read = int if "U64" in step.modifiers else signed64 if "S64" in step.modifiers else _reader(step)
    if "EX" in step.modifiers:
        found = combine(lambda a, b, lower: lower if a == b else int(relation(read(a), read(b))),
                        *numbers[:2], predicates[1])  # fmt: skip
    else:
        found = combine(lambda a, b: int(relation(read(a), read(b))), *numbers[:2])
    return (combine(join, found, predicates[0]), UNKNOWN)[: len(step.flags)]


def _predicates(step: Step, numbers: Values, predicates: Values) -> Values:
    """PLOP3: LOP3 for predicates."""
    table = numbers[0].bits
    if len(predicates) < 3 or not isinstance(table, int):
        return ()
    lut = _lut(table)
    return (combine(lambda a, b, c: lut(-a, -b, -c) & 1, *predicates[:3]), UNKNOWN)[: len(step.flags)]


def _select(_step: Step, numbers: Values, predicates: Values) -> Values:
    if not predicates:
        return ()
    return (combine(lambda a, b, chosen: a if chosen else b, *numbers[:2], predicates[0]),)


def _extreme(step: Step, numbers: Values, predicates: Values) -> Values:
    """IMNMX: the smaller of two numbers if the predicate holds, else the larger."""
    if not predicates or "S64" in step.modifiers:
        return ()
    read = _reader(step)
    return (combine(lambda a, b, least: (min if least else max)((a, b), key=read), *numbers[:2], predicates[0]),)


def _absolute(_step: Step, numbers: Values, _predicates: Values) -> Values:
    return (combine(lambda bits: abs(signed(bits)) & WORD, numbers[0]),)


def _to_float(step: Step, numbers: Values, _predicates: Values) -> Values:
    """I2F, rounded up: how a division of integers begins."""
    if "RP" not in step.modifiers or "F64" in step.modifiers:
        return ()
    read = _reader(step)

    def convert(bits: int) -> int:
        number = float(read(bits))
        nearest = _float_bits(number)
        return nearest + (1 if 0 < _float_of(nearest) < number else 0)

    return (combine(convert, numbers[0]),)


def _reciprocal(step: Step, numbers: Values, _predicates: Values) -> Values:
    """MUFU.RCP of a number that is known, as only an integer division has it."""
    if "RCP" not in step.modifiers:
        return ()
    return (combine(lambda bits: _float_bits(1 / n) if abs(n := _float_of(bits)) >= NORMAL else 0, numbers[0]),)


def _to_integer(step: Step, numbers: Values, _predicates: Values) -> Values:
    """F2I.U32.TRUNC."""
    if not {"U32", "TRUNC"} <= step.modifiers:
        return ()
    return (combine(lambda bits: int(n) if 0 <= (n := _float_of(bits)) < 1 << 32 else 0, numbers[0]),)


def _float_of(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits & WORD))[0])


def _float_bits(number: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


def _halves(step: Step, _numbers: Values, _predicates: Values) -> Values:
    """HFMA2 R, -RZ, RZ, high, low: a constant, moved by the half-precision unit."""
    try:
        high, low = (struct.unpack("<H", struct.pack("<e", float(source.text)))[0] for source in step.numbers[-2:])
    except (ValueError, OverflowError):
        return ()
    return (Value(high << 16 | low),) if step.klass == "move" else ()


def _granted(step: Step, _numbers: Values, _predicates: Values) -> Values:
    """SYNCS...TRYWAIT: a barrier's phase is over when it is asked for; how long others take is not known here."""
    return (ONE,) if "TRYWAIT" in step.modifiers else ()


RULES: dict[str, tuple[Rule, int]] = {
    "MOV": (_move, 1), "MOV32I": (_move, 1), "R2UR": (_move, 1), "S2R": (_move, 1), "S2UR": (_move, 1),
    "CS2R": (_move, 1), "CS2UR": (_move, 1), "LDC": (_move, 1), "LDCU": (_move, 1), "IADD3": (_add, 2),
    "IADD": (_add, 2), "VIADD": (_add, 2), "IMAD": (_multiply_add, 3), "LEA": (_scaled_add, 3), "SHF": (_shift, 3),
    "LOP3": (_logic, 4), "ISETP": (_compare, 2), "PLOP3": (_predicates, 1), "SEL": (_select, 2),
    "IMNMX": (_extreme, 2), "VIMNMX": (_extreme, 2), "IABS": (_absolute, 1),
    "HFMA2": (_halves, 4), "I2F": (_to_float, 1), "I2FP": (_to_float, 1), "MUFU": (_reciprocal, 1),
    "F2I": (_to_integer, 1), "SYNCS": (_granted, 0),
}  # fmt: skip
"""By the opcode's first word, without the U of the uniform form: the rule, and how many numbers it takes at least."""
