"""What a process and others hold of a GPU's memory, and the most that a test's arrays took."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

from pytest_gpuperf.device.device_errors import UnseenMemory
from pytest_gpuperf.device.facts import Nvml
from pytest_gpuperf.model.device_memory import DeviceMemory


class MemoryUse:
    """Of one GPU, as CuPy's pool, PyTorch's and NVML tell it.

    A pool gives nothing back while a test runs, so what it holds at the end is the most that it held: no allocation
    is watched, for that would be in the times of whatever allocates.
    """

    def __init__(self, cupy: Any, nvml: Nvml) -> None:
        self._cupy = cupy
        self._nvml = nvml
        self._peak = self._torch_peak = 0

    def begin(self) -> None:
        """A test begins; both pools have just been emptied."""
        self._peak = self._torch_peak = 0
        torch = _torch()
        if torch is not None:
            torch.cuda.reset_peak_memory_stats()

    def note(self) -> None:
        """Keep the most that CuPy's pool held until now."""
        self._peak = max(self._peak, int(self._cupy.get_default_memory_pool().total_bytes()))

    def empty(self) -> None:
        """Have both pools give back what they keep for reuse; arrays that live are not touched."""
        self.note()
        self._cupy.get_default_memory_pool().free_all_blocks()
        torch = _torch()
        if torch is not None:
            with contextlib.suppress(RuntimeError):  # a fault of the GPU: whoever uses it next is told
                torch.cuda.empty_cache()  # its own peak outlasts that

    def now(self) -> DeviceMemory:
        """Bytes at this moment."""
        self.note()
        pool, torch = self._cupy.get_default_memory_pool(), _torch()
        free, total = self._cupy.cuda.runtime.memGetInfo()
        return DeviceMemory(
            total=int(total), free=int(free), arrays=int(pool.used_bytes()),
            unused=int(pool.total_bytes() - pool.used_bytes()),
            torch=int(torch.cuda.memory_reserved()) if torch is not None else 0, others=self._nvml.bytes_of_others(),
            peak=self._peak + self._most_of_torch(torch),
        )  # fmt: skip

    def _most_of_torch(self, torch: Any) -> int:
        if torch is not None:
            self._torch_peak = max(self._torch_peak, int(torch.cuda.max_memory_reserved()))
        return self._torch_peak

    def of_run(self, run: Callable[[], Any]) -> int:
        """The most bytes that one call held beyond what was held before it.

        Raises ``UnseenMemory`` where CuPy takes its memory from an allocator that tells nobody.
        """
        gc.collect()  # what nobody holds any more is not given back in the middle
        torch = _torch()
        self._require_seen(torch)
        self._most_of_torch(torch)
        if torch is not None:
            torch.cuda.reset_peak_memory_stats()
            before = int(torch.cuda.memory_allocated())
        with self._watched() as watch:
            result = run()
        most = watch.most
        if torch is not None:
            most += max(int(torch.cuda.max_memory_allocated()) - before, 0)
        del result
        return most

    def _require_seen(self, torch: Any) -> None:
        """Take a byte, and see who tells of it."""
        before = torch.cuda.memory_allocated() if torch is not None else 0
        with self._watched() as watch:
            byte = self._cupy.cuda.alloc(1)
            seen = watch.most or (torch is not None and torch.cuda.memory_allocated() != before)
            del byte
        if not seen:
            raise UnseenMemory(
                "measure='memory' sees what CuPy's own pool and PyTorch's give out, and cupy.cuda.set_allocator(...) "
                "has put another allocator in its place: measure without it, or leave memory out of measure="
            )

    @contextlib.contextmanager
    def _watched(self) -> Iterator[Watch]:
        """Inside, what CuPy's pool gives out is counted."""
        watch = Watch()
        hook = type("CupyWatch", (self._cupy.cuda.MemoryHook,), {
            "name": "pytest-gpuperf",
            "malloc_postprocess": lambda _, *, mem_size, **__: watch.change(mem_size),
            "free_postprocess": lambda _, *, mem_size, **__: watch.change(-mem_size),
        })  # fmt: skip
        with hook():
            yield watch


class Watch:
    """Bytes that a CuPy pool has given out, by its hooks' words."""

    def __init__(self) -> None:
        self.held = self.most = 0

    def change(self, size: int) -> None:
        """A block was given out, or taken back."""
        self.held += size
        self.most = max(self.most, self.held)


def _torch() -> Any:
    """PyTorch, if the test suite has imported it and it has used a GPU."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_initialized() else None
