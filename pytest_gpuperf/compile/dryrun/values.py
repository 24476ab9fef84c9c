"""Values that a warp computes: a number for all lanes, one per lane, or unknown.

Registers hold 32 bits without a sign, predicates 0 or 1.  A value that depends on the kernel's arguments or on the size
of the launch is marked, because its number is an example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

WARP = 32
LANES = WARP + 2
"""A warp that lies along x, then its first lane's neighbours in y and in z."""
WORD = 0xFFFFFFFF

Bits = int | tuple[int, ...] | None
"""A number, one for each of ``LANES``, or None for what nobody knows."""


class Value(NamedTuple):
    """What a register or predicate holds."""

    bits: Bits
    example: bool = False
    """It depends on arguments or on the launch."""


UNKNOWN = Value(None)


def signed(bits: int) -> int:
    """32 bits read as a signed number."""
    return bits - ((bits & 0x80000000) << 1)


def signed64(bits: int) -> int:
    """64 bits read as a signed number."""
    return bits - ((bits & 1 << 63) << 1)


def lanes_of(bits: int | tuple[int, ...]) -> tuple[int, ...]:
    """One number per lane, whatever it was."""
    return (bits,) * LANES if isinstance(bits, int) else bits


def narrow(lanes: tuple[int, ...]) -> int | tuple[int, ...]:
    """A single number where all lanes agree: what follows is then cheap."""
    return lanes[0] if lanes.count(lanes[0]) == LANES else lanes


def combine(function: Callable[..., int], values: tuple[Value, ...]) -> Value:
    """Apply a function of numbers lane by lane; unknown if one of them is."""
    example = any(value.example for value in values)
    bits = [value.bits for value in values]
    if any(one is None for one in bits):
        return Value(None, example)
    if all(isinstance(one, int) for one in bits):
        return Value(function(*bits), example)
    each = zip(*(lanes_of(one) for one in bits if one is not None), strict=True)
    return Value(narrow(tuple(function(*lane) for lane in each)), example)
