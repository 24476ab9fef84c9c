"""Inputs of a warp at its start: its indices, the launch, the kernel's arguments.

The arguments and the launch are examples: a block in the middle of a large grid, large and even sizes, pointers far
apart.  Where the launch is known (``KnownLaunch``), its sizes and integers are what they are, and only the pointers
stay examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.warp_model.decode import COMPILER_BANK, WORD_BYTES
from pytest_gpuperf.compile.warp_model.values import ARGUMENT, EXAMPLE, UNKNOWN, WARP, WORD, ZERO, Value, narrow
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
STACK = 0x00FFF000
"""Start of the thread's stack; it is alike in all threads, for local memory is laid out by the hardware."""
_FIRST_WITH_NEW_BANK = 100
"""From sm_100 on, what the driver passes lies elsewhere in constant bank 0."""


class KnownLaunch(NamedTuple):
    """A launch whose sizes and integers are at hand: its loops and guards need no guess."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    integers: tuple[int | None, ...]
    """One per parameter; None for what is no integer."""
    sizes: tuple[int, ...]
    """One per parameter, bytes."""

    def fits(self, parameters: Sequence[Parameter]) -> bool:
        """Whether these may be arguments of a kernel with such parameters: as many, of the same sizes."""
        return self.sizes == tuple(parameter.size for parameter in parameters)

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.block[0] * self.block[1] * self.block[2] // WARP)

    def threads(self, warp: int) -> tuple[Value, ...]:
        """Index of each lane's thread in x, y and z."""
        width, height, _ = self.block
        numbers = range(warp * WARP, (warp + 1) * WARP)
        lanes = [(n % width, n // width % height, n // (width * height)) for n in numbers]
        return tuple(Value(narrow(axis)) for axis in zip(*lanes, strict=True))


class Surroundings:
    """Special registers and constant bank 0 of one kernel on one architecture."""

    def __init__(
        self,
        arch: str,
        parameters: Sequence[Parameter],
        parameter_base: int,
        launch: KnownLaunch | None = None,
        warp: int = 0,
    ) -> None:
        number = int("".join(filter(str.isdigit, arch)))
        threads, blocks, stack = (0x360, 0x370, 0x37C) if number >= _FIRST_WITH_NEW_BANK else (0x0, 0xC, 0x28)
        sizes, counts = (launch.block, launch.grid) if launch is not None else (THREADS, BLOCKS)
        self._words: dict[int, int] = {stack: STACK}
        self._known: set[int] = set()
        """Places of words that are no examples."""
        self._arguments: set[int] = set()
        for axis in range(3):
            self._words |= {threads + 4 * axis: sizes[axis], blocks + 4 * axis: counts[axis]}
        for place, parameter in enumerate(parameters):
            self._place(parameter_base + parameter.offset, parameter.size, place + 1)
        if launch is not None:
            self._known |= {bank + 4 * axis for bank in (threads, blocks) for axis in range(3)}
            for place, parameter in enumerate(parameters):
                self._fill(parameter_base + parameter.offset, parameter.size, launch, place)
        index = launch.threads(warp) if launch is not None else (Value(tuple(range(WARP))), ZERO, ZERO)
        block = [Value(n, EXAMPLE) for n in BLOCK] if launch is None else [Value(n // ONE_OF_BLOCKS) for n in counts]
        self._special = {"SR_LANEID": Value(tuple(range(WARP))), "SR_CgaCtaId": ZERO, "SRZ": ZERO}
        for letter, thread, of_grid in zip("XYZ", index, block, strict=True):
            self._special |= {f"SR_TID.{letter}": thread, f"SR_CTAID.{letter}": of_grid}

    def _place(self, offset: int, size: int, index: int) -> None:
        """An example of an argument: pointers and 64-bit sizes of 8 bytes, sizes of 4."""
        if size == 8:
            self._words |= {offset: index * POINTER_STEP, offset + 4: index}
            return
        for start in range(0, size, 4):
            self._words[(offset & ~3) + start] = (index + start) * SIZE_STEP
            self._arguments.add((offset & ~3) + start)

    def _fill(self, offset: int, size: int, launch: KnownLaunch, place: int) -> None:
        """An integer as it was passed."""
        number = launch.integers[place]
        for word in range(0, size, 4) if number is not None and offset % 4 == 0 and size in (4, 8) else ():
            assert number is not None
            self._words[offset + word] = number >> 8 * word & WORD
            self._known.add(offset + word)

    def add_constants(self, content: bytes) -> None:
        """Constants that the compiler made, in bank 2."""
        for place in range(0, len(content) - 3, WORD_BYTES):
            self._words[COMPILER_BANK + place] = int.from_bytes(content[place : place + WORD_BYTES], "little")
            self._known.add(COMPILER_BANK + place)

    def special(self, name: str) -> Value:
        """``SR_TID.X``: unknown for what is not an index."""
        return self._special.get(name, UNKNOWN)

    def constant(self, offset: int, words: int) -> Value:
        """Content of 32-bit words of constant bank 0, as one number; unknown beyond launch and arguments."""
        first = offset & ~3
        places = [first + 4 * word for word in range(words)]
        if not all(place in self._words for place in places):
            return UNKNOWN
        number = sum(self._words[place] << 32 * word for word, place in enumerate(places))
        if self._known.issuperset(places):
            return Value(number)
        return Value(number, EXAMPLE | (ARGUMENT if words == 1 and first in self._arguments else 0))
