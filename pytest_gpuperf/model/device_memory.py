"""Who holds how much of a GPU's memory."""

from __future__ import annotations

from pytest_gpuperf.model.base_record import Record


class DeviceMemory(Record, frozen=True):
    """Bytes; 0 where it is not known."""

    total: int = 0
    free: int = 0
    arrays: int = 0
    """Of this process's arrays in CuPy's pool."""
    unused: int = 0
    """Kept by CuPy's pool for reuse."""
    torch: int = 0
    """Reserved by PyTorch in this process."""
    others: int = 0
    """Of other processes, where NVML tells."""
    peak: int = 0
    """The most that arrays of CuPy and PyTorch took together since the peak was last reset."""
