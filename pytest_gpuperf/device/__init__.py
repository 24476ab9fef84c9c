"""The GPU as the plugin uses it: discovery, lock, loading, launches, timers.

``open_device`` is the way in to a real GPU; ``placeholder.PlaceholderDevice`` stands in where there is none.
``interface`` says what either can do.  CuPy and NVML are imported when a GPU is opened, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_gpuperf.device.cuda import CudaDevice

__all__ = ["open_device"]


def open_device(worker: int | None = None) -> CudaDevice:
    """This process's GPU; under pytest-xdist that of worker number ``worker``.  Raises ``NoDevice``."""
    from pytest_gpuperf.device import discovery

    return discovery.open_device(worker)
