"""What a process has put to its GPU last, and whether it gets on: to name a kernel that breaks or never ends."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from pytest_gpuperf.device.interface import Dim3


class SeenLaunch(NamedTuple):
    """A launch, as messages name it."""

    kernel: str
    grid: Dim3
    block: Dim3

    def __str__(self) -> str:
        return f"{self.kernel}  grid {self.grid}  block {self.block}"


class LaunchLog:
    """The last launches, and a number that grows with each and with each answer of the GPU."""

    def __init__(self) -> None:
        self.steps = 0
        self._last: deque[SeenLaunch] = deque(maxlen=4)

    def launched(self, kernel: str, grid: Dim3, block: Dim3) -> None:
        """Note a launch before it is enqueued."""
        self.steps += 1
        self._last.append(SeenLaunch(kernel, grid, block))

    def answered(self) -> None:
        """Note that all that was enqueued is done."""
        self.steps += 1

    def forget(self) -> None:
        """A test begins: what others launched is none of its doing."""
        self._last.clear()

    @property
    def last(self) -> tuple[SeenLaunch, ...]:
        """The last few launches of this test, each once, the newest first."""
        return tuple(dict.fromkeys(reversed(self._last)))
