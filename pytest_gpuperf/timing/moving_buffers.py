"""Copies of a launch's arrays at addresses that change, so that no kernel is judged by where its data lie.

How an array's address falls onto memory channels and cache slices can cost or save a percent.  Both sides of a block
run on the same buffers; moving them makes the verdict one about the kernel and not about one placement.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np

from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.timing.opponent import MOST_PAD, PAD_STEP

MEMORY_SHARE = 1 / 8
"""Arrays that take more of the device's memory than this, pads included, stay where they are."""


@dataclasses.dataclass(frozen=True, eq=False)
class MovingBuffers:
    """Room for one copy of every array argument, with space to move in."""

    launch: Launch
    arrays: dict[int, Any]
    """The originals, by address."""
    rooms: dict[int, Any]
    """The bytes that hold their copies, by the same address."""

    @classmethod
    def of(cls, device: Device, launch: Launch) -> tuple[MovingBuffers | None, str]:
        """The room, and a remark if there is none for lack of memory.

        There is none either without arrays, or where one is another library's or part of a larger one.
        """
        found = [one for one in launch.arguments if array_facts(one) is not None]
        own = type(device.arrays.empty(1))
        if not found or not all(isinstance(array, own) and _is_whole(array) for array in found):
            return None, ""
        arrays = {_address(array): array for array in found}
        wanted = sum(array.nbytes + MOST_PAD for array in arrays.values())
        unmoved = f"its arrays stayed at their addresses: there is no room for {wanted / 1e9:.3g} GB of copies"
        if wanted > MEMORY_SHARE * device.facts.memory_bytes:
            return None, unmoved
        rooms: dict[int, Any] = {}
        try:
            for address, array in arrays.items():
                rooms[address] = device.arrays.empty(array.nbytes + MOST_PAD, "uint8")
        except MemoryError:  # CuPy's is one, too: the test has taken the rest
            rooms.clear()
            device.release_unused()
            return None, unmoved
        return cls(launch, arrays, rooms), ""

    def moved(self, coin: random.Random) -> Launch:
        """The launch on copies of its arrays as they were given, each behind a pad of its own up to ``MOST_PAD``.

        Addresses keep their alignment.
        """
        pads = {address: coin.randrange(MOST_PAD // PAD_STEP - 1) * PAD_STEP for address in self.arrays}
        copies = {address: self._copied(address, pad) for address, pad in pads.items()}
        return self.launch.with_arguments([
            argument if array_facts(argument) is None else _seen_as(argument, copies[_address(argument)])
            for argument in self.launch.arguments
        ])  # fmt: skip

    def _copied(self, address: int, pad_bytes: int) -> Any:
        """The bytes of a copy."""
        array, room = self.arrays[address], self.rooms[address]
        start = pad_bytes + (address - _address(room)) % PAD_STEP
        content = room[start : start + array.nbytes]
        _seen_as(array, content)[...] = array
        return content


def _seen_as(array: Any, content: Any) -> Any:
    """The bytes ``content`` in the type, shape and order of ``array``: one memory may be given as several of them."""
    return content.view(array.dtype).reshape(array.shape, order="C" if array.flags.c_contiguous else "F")


def _is_whole(array: Any) -> bool:
    base = array.base
    contiguous = array.flags.c_contiguous or array.flags.f_contiguous
    return bool(contiguous and array.nbytes and (base is None or base.nbytes == array.nbytes))


def _address(array: Any) -> int:
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)
