"""A baseline's machine code and the candidate's, or two workloads of a test, in one process.

Both codes are loaded into modules of their own and run on the same stream and the same buffers, each in its own grid,
block and shared memory; before each block the buffers move, before every eighth the modules are loaded anew.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.device.arguments import Source, array_facts
from pytest_gpuperf.device.device_errors import GpuFault
from pytest_gpuperf.device.interface import Configuration, Device, SlotTimer
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.time_record import CacheMode
from pytest_gpuperf.timing.blocks import MOST_PAD, PAD_STEP, RELOAD_EVERY, Sides, pad_of
from pytest_gpuperf.timing.process_reference import MemoryPad
from pytest_gpuperf.timing.rounds import Workload

OF_BASELINE = " of the baseline"
"""Suffix of a kernel's name in errors of the baseline's machine code."""


class BaselineLaunch(NamedTuple):
    """How a baseline's machine code is launched."""

    binary: KernelBinary
    configuration: Configuration | None = None
    """Grid, block and shared memory, where they are not the candidate's."""
    arguments: tuple[Source, ...] | None = None
    """Where they are not the candidate's."""


class CubinReference:
    """A ``Reference``: see the module."""

    def __init__(
        self, device: Device, timer: SlotTimer, launch: Launch, baseline: BaselineLaunch, *,
        reset: Callable[[], Any] | None = None, cache: CacheMode = "cold",
    ) -> None:  # fmt: skip
        """``launch`` is the candidate; with ``reset``, which restores the caller's buffers, these stay where they are.

        The caller holds the GPU's lock.  Raises ``LoadError`` for a cubin that the device refuses, and ``GpuFault`` if
        the baseline breaks the use of the GPU.
        """
        self.timer = timer
        self._device, self._launch, self._baseline, self._reset = device, launch, baseline, reset
        self.sides: Sides = Workload(self._run_baseline, reset, cache), Workload(self._run_candidate, reset, cache)
        self._buffers, unmoved = MovingBuffers.of(device, launch, reset)
        self.remarks = (unmoved,) if unmoved else ()
        self._load(random.Random(0))
        self._form_arguments()
        self._try_baseline()

    def place(self, call: int, coin: random.Random) -> None:
        if call and call % RELOAD_EVERY == 0:
            self._load(coin)
        if self._buffers is not None:
            self._launch = self._buffers.moved(coin)
            self._form_arguments()

    def finish(self) -> None:
        if self._buffers is None:
            if self._reset is not None:
                self._reset()
            self._run_candidate()
            self._device.synchronize()

    def _load(self, coin: random.Random) -> None:
        """Load both again in random order: no side keeps a place in memory."""
        sides = [("baseline", self._baseline.binary), ("candidate", self._launch.binary)]
        coin.shuffle(sides)
        loaded = {side: self._device.load(binary) for side, binary in sides}
        for side, binary in sides:
            self._launch.kernel.fill(loaded[side], binary)
        self._loaded = loaded

    def _form_arguments(self) -> None:
        """The baseline's own arguments are on the arrays where they lie now."""
        own = self._baseline.arguments
        self._values = None if own is None else self._launch.values_for(self._baseline.binary, own)

    def _try_baseline(self) -> None:
        """Run it once alone: the candidate has run already, so a fault here is the baseline's."""
        if self._reset is not None:
            self._reset()
        self._run_baseline()
        fault = self._device.fault()
        if fault:
            raise GpuFault(f"the baseline's machine code faults on the candidate's arrays: {fault}")

    def _run_baseline(self) -> None:
        self._launch.run_with(self._loaded["baseline"], self._baseline.configuration, self._values, whose=OF_BASELINE)

    def _run_candidate(self) -> None:
        self._launch.run_with(self._loaded["candidate"])


# --- buffers that move ---------------------------------------------------------------------------

# How an array's address falls onto memory channels and cache slices can cost or save a percent.  Both sides of a block
# run on the same buffers; moving them makes the verdict one about the kernel and not about one placement.


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
    def of(cls, device: Device, launch: Any, reset: object = None) -> tuple[MovingBuffers | None, str]:
        """The room, and a remark if there is none for lack of memory.

        There is none either for a callable, with a ``reset``, without arrays, or where one is another library's or part
        of a larger one.
        """
        if reset is not None or not isinstance(launch, Launch):
            return None, ""
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
        return Launch(self.launch.kernel, self.launch.configuration, [
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


# --- two workloads of one test -------------------------------------------------------------------


class PairedWorkloads:
    """A ``Reference``.  A launch runs on copies of its arrays, which move; what a callable allocates moves, too."""

    def __init__(self, device: Device, timer: SlotTimer, sides: Sides) -> None:
        """Arrays that a ``reset`` restores stay where they are."""
        self.timer, self._pad, self._given, self.sides = timer, MemoryPad(device), sides, sides
        rooms = [MovingBuffers.of(device, side.run, side.reset) for side in sides]
        self._rooms = [room for room, _ in rooms]
        self.remarks = tuple(dict.fromkeys(remark for _, remark in rooms if remark))

    def place(self, call: int, coin: random.Random) -> None:  # noqa: ARG002 of the protocol
        self._pad.move(pad_of(coin))
        first, second = (
            side if room is None else Workload(room.moved(coin), side.reset, side.cache)
            for side, room in zip(self._given, self._rooms, strict=True)
        )
        self.sides = first, second

    def finish(self) -> None:
        """Nothing to do: a launch left the test's arrays alone, and what a callable wrote is checked again."""
