"""Inputs of a warp at its start: its indices, the launch, the kernel's arguments.

The arguments and the launch are examples: a block in the middle of a large grid, large and even sizes, pointers far
apart.  An argument that is asked for nothing but whether it is zero is a flag, and off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_gpuperf.compile.warp_model.values import ARGUMENT_SHIFT, EXAMPLE, THREAD, UNKNOWN, WARP, Value
from pytest_gpuperf.model.evidence import Parameter

THREADS = (256, 8, 4)
"""Threads of a block in x, y and z."""
BLOCKS = (1024, 512, 64)
BLOCK = (3, 2, 1)
"""Index of the warp's block: none of them 0, because the border is the exception."""
POINTER_STEP = 0x0A00_0D80
"""Bytes from one array to the next: an odd number of lines, so that no offset made of block, grid and size, which are
powers of two and small multiples of them, leads from one array into another."""
SIZE_STEP = 1 << 12
STACK = 0x00FFF000
"""Start of the thread's stack; it is alike in all threads, for local memory is laid out by the hardware."""

_SPECIAL: dict[str, Value] = {
    "SR_TID.Y": Value((*(0,) * WARP, 1, 0), THREAD),
    "SR_TID.Z": Value((*(0,) * WARP, 0, 1), THREAD),
    "SR_LANEID": Value((*range(WARP), 0, 0)),
    "SR_CTAID.X": Value(BLOCK[0], EXAMPLE),
    "SR_CTAID.Y": Value(BLOCK[1], EXAMPLE),
    "SR_CTAID.Z": Value(BLOCK[2], EXAMPLE),
    "SR_CgaCtaId": Value(0),
    "SRZ": Value(0),
}
_FIRST_WITH_NEW_BANK = 100
"""From sm_100 on, what the driver passes lies elsewhere in constant bank 0."""


class Surroundings:
    """Special registers and constant bank 0 of one kernel on one architecture."""

    def __init__(
        self,
        arch: str,
        parameters: Sequence[Parameter],
        parameter_base: int,
        warp: int = 0,
        flags: Iterable[int] = (),
    ) -> None:
        first = warp * WARP
        self._index = Value((*range(first, first + WARP), first, first), THREAD)
        number = int("".join(filter(str.isdigit, arch)))
        threads, blocks, stack = (0x360, 0x370, 0x37C) if number >= _FIRST_WITH_NEW_BANK else (0x0, 0xC, 0x28)
        self._words: dict[int, int] = {stack: STACK}
        self._parameter_base = parameter_base if parameters else 1 << 32
        for axis in range(3):
            self._words[threads + 4 * axis] = THREADS[axis]
            self._words[blocks + 4 * axis] = BLOCKS[axis]
        for index, parameter in enumerate(parameters):
            self._place(parameter_base + parameter.offset, parameter.size, index + 1)
        self._words.update(dict.fromkeys(flags, 0))

    def _place(self, offset: int, size: int, index: int) -> None:
        """An argument: pointers and 64-bit sizes of 8 bytes, sizes of 4."""
        if size == 8:
            self._words[offset], self._words[offset + 4] = index * POINTER_STEP, index
            return
        for start in range(0, size, 4):
            self._words[(offset & ~3) + start] = (index + start) * SIZE_STEP

    def special(self, name: str) -> Value:
        """``SR_TID.X``: unknown for what is not an index."""
        return self._index if name == "SR_TID.X" else _SPECIAL.get(name, UNKNOWN)

    def constant(self, offset: int, words: int) -> Value:
        """Content of 32-bit words of constant bank 0, as one number; unknown beyond launch and arguments."""
        first = offset & ~3
        found = [self._words.get(first + 4 * place) for place in range(words)]
        alone = words == 1 and offset >= self._parameter_base
        marks = EXAMPLE | (first << ARGUMENT_SHIFT if alone else 0)
        if any(word is None for word in found):
            return Value(None, marks)
        return Value(sum(word << 32 * place for place, word in enumerate(found) if word is not None), marks)
