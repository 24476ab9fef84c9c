"""Inputs of a warp at its start: its indices, the launch, the kernel's arguments.

The arguments and the launch are examples: a block in the middle of a large grid, large and even sizes, pointers far
apart.  Where the launch is known (``KnownLaunch``), its sizes and integers are what they are, and only the pointers
stay examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.warp_model.arithmetic import WARP, WORD, ZERO, Value, narrow
from pytest_gpuperf.compile.warp_model.decode import COMPILER_BANK, WORD_BYTES
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


def special_registers(launch: KnownLaunch | None, warp: int = 0) -> dict[str, Value]:
    """Indices of a warp of a block, by the special register (``SR_TID.X``) that holds them."""
    width, height, _ = launch.block if launch is not None else THREADS
    block = [Value(n, example=True) for n in BLOCK]
    if launch is not None:
        block = [Value(count // ONE_OF_BLOCKS) for count in launch.grid]
    numbers = range(warp * WARP, (warp + 1) * WARP)
    threads = zip(*((n % width, n // width % height, n // (width * height)) for n in numbers), strict=True)
    found = {"SR_LANEID": Value(tuple(range(WARP))), "SR_CgaCtaId": ZERO, "SRZ": ZERO}
    for letter, thread, of_grid in zip("XYZ", threads, block, strict=True):
        found |= {f"SR_TID.{letter}": Value(narrow(thread)), f"SR_CTAID.{letter}": of_grid}
    return found


def constant_words(
    arch: str, parameters: Sequence[Parameter], base: int, constants: bytes, launch: KnownLaunch | None
) -> dict[int, Value]:
    """Words of 32 bits by their place in constant bank 0, whose parameters begin at ``base``, and in bank 2."""
    is_new = int("".join(filter(str.isdigit, arch))) >= _FIRST_WITH_NEW_BANK
    threads, blocks, stack = (0x360, 0x370, 0x37C) if is_new else (0x0, 0xC, 0x28)
    words = {stack: Value(STACK, example=True)}
    sizes, counts = (launch.block, launch.grid) if launch is not None else (THREADS, BLOCKS)
    for axis in range(3):
        words[threads + WORD_BYTES * axis] = Value(sizes[axis], example=launch is None)
        words[blocks + WORD_BYTES * axis] = Value(counts[axis], example=launch is None)
    for place, parameter in enumerate(parameters):
        number = launch.integers[place] if launch is not None else None
        start = base + parameter.offset & -WORD_BYTES
        words |= {start + offset: word for offset, word in _argument(parameter, place + 1, number)}
    for place in range(0, len(constants) - 3, WORD_BYTES):
        words[COMPILER_BANK + place] = Value(int.from_bytes(constants[place : place + WORD_BYTES], "little"))
    return words


def is_size(word: Value) -> bool:
    """Whether a word is an example of a size, as ``_argument`` makes them."""
    return isinstance(word.bits, int) and word.bits % SIZE_STEP == 0


def _argument(parameter: Parameter, index: int, number: int | None) -> Iterator[tuple[int, Value]]:
    """Words of an argument: the ``number`` that was passed, else an example, of 8 bytes a pointer, of others sizes."""
    for offset in range(0, parameter.size, WORD_BYTES):
        if number is not None and parameter.size in (4, 8):
            yield offset, Value(number >> 8 * offset & WORD)
        elif parameter.size == 8:
            yield offset, Value(index if offset else index * POINTER_STEP, example=True)
        else:
            yield offset, Value((index + offset) * SIZE_STEP, example=True)
