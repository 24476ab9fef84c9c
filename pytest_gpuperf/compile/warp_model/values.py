"""Values that a warp computes: a number for all lanes, one per lane, or unknown.

Registers hold 32 bits without a sign, predicates 0 or 1.  Marks tell whether a value depends on the kernel's arguments
or the size of the launch, so that its number is an example, or on the thread's index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

WARP = 32
LANES = WARP + 2
"""A warp that lies along x, then its first lane's neighbours in y and in z."""
WORD = 0xFFFFFFFF

Bits = int | tuple[int, ...] | None
"""A number, one for each of ``LANES``, or None if it is unknown."""

EXAMPLE, THREAD, REST, DATA = 1, 2, 4, 8
INHERITED = EXAMPLE | THREAD | DATA
"""Marks that a result takes over from what it is computed of."""
ARGUMENT_SHIFT = 8
"""The bits above are the place of an argument in the constant bank, in a value that is that argument and no more."""


class Value(NamedTuple):
    """Content of a register or predicate."""

    bits: Bits
    marks: int = 0

    @property
    def example(self) -> bool:
        """It depends on arguments or on the launch."""
        return bool(self.marks & EXAMPLE)

    @property
    def by_data(self) -> bool:
        """It depends on what memory holds."""
        return bool(self.marks & DATA)

    @property
    def by_thread(self) -> bool:
        """It depends on the thread's index."""
        return bool(self.marks & THREAD)

    @property
    def constant(self) -> bool:
        """It is the same number whatever the arguments, the launch, the data and the thread."""
        return self.bits is not None and not self.marks

    @property
    def rest(self) -> bool:
        """It is the remainder by a small power of two: the rounds that an unrolled loop leaves over."""
        return bool(self.marks & REST)

    @property
    def argument(self) -> int:
        """Place in the constant bank of the argument that this is, as it was passed; 0 if it is none."""
        return self.marks >> ARGUMENT_SHIFT


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
    marks, rest, alike, known = 0, REST, True, []
    for bits, own in values:
        marks |= own
        if not own & REST and (own or bits is None):
            rest = 0
        if bits is not None:
            known.append(bits)
            alike = alike and isinstance(bits, int)
    marks &= INHERITED | rest
    if len(known) < len(values):
        return Value(None, marks)
    if alike:
        return Value(function(*known), marks)
    return Value(narrow(tuple(map(function, *map(lanes_of, known)))), marks)
