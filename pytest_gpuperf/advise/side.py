"""One version of a workload, as far as anything is known about it."""

from __future__ import annotations

import math

import msgspec

from pytest_gpuperf.advise.usage import WARP
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.warp_estimate import WarpEstimate

Extent = tuple[int, int, int]


class Side(Record, frozen=True):
    """Evidence of one version, from whatever was gathered."""

    arch: str
    """``sm_90``: of the machine code below, and of the GPU that counted and timed."""
    static: StaticRecord | None = None
    estimate: WarpEstimate | None = None
    """What a warp does by the machine code; None where that is not at hand, or too long to walk."""
    counters: dict[str, float] = msgspec.field(default_factory=dict)
    """Raw metrics of Nsight Compute by their GH100 names; empty if none were taken."""
    time_ns: float | None = None
    grid: Extent | None = None
    block: Extent | None = None
    sm_count: int | None = None
    bytes: int | None = None
    flops: int | None = None
    """What one run must move and compute, as the test declares it."""

    @property
    def threads(self) -> int | None:
        """Threads of the whole launch; None if the grid is not known."""
        return None if self.grid is None or self.block_size is None else math.prod(self.grid) * self.block_size

    @property
    def block_size(self) -> int | None:
        """Threads of a block."""
        block = self.launch[1]
        return None if block is None else math.prod(block)

    @property
    def threads_per_warp(self) -> float | None:
        """Of a block, on average; 32 if its size is a multiple of 32."""
        size = self.block_size
        return None if not size else size / math.ceil(size / WARP)

    @property
    def launch(self) -> tuple[Extent | None, Extent | None, int]:
        """Grid, block and dynamic shared memory, as far as they are known."""
        static = self.static
        block = self.block or (static.block if static is not None else None)
        return self.grid, block, static.dynamic_shared_bytes if static is not None else 0

    def same_code(self, other: Side) -> bool:
        """Whether both run the very same machine code."""
        mine, its = self.static, other.static
        return mine is not None and its is not None and mine.profile.code_hash == its.profile.code_hash
