"""Facts of a GPU that do not change while it runs."""

from __future__ import annotations

from pytest_gpuperf.model.base_record import Record


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
    cuda: str = ""
    cupy: str = ""
    power_limit_w: int | None = None
    ecc: bool | None = None
    mig: bool | None = None

    @property
    def arch(self) -> str:
        """``sm_90``"""
        return "sm_{}{}".format(*self.compute_capability)
