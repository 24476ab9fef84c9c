"""Memory of a simulated GPU that all processes on it share: arrays, and what pools keep of those that are gone.

Each process notes in a file what it holds; what it freed it holds on to, as CuPy's pool does, until it gives it back.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from simulated_gpu import SimulatedArrays, SimulatedGpu


class SharedMemory:
    """``limit`` bytes for all processes that note what they hold in ``folder``."""

    def __init__(self, folder: Path, limit: int) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self.limit = folder, limit
        self._live = self._held = self._most = 0

    def take(self, array: Any) -> Any:
        """The array, if there is room for it beside all that is held.  Raises ``MemoryError``."""
        self._live += array.nbytes
        weakref.finalize(array, self._free, array.nbytes)
        self._held, self._most = max(self._held, self._live), max(self._most, self._live)
        if self._held + self._of_others() > self.limit:
            raise MemoryError(f"out of memory allocating {array.nbytes} bytes of {self.limit}")
        self._note()
        return array

    def most_of(self, run: Callable[[], Any]) -> int:
        """Bytes that one call holds at most beyond what is held before it."""
        before = self._most = self._live
        result = run()
        found = self._most - before
        del result
        return found

    def give_back(self) -> None:
        self._held = self._live
        self._note()

    def _free(self, size: int) -> None:
        self._live -= size

    def _note(self) -> None:
        (self._folder / str(os.getpid())).write_text(str(self._held))

    def _of_others(self) -> int:
        alive = [file for file in self._folder.iterdir() if Path("/proc", file.name).exists()]
        return sum(int(file.read_text() or 0) for file in alive if file.name != str(os.getpid()))


class LimitedArrays(SimulatedArrays):
    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory

    def random(self, *given: Any, **more: Any) -> Any:
        return self._memory.take(super().random(*given, **more))

    def empty(self, *given: Any) -> Any:
        return self._memory.take(super().empty(*given))

    def zeros(self, *given: Any) -> Any:
        return self._memory.take(super().zeros(*given))

    def empty_like(self, array: Any) -> Any:
        return self._memory.take(super().empty_like(array))


class LimitedGpu(SimulatedGpu):
    """A simulated GPU whose memory comes to an end."""

    def __init__(self, folder: Path, limit: int, **more: Any) -> None:
        super().__init__(**more)
        self._memory = SharedMemory(folder, limit)
        self.arrays = LimitedArrays(self._memory)
        self.facts = msgspec.structs.replace(self.facts, memory_bytes=limit)

    def bytes_of(self, run: Callable[[], Any]) -> int:
        return self._memory.most_of(run)

    def release_unused(self) -> None:
        self._memory.give_back()
