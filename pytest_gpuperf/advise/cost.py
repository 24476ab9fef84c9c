"""What a usage costs: cycles of one scheduler for each part of the hardware, and of all of them together.

The parts work side by side, so the largest one sets the pace, and one that is nearly as slow is felt as well: the whole
is the fourth root of the sum of fourth powers, of the largest of the units that calculate, the levels of memory, and
latency.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_gpuperf.advise.usage import SECTOR_BYTES, Usage
from pytest_gpuperf.compile.warp_model.clock import issue_cycles
from pytest_gpuperf.model.architectures import plain

SHARPNESS = 4
SCHEDULERS = 4
"""Of an SM."""
UNITS = ("fp64", "fp32", "integer", "mufu", "conversion", "tensor")
CORE = ("issue", *UNITS)
"""Parts that do not get in each other's way: what is issued to a unit keeps both busy at once."""
LINE_SECTORS = 4
TYPICAL_WARPS = 8.0
"""Per scheduler, where the occupancy is not known."""


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes per cycle that the memory delivers, for one scheduler."""

    l2: float
    dram: float


MEMORY: dict[str, Memory] = {
    "sm_80": Memory(l2=7.0, dram=3.0),
    "sm_90": Memory(l2=5.3, dram=4.2),
    "sm_120": Memory(l2=4.0, dram=1.0),
}
"""Of an A100 80 GB (2.0 TB/s, 108 SMs at 1.41 GHz), an H200 (4.8 TB/s, 132 SMs at 1.98 GHz, 90 % of it) and an RTX 5090
(1.8 TB/s, 170 SMs at 2.4 GHz); L2 as measured elsewhere, about 5 TB/s on the first two."""
OTHER_MEMORY = Memory(l2=5.0, dram=2.5)


def costs(usage: Usage, arch: str) -> dict[str, float]:
    """Cycles of one scheduler by part of the hardware, for a usage out of the machine code."""
    memory = MEMORY.get(plain(arch), OTHER_MEMORY)
    found = {name: usage.classes.get(name, 0) * issue_cycles(name, arch) for name in UNITS} | {"issue": usage.issued}
    sectors = usage.global_sectors or 0
    stores = usage.classes.get("global_store", 0)
    share = stores / usage.global_requests if usage.global_requests else 0
    fresh = 1.0 if usage.global_fresh is None else usage.global_fresh
    missed = sectors * (share + (1 - share) * fresh)
    local = usage.local_requests * LINE_SECTORS
    found["l1"] = SCHEDULERS * ((usage.shared_turns or 0) + (sectors + local) / LINE_SECTORS)
    found["l2"] = (missed + local / 2) * SECTOR_BYTES / memory.l2
    found["dram"] = min(missed, (usage.global_ideal or 0)) * SECTOR_BYTES / memory.dram
    if usage.alone is not None:
        found["latency"] = usage.alone / (usage.warps or TYPICAL_WARPS)
    return found


def measured(usage: Usage, busy: Mapping[str, float], arch: str, sm_count: int) -> dict[str, float]:
    """Cycles by part of a usage that was counted: by the fraction of time it was ``busy``, else by the quantities."""
    cycles = usage.cycles or 0.0
    found = {part: cost / (SCHEDULERS * sm_count) for part, cost in costs(usage, arch).items() if part != "latency"}
    found.update({part: fraction * cycles for part, fraction in busy.items()})
    if "mufu" in busy:
        found["conversion"] = 0.0  # the same unit
    if usage.alone is not None:
        found["latency"] = usage.alone / (usage.warps or 1.0)
    return found


def changed(parts: Mapping[str, float], now: Usage, without: Usage, arch: str, sm_count: int) -> dict[str, float]:
    """Those cycles, had ``now`` been ``without``: less in proportion, or what more costs on top."""
    had, has = costs(now, arch), costs(without, arch)
    if now.dram_bytes and without.dram_bytes is not None:
        had["dram"], has["dram"] = now.dram_bytes, without.dram_bytes
    found = {}
    for part, cycles in parts.items():
        if has.get(part, 0.0) > had.get(part, 0.0) and part not in ("latency", "dram"):
            found[part] = cycles + (has[part] - had[part]) / (SCHEDULERS * sm_count)
        else:
            found[part] = cycles * (has[part] / had[part] if had.get(part) else 1.0)
    return found


def rest_of(cycles: float, parts: Mapping[str, float]) -> float:
    """What is missing of ``cycles`` when the parts are added up as in ``whole``."""
    return float(max(cycles**SHARPNESS - whole(parts) ** SHARPNESS, 0.0) ** (1 / SHARPNESS))


def whole(parts: Mapping[str, float]) -> float:
    """All parts together, cycles."""
    core = max((cycles for part, cycles in parts.items() if part in CORE), default=0.0)
    others = [cycles for part, cycles in parts.items() if part not in CORE]
    return float(sum(one**SHARPNESS for one in (core, *others)) ** (1 / SHARPNESS))
