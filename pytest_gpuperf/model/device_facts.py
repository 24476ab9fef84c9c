"""A GPU: facts that do not change while it runs, and its state at one moment."""

from __future__ import annotations

from pytest_gpuperf.model.evidence import Record


class DeviceFacts(Record, frozen=True):
    """What a GPU is: facts that do not change while it runs."""

    name: str
    """``NVIDIA H200``"""
    slug: str
    """``nvidia-h200``: the baseline target."""
    uuid: str
    compute_capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    max_threads_per_block: int
    max_grid: tuple[int, int, int]
    max_block: tuple[int, int, int]
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
