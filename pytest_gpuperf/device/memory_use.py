"""What a process and others hold of a GPU's memory, and the most that a test's arrays took."""

from __future__ import annotations

import sys
from typing import Any

from pytest_gpuperf.device.nvml_state import Nvml
from pytest_gpuperf.model.device_memory import DeviceMemory


class MemoryUse:
    """Of one GPU, as CuPy's pool, PyTorch's and NVML tell it.

    A pool gives nothing back while a test runs, so what it holds at the end is the most that it held: no allocation
    is watched, for that would be in the times of whatever allocates.
    """

    def __init__(self, cupy: Any, nvml: Nvml) -> None:
        self._cupy = cupy
        self._nvml = nvml
        self._peak = 0

    def begin(self) -> None:
        """A test begins; both pools have just been emptied."""
        self._peak = 0
        torch = _torch()
        if torch is not None:
            torch.cuda.reset_peak_memory_stats()

    def note(self) -> None:
        """CuPy's pool is about to be emptied."""
        self._peak = max(self._peak, int(self._cupy.get_default_memory_pool().total_bytes()))

    def now(self) -> DeviceMemory:
        """Bytes at this moment."""
        self.note()
        pool, torch = self._cupy.get_default_memory_pool(), _torch()
        free, total = self._cupy.cuda.runtime.memGetInfo()
        return DeviceMemory(
            total=int(total), free=int(free), arrays=int(pool.used_bytes()),
            unused=int(pool.total_bytes() - pool.used_bytes()),
            torch=int(torch.cuda.memory_reserved()) if torch is not None else 0, others=self._nvml.bytes_of_others(),
            peak=self._peak + (int(torch.cuda.max_memory_reserved()) if torch is not None else 0),
        )  # fmt: skip


def _torch() -> Any:
    """PyTorch, if the test suite has imported it and it has used a GPU."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_initialized() else None
