"""What is compared: a version as far as it is known, what it makes the hardware do, and what a rule may find.

A usage has one form whether it was counted or read off the machine code.  Static figures are per warp and unit of work,
counted ones of the whole run.  What a source does not tell is None.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import msgspec

from pytest_gpuperf.model.evidence import Record, StaticRecord
from pytest_gpuperf.model.result import Dim3
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.model.warp_estimate import WarpEstimate

SECTOR_BYTES = 32
WARP = 32
ANY = "instruction"
"""Among the classes of instructions that are waited for: each of them."""


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
    global_distinct: float | None = None
    """Bytes of global memory that a warp touches at all; only the machine code tells, unless data decide."""
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
    shared_wavefronts: float | None = None
    """Wavefronts: passes through the banks."""
    shared_ideal: float | None = None
    """Wavefronts without conflicts."""
    local_requests: float = 0
    """Loads and stores of local memory."""
    atomics: float = 0
    """Atomic operations on global memory, warp by warp; only the machine code tells, as of the next two."""
    atomic_turns: float = 0
    """Turns that they take at least: lanes of a warp that add floats to one address come one after another."""
    scattered_atomics: float = 0
    """Those of them whose addresses data decide; each is taken for one turn."""
    split_branches: float | None = None
    """Branches that split a warp; counted only."""
    divisions: float = 0
    """Divisions, roots and remainders with a slow path; only the machine code tells."""
    single_warp_cycles: float | None = None
    """Cycles of one warp that has an SM to itself.  From counters: the scheduler's idle cycles, times its warps."""
    issue_included: bool = True
    """Whether ``single_warp_cycles`` includes one issue cycle for each instruction."""
    waits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Waiting cycles among ``single_warp_cycles``, by the class of the instruction that is waited for."""
    warps: float | None = None
    """Resident warps per scheduler: counted, or as many as the launch can hold."""
    limit: float | None = None
    """As many as the kernel's resources allow, whatever the grid."""
    dram_bytes: float | None = None
    cycles: float | None = None
    """Of the whole run; counted only."""

    def quicker(self, *, instructions: float = 0.0, waited: float = 0.0) -> Usage:
        """A copy with so many instructions less, and so many cycles of waiting; ``classes`` stay as they are."""
        issued = max(self.issued - instructions, 1.0)
        if self.single_warp_cycles is None:
            return self.replace(issued=issued)
        cycles = waited + (instructions if self.issue_included else 0.0)
        return self.replace(issued=issued, single_warp_cycles=max(self.single_warp_cycles - cycles, 0.0))

    def replace(self, **changes: object) -> Usage:
        """A copy with other quantities."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


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
    grid: Dim3 | None = None
    sm_count: int | None = None
    record: TimeRecord | None = None
    """Of the time, with what was declared; None without one."""
    l2_bytes: int = 0
    """Of the GPU that timed it; 0 if it is not known."""

    @property
    def declared(self) -> tuple[int | None, int | None]:
        """Bytes and operations of one run, as the test declares them."""
        return (self.record.bytes, self.record.flops) if self.record is not None else (None, None)

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
    def launch(self) -> tuple[Dim3 | None, Dim3 | None, int]:
        """Grid, block and dynamic shared memory, as far as they are known."""
        static = self.static
        block = (self.record and self.record.block) or (static.block if static is not None else None)
        return self.grid, block, static.dynamic_shared_bytes if static is not None else 0

    def same_code(self, other: Side) -> bool:
        """Whether both run the very same machine code."""
        mine, its = self.static, other.static
        return mine is not None and its is not None and mine.profile.code_hash == its.profile.code_hash


@dataclasses.dataclass(frozen=True)
class Case:
    """Before and after, with what each makes the hardware do."""

    before: Side
    after: Side
    was: Usage
    now: Usage
    counted: bool
    """The usages come from counters, not from the machine code."""
    scale: float = 1.0
    """By what the figures of ``now`` were multiplied for as much work as ``was`` does."""

    @property
    def per(self) -> str:
        """What quantities are counted for: a warp, unless the machine code was scaled, and no warp does as many."""
        return "" if self.counted else "per warp" if self.scale == 1.0 else "for equal work"


WHOLE = 100
"""From here on a figure loses its fraction, and no digit before it."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """A cause that the evidence shows."""

    cause: str
    """Key of one of ``causes.BY_KEY``."""
    evidence: tuple[Change, ...]
    """Figures, before and after; the first one is the one to show."""
    without: Usage
    """The usage of ``after`` if this cause alone were put right."""
    gates: bool = False
    """It explains a figure that gates by itself: the verdict is red for it, whatever it costs."""


def ratio(part: float | None, whole: float | None) -> float | None:
    """The quotient of two quantities; None where one is unknown or nothing."""
    return part / whole if part and whole else None


def grew(before: float | None, after: float | None, factor: float) -> bool:
    """Whether a quantity is known to have grown by at least this factor."""
    return before is not None and after is not None and after > max(before, 1e-12) * factor


def change(what: str, before: float, after: float, unit: str = "") -> Change:
    """A figure for the reader: whole numbers as they are, else three digits, and millions where there are many."""
    for size, prefix in ((1e9, "G"), (1e6, "M")):
        if max(before, after) >= size:
            before, after, unit = before / size, after / size, f"{prefix} {unit}".strip()
            break
    return Change(what=what, before=_short(before), after=_short(after), unit=unit, direction="worse")


def _short(value: float) -> float:
    return float(round(value)) if value == int(value) or abs(value) >= WHOLE else float(f"{value:.3g}")
