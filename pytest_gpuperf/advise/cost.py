"""What a usage costs: cycles of one scheduler for each part of the hardware, and of all of them together.

The parts work side by side, so the largest one sets the pace, and one that is nearly as slow is felt as well: the whole
is the fourth root of the sum of fourth powers, of the largest of the units that calculate, the levels of memory, and
latency.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_gpuperf.advise.comparison import SECTOR_BYTES, Usage
from pytest_gpuperf.compile.warp_model.clock import issue_cycles

SHARPNESS = 4
SCHEDULERS = 4
"""Of an SM."""
UNITS = ("fp64", "fp32", "integer", "mufu", "conversion", "tensor")
CORE = ("issue", *UNITS)
"""Parts that do not get in each other's way: what is issued to a unit keeps both busy at once."""
LINE_SECTORS = 4
L2_BYTES, DRAM_BYTES = 5.0, 2.5
"""Bytes per cycle that a typical GPU's memory delivers, for one scheduler: an A100 7 and 3, an H200 5.3 and 4.2, an RTX
5090 4 and 1.  One figure for all lets an architecture name the causes that the others do."""
TURN_CYCLES, SCATTERED_CYCLES = 200.0, 350.0
"""Of a further turn at one address of global memory, and of a warp's atomic whose addresses data decide.  A turn takes
an H200 27 cycles where each warp has its own address and 1,800 where all share one, and lanes that add to 65,536 floats
take 350 (2^24 additions by 528 schedulers at 1.98 GHz)."""
TYPICAL_WARPS = 8.0
"""Per scheduler, where the occupancy is not known."""


def costs(usage: Usage, arch: str) -> dict[str, float]:
    """Cycles of one scheduler by part of the hardware, for a usage out of the machine code."""
    found = {name: usage.classes.get(name, 0) * issue_cycles(name, arch) for name in UNITS} | {"issue": usage.issued}
    sectors = usage.global_sectors or 0
    local = usage.local_requests * LINE_SECTORS
    found["l1"] = SCHEDULERS * ((usage.shared_wavefronts or 0) + (sectors + local) / LINE_SECTORS)
    found["l2"] = (sectors + local / 2) * SECTOR_BYTES / L2_BYTES
    found["dram"] = sectors * SECTOR_BYTES / DRAM_BYTES
    waiting = (usage.atomic_turns - usage.atomics) * TURN_CYCLES
    found["atomics"] = waiting + usage.scattered_atomics * SCATTERED_CYCLES
    if usage.single_warp_cycles is not None:
        found["latency"] = usage.single_warp_cycles / (usage.warps or TYPICAL_WARPS)
    return found


def measured(usage: Usage, busy: Mapping[str, float], arch: str, sm_count: int) -> dict[str, float]:
    """Cycles by part of a usage that was counted: by the fraction of time it was ``busy``, else by the quantities."""
    cycles = usage.cycles or 0.0
    found = {part: cost / (SCHEDULERS * sm_count) for part, cost in costs(usage, arch).items() if part != "latency"}
    found.update({part: fraction * cycles for part, fraction in busy.items()})
    if usage.single_warp_cycles is not None:
        found["latency"] = usage.single_warp_cycles / (usage.warps or 1.0)
    return found


def changed(parts: Mapping[str, float], now: Usage, without: Usage, arch: str) -> dict[str, float]:
    """Those cycles, had ``now`` been ``without``: less in proportion."""
    had, has = costs(now, arch), costs(without, arch)
    if now.dram_bytes and without.dram_bytes is not None:
        had["dram"], has["dram"] = now.dram_bytes, without.dram_bytes
    return {part: cycles * (has[part] / had[part] if had.get(part) else 1.0) for part, cycles in parts.items()}


def rest_of(cycles: float, parts: Mapping[str, float]) -> float:
    """What is missing of ``cycles`` when the parts are added up as in ``whole``."""
    return float(max(cycles**SHARPNESS - whole(parts) ** SHARPNESS, 0.0) ** (1 / SHARPNESS))


def whole(parts: Mapping[str, float]) -> float:
    """All parts together, cycles."""
    core = max((cycles for part, cycles in parts.items() if part in CORE), default=0.0)
    others = [cycles for part, cycles in parts.items() if part not in CORE]
    return float(sum(one**SHARPNESS for one in (core, *others)) ** (1 / SHARPNESS))
