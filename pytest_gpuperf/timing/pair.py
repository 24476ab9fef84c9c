"""Two workloads of one test as the sides of a comparison, in this process."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.timing.blocks import Sides, pad_of
from pytest_gpuperf.timing.cubin_reference import MovingBuffers
from pytest_gpuperf.timing.process_reference import MemoryPad
from pytest_gpuperf.timing.rounds import Workload


class PairedWorkloads:
    """A ``Reference``.  A launch runs on copies of its arrays, which move; what a callable allocates moves, too."""

    def __init__(self, device: Device, timer: Timer, sides: Sequence[Workload]) -> None:
        """``sides`` are the reference and the candidate; arrays that a ``reset`` restores stay where they are."""
        self.timer, self._pad, self._given = timer, MemoryPad(device), sides
        rooms = [
            MovingBuffers.of(device, side.run) if isinstance(side.run, Launch) and side.reset is None else (None, "")
            for side in sides
        ]
        self._rooms = [room for room, _ in rooms]
        self.remarks = tuple(dict.fromkeys(remark for _, remark in rooms if remark))
        self.sides: Sides = (sides[0], sides[1])

    def place(self, call: int, coin: random.Random) -> None:  # noqa: ARG002 of the protocol
        self._pad.move(pad_of(coin))
        first, second = (
            side if room is None else Workload(room.moved(coin), side.reset, side.cache)
            for side, room in zip(self._given, self._rooms, strict=True)
        )
        self.sides = (first, second)

    def finish(self) -> None:
        """Nothing to do: a launch left the test's arrays alone, and what a callable wrote is checked again."""
