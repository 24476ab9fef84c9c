"""Addresses of a warp's memory instruction, and what they make the hardware do."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.warp_model.decode import Step
from pytest_gpuperf.compile.warp_model.values import WARP, WORD, Value, combine, lanes_of, signed
from pytest_gpuperf.model.warp_estimate import Strides

SECTOR = 32
LINE = 128
BANKS = 32
WORD_BYTES = 4
MEMORY = frozenset({"global_load", "global_store", "shared_load", "shared_store", "local_load", "local_store"})

_TERM = re.compile(r"(-?)(U?R(?:\d+|Z))((?:\.\w+)*)|(-?0x[0-9a-f]+)")
_BITS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


class Pattern(NamedTuple):
    """One memory instruction as a warp executes it once."""

    op: str
    bytes: int
    lanes: int
    sectors: float | None = None
    turns: float | None = None
    strides: Strides | None = None
    start: int = 0
    """Offset of the first lane from the beginning of its sector."""
    words: frozenset[int] = frozenset()
    """Distinct 4-byte words of global memory; empty if data decide."""


def bytes_of(step: Step) -> int:
    """Bytes per lane."""
    return next((_BITS[name] for name in step.opcode.split(".")[1:] if name in _BITS), WORD_BYTES)


def address_of(step: Step, register: Callable[[str], Value]) -> Value:
    """The low 32 bits of every lane's address: enough to tell them apart."""
    terms = []
    for _, name, suffix, number in _TERM.findall(step.address_text):
        if number:
            terms.append(Value(int(number, 16) & WORD))
        else:
            scale = int(found[1]) if (found := re.search(r"\.X(\d+)", suffix)) else 1
            terms.append(combine(lambda bits, by=scale: bits * by & WORD, (register(name),)))
    return combine(lambda *given: sum(given) & WORD, tuple(terms)) if terms else Value(0)


def pattern_of(step: Step, address: Value, active: Sequence[bool]) -> Pattern:
    """Access pattern of the instruction, by the lanes that take part."""
    size = bytes_of(step)
    count = sum(active)
    if address.bits is None or not count:
        return Pattern(step.klass, size, count)
    if step.klass.startswith("local"):  # interleaved by the hardware: the same offset in all lanes is one line
        even = isinstance(address.bits, int)
        return Pattern(step.klass, size, count, size * count / SECTOR if even else None, size / 4 if even else None)
    lanes = lanes_of(address.bits)
    taken = [place for place, on in zip(lanes[:WARP], active, strict=True) if on]
    strides = _strides(lanes)
    start = lanes[0] % SECTOR if strides is not None and any(strides) else 0
    if step.klass.startswith("shared"):
        return Pattern(step.klass, size, count, None, bank_turns(taken, size), strides, start)
    lines, words = len(_chunks(taken, size, LINE)), _chunks(taken, size, WORD_BYTES)
    return Pattern(step.klass, size, count, sectors(taken, size), lines, strides, start, words)


def sectors(places: Sequence[int], size: int) -> int:
    """Sectors of 32 bytes that these addresses touch."""
    return len(_chunks(places, size, SECTOR))


def _chunks(places: Sequence[int], size: int, chunk: int) -> frozenset[int]:
    """Aligned pieces of ``chunk`` bytes that these addresses touch."""
    return frozenset(part for place in places for part in range(place // chunk, (place + size - 1) // chunk + 1))


def bank_turns(places: Sequence[int], size: int) -> int:
    """Passes that a shared-memory access takes.

    32 banks of 4 bytes; lanes that want the same word get it together.  Of 8 bytes per lane half a warp is served at a
    time, of 16 a quarter (CUDA C++ Programming Guide, "Shared Memory").
    """
    together = max(1, BANKS * WORD_BYTES // size) if size > WORD_BYTES else len(places)
    total = 0
    words = range(max(1, size // WORD_BYTES))
    for first in range(0, len(places), max(together, 1)):
        wanted = {place // WORD_BYTES + word for place in places[first : first + together] for word in words}
        total += max(Counter(word % BANKS for word in wanted).values())
    return total


def _strides(lanes: Sequence[int]) -> Strides | None:
    """Bytes from thread to thread in x, y and z; None if they are not even along x."""
    steps = {signed((right - left) & WORD) for left, right in itertools.pairwise(lanes[:WARP])}
    if len(steps) != 1:
        return None
    return steps.pop(), signed((lanes[WARP] - lanes[0]) & WORD), signed((lanes[WARP + 1] - lanes[0]) & WORD)
