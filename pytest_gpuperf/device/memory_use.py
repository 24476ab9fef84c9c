"""The most of a GPU's memory that a call holds, and what is kept for reuse."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.device.device_errors import UnseenMemory


class MemoryUse:
    """Of one GPU, as CuPy's pool and PyTorch's tell it."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def empty(self) -> None:
        """Have both pools give back what they keep for reuse; arrays that live are not touched."""
        self._cupy.get_default_memory_pool().free_all_blocks()
        if (torch := _torch()) is not None:
            with contextlib.suppress(RuntimeError):  # a fault of the GPU: whoever uses it next is told
                torch.empty_cache()

    def of_run(self, run: Callable[[], Any]) -> int:
        """The most bytes that one call held beyond what was held before it.

        Raises ``UnseenMemory`` where CuPy takes its memory from an allocator that tells nobody, as a byte shows.
        """
        gc.collect()  # what nobody holds any more is not given back in the middle
        if not self._held_by(lambda: self._cupy.cuda.alloc(1)):
            raise UnseenMemory(
                "measure='memory' sees what CuPy's own pool and PyTorch's give out, and cupy.cuda.set_allocator(...) "
                "has put another allocator in its place: measure without it, or leave memory out of measure="
            )
        return self._held_by(run)

    def _held_by(self, run: Callable[[], Any]) -> int:
        """The most that CuPy's pool and PyTorch's gave out during a call, its result included."""
        torch, before, held = _torch(), 0, [0]
        if torch is not None:
            torch.reset_peak_memory_stats()
            before = int(torch.memory_allocated())
        hook = type("CupyWatch", (self._cupy.cuda.MemoryHook,), {
            "name": "pytest-gpuperf",
            "malloc_postprocess": lambda _, *, mem_size, **__: held.append(held[-1] + mem_size),
            "free_postprocess": lambda _, *, mem_size, **__: held.append(held[-1] - mem_size),
        })  # fmt: skip
        with hook():
            result = run()
            most = max(held)
        if torch is not None:
            most += max(int(torch.max_memory_allocated()) - before, 0)
        del result
        return most


def _torch() -> Any:
    """``torch.cuda``, if the test suite has imported PyTorch and it has used a GPU."""
    torch = getattr(sys.modules.get("torch"), "cuda", None)
    return torch if torch is not None and torch.is_initialized() else None
