"""What a workload makes the hardware do, in one form whether it was counted or read off the machine code.

Static figures are per warp and unit of work, counted ones of the whole run.  What a source does not tell is None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

SECTOR_BYTES = 32
WARP = 32
LEAST_ALONE = 0.01
"""A warp alone takes at least this part of what it took, whatever is put right."""
PAYLOAD = (
    "fp16", "fp32", "fp64", "mufu", "tensor", "atomic", "global_load", "global_store", "shared_load", "shared_store",
    "local_load", "local_store", "texture", "bulk_copy",
)  # fmt: skip


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
    global_width: float | None = None
    """Bytes per access and lane."""
    load_lanes: float | None = None
    """Lanes that take part in a load of global memory."""
    shared_requests: float = 0
    shared_width: float | None = None
    shared_turns: float | None = None
    """Passes through the banks (wavefronts)."""
    shared_ideal: float | None = None
    """Passes that it would take without conflicts."""
    local_requests: float = 0
    """Loads and stores of local memory."""
    split_branches: float | None = None
    """Branches that split a warp; counted only."""
    divisions: float = 0
    """Divisions, roots and remainders with a slow path; only the machine code tells."""
    barriers: float = 0
    alone: float | None = None
    """Cycles that a warp takes that has an SM to itself; counted, those of a scheduler that no part was busy in,
    times the warps that shared them."""
    alone_issues: bool = True
    """Whether ``alone`` holds the cycles of issuing, too, one for each instruction."""
    waits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Of ``alone``, the cycles that it waits, by the class of the instruction that it waits for."""
    warps: float | None = None
    """Resident warps per scheduler: counted, or as many as the launch can hold."""
    limit: float | None = None
    """As many as the kernel's resources allow, whatever the grid."""
    dram_bytes: float | None = None
    cycles: float | None = None
    """Of the whole run; counted only."""

    @property
    def thread_instructions(self) -> float:
        """Instructions, lane by lane."""
        return self.issued * self.lanes

    @property
    def overhead(self) -> float:
        """Instructions that neither calculate with numbers of the result nor touch memory: addresses, loops, moves."""
        return max(self.issued - sum(self.classes.get(name, 0) for name in PAYLOAD), 0.0)

    def quicker(self, *, instructions: float = 0.0, waited: float = 0.0) -> Usage:
        """A copy with so many instructions less, and so many cycles of waiting; ``classes`` stay as they are."""
        issued = max(self.issued - instructions, 1.0)
        if self.alone is None:
            return self.replace(issued=issued)
        cycles = waited + (instructions if self.alone_issues else 0.0)
        return self.replace(issued=issued, alone=max(self.alone - cycles, self.alone * LEAST_ALONE))

    def replace(self, **changes: object) -> Usage:
        """A copy with other quantities."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]
