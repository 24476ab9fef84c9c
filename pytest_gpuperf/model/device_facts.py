"""A GPU: facts that do not change while it runs, its state at one moment, and who holds its memory."""

from __future__ import annotations

from pytest_gpuperf.model.evidence import Record


class DeviceFacts(Record, frozen=True):
    """What a GPU is: facts that do not change while it runs."""

    name: str
    """``NVIDIA H200``"""
    slug: str
    """``nvidia-h200``: the baseline target."""
    uuid: str
    index: int
    """Position in the caller's own list of visible GPUs."""
    compute_capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    max_threads_per_block: int
    max_grid: tuple[int, int, int]
    max_block: tuple[int, int, int]
    shared_bytes_per_block: int
    """Without opt-in."""
    shared_bytes_per_block_optin: int
    shared_bytes_per_sm: int
    registers_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    warp_size: int = 32
    driver: str = ""

    @property
    def arch(self) -> str:
        """``sm_90``"""
        return "sm_{}{}".format(*self.compute_capability)


class DeviceState(Record, frozen=True):
    """What NVML says about the GPU at one moment.  None: this GPU or driver does not tell."""

    sm_clock_mhz: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    """Reasons other than idle: ``power cap``, ``thermal slowdown``, ..."""
    other_processes: tuple[int, ...] = ()
    """Process ids of others computing on this GPU."""


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
