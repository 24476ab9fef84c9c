"""Values that a warp computes: a number for all lanes, one per lane, or unknown.

Registers hold 32 bits without a sign, predicates 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
