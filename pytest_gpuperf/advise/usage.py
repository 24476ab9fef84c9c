"""What a workload makes the hardware do, in one form whether it was counted or read off the machine code.

Static figures are per warp and unit of work, counted ones of the whole run: two usages are compared only if they come
from the same source.  What a source does not tell is None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

SECTOR_BYTES = 32
WARP = 32


@dataclasses.dataclass(frozen=True)
class Usage:
    """Quantities; every one may be compared with its like of another version."""

    issued: float
    """Instructions issued, warp by warp."""
    lanes: float = WARP
    """Mean active lanes of an instruction, 0 to 32."""
    classes: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Instructions by class: those of ``StaticProfile.opcodes``."""
    global_requests: float = 0
    """Loads and stores of global memory, warp by warp."""
    global_bytes: float | None = None
    """Bytes that the lanes ask of global memory and give to it."""
    global_sectors: float | None = None
    """Sectors of 32 bytes that the requests touch."""
    global_ideal: float | None = None
    """Sectors that the bytes would fit into."""
    global_fresh: float | None = None
    """Share of the bytes loaded that the warp has not asked for before, 0 to 1."""
    global_width: float | None = None
    """Bytes per access and lane."""
    shared_requests: float = 0
    shared_width: float | None = None
    shared_turns: float | None = None
    """Passes through the banks (wavefronts)."""
    shared_ideal: float | None = None
    """Passes that it would take without conflicts."""
    local_requests: float = 0
    """Loads and stores of local memory."""
    divisions: float = 0
    """Divisions, roots and remainders with a slow path; only the machine code tells."""
    barriers: float = 0
    alone: float | None = None
    """Cycles that a warp takes that has an SM to itself; counted, those of a scheduler that no part was busy in,
    times the warps that shared them."""
    waits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Of ``alone``, the cycles that it waits, by the class of the instruction that it waits for."""
    warps: float | None = None
    """Resident warps per scheduler: counted, or as many as the launch can hold."""
    limit: float | None = None
    """As many as the kernel's resources allow, whatever the grid."""
    l2_sectors: float | None = None
    dram_bytes: float | None = None
    cycles: float | None = None
    """Of the whole run; counted only."""

    @property
    def thread_instructions(self) -> float:
        """Instructions, lane by lane."""
        return self.issued * self.lanes

    def faster_alone(self, cycles: float, waits: Mapping[str, float] | None = None) -> Usage:
        """A copy in which a warp alone takes so many cycles less, and waits as given."""
        if self.alone is None:
            return self
        return self.replace(alone=max(self.alone - cycles, 1.0), waits=self.waits if waits is None else waits)

    def replace(self, **changes: object) -> Usage:
        """A copy with other quantities."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]
