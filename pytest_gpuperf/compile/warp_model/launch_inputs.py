"""Inputs of a warp at its start: its indices, the launch, the kernel's arguments.

The arguments and the launch are examples: a block in the middle of a large grid, large and even sizes, pointers far
apart.  An argument that is asked for nothing but whether it is zero is a flag, and off.  Where the launch is known
(``KnownLaunch``), its sizes and integers are what they are, and only the pointers stay examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.warp_model.values import ARGUMENT_SHIFT, EXAMPLE, THREAD, UNKNOWN, WARP, WORD, Value, narrow
from pytest_gpuperf.model.evidence import Parameter

THREADS = (256, 8, 4)
"""Threads of a block in x, y and z."""
BLOCKS = (1024, 512, 64)
BLOCK = (3, 2, 1)
"""Index of the warp's block: none of them 0, because the border is the exception."""
ONE_OF_BLOCKS = 16
"""Of a known launch the block this far into the grid is walked: another version may do the work of up to as many
blocks in one, and its launch be the only one at hand."""
POINTER_STEP = 0x0A00_0D80
"""Bytes from one array to the next: an odd number of lines, so that no offset made of block, grid and size, which are
powers of two and small multiples of them, leads from one array into another."""
SIZE_STEP = 1 << 12
LINE = 128
"""Bytes of a line: the examples of pointers are multiples of it."""
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


class KnownLaunch(NamedTuple):
    """A launch whose sizes and integers are at hand: its loops and guards need no guess."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    integers: tuple[int | None, ...]
    """One per parameter; None for what is no integer."""
    alignments: tuple[int, ...]
    """One per parameter: bytes that a pointer is a multiple of."""
    sizes: tuple[int, ...]
    """One per parameter, bytes."""

    def fits(self, parameters: Sequence[Parameter]) -> bool:
        """Whether these may be arguments of a kernel with such parameters: as many, of the same sizes."""
        return self.sizes == tuple(parameter.size for parameter in parameters)

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.block[0] * self.block[1] * self.block[2] // WARP)

    @property
    def along_x(self) -> bool:
        """Whether the lanes of a warp differ in x alone."""
        return self.block[0] % WARP == 0

    def thread(self, warp: int) -> tuple[Value, ...]:
        """Index of each lane's thread in x, y and z, then of the first lane's neighbours in y and in z."""
        width, height, _ = self.block
        numbers = range(warp * WARP, (warp + 1) * WARP)
        lanes = [(n % width, n // width % height, n // (width * height)) for n in numbers]
        x, y, z = lanes[0]
        lanes += [(x, y + 1, z), (x, y, z + 1)]
        return tuple(Value(narrow(axis), THREAD) for axis in zip(*lanes, strict=True))


class Surroundings:
    """Special registers and constant bank 0 of one kernel on one architecture."""

    def __init__(
        self,
        arch: str,
        parameters: Sequence[Parameter],
        parameter_base: int,
        warp: int = 0,
        flags: Iterable[int] = (),
        launch: KnownLaunch | None = None,
    ) -> None:
        first = warp * WARP
        self._special = {**_SPECIAL, "SR_TID.X": Value((*range(first, first + WARP), first, first), THREAD)}
        sizes, counts = THREADS, BLOCKS
        if launch is not None:
            sizes, counts = launch.block, launch.grid
            self._special |= dict(zip(("SR_TID.X", "SR_TID.Y", "SR_TID.Z"), launch.thread(warp), strict=True))
            self._special |= {
                f"SR_CTAID.{axis}": Value(count // ONE_OF_BLOCKS) for axis, count in zip("XYZ", counts, strict=True)
            }
        number = int("".join(filter(str.isdigit, arch)))
        threads, blocks, stack = (0x360, 0x370, 0x37C) if number >= _FIRST_WITH_NEW_BANK else (0x0, 0xC, 0x28)
        self._words: dict[int, int] = {stack: STACK}
        self._parameter_base = parameter_base if parameters else 1 << 32
        for axis in range(3):
            self._words[threads + 4 * axis] = sizes[axis]
            self._words[blocks + 4 * axis] = counts[axis]
        self._known = {bank + 4 * axis for bank in (threads, blocks) for axis in range(3)} if launch else set[int]()
        for index, parameter in enumerate(parameters):
            self._place(parameter_base + parameter.offset, parameter.size, index + 1)
        self._words.update(dict.fromkeys(flags, 0))
        if launch is not None:
            for place, parameter in enumerate(parameters):
                self._fill(parameter_base + parameter.offset, parameter.size, launch, place)

    def _fill(self, offset: int, size: int, launch: KnownLaunch, place: int) -> None:
        """An argument as it was passed: an integer, or a pointer of no more than its alignment."""
        number = launch.integers[place]
        if number is None:
            if size == 8 and launch.alignments[place] < LINE:
                self._words[offset] += launch.alignments[place]
            return
        for word in range(0, size, 4) if offset % 4 == 0 and size in (4, 8) else ():
            self._words[offset + word] = number >> 8 * word & WORD
            self._known.add(offset + word)

    def _place(self, offset: int, size: int, index: int) -> None:
        """An argument: pointers and 64-bit sizes of 8 bytes, sizes of 4."""
        if size == 8:
            self._words[offset], self._words[offset + 4] = index * POINTER_STEP, index
            return
        for start in range(0, size, 4):
            self._words[(offset & ~3) + start] = (index + start) * SIZE_STEP

    def special(self, name: str) -> Value:
        """``SR_TID.X``: unknown for what is not an index."""
        return self._special.get(name, UNKNOWN)

    def constant(self, offset: int, words: int) -> Value:
        """Content of 32-bit words of constant bank 0, as one number; unknown beyond launch and arguments."""
        first = offset & ~3
        found = [self._words.get(first + 4 * place) for place in range(words)]
        if found and all(first + 4 * place in self._known for place in range(words)):
            return Value(sum(self._words[first + 4 * place] << 32 * place for place in range(words)))
        alone = words == 1 and offset >= self._parameter_base
        marks = EXAMPLE | (first << ARGUMENT_SHIFT if alone else 0)
        if any(word is None for word in found):
            return Value(None, marks)
        return Value(sum(word << 32 * place for place, word in enumerate(found) if word is not None), marks)
