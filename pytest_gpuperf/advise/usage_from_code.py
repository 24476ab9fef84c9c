"""A usage out of the machine code: its dry run, scaled to equal work."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence

from pytest_gpuperf.advise.comparison import SECTOR_BYTES, WARP, Side, Usage
from pytest_gpuperf.advise.cost import SCHEDULERS
from pytest_gpuperf.compile.warp_model.clock import LATENCY
from pytest_gpuperf.device.facts import nominal_facts
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.evidence import StaticProfile
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

WAVEFRONT_BYTES = 128
"""What the 32 banks of shared memory deliver in one pass."""
L2_CYCLES = 250.0
"""Latency of an access that the L2 serves (GTC25, "Latency bound kernel": 200 to 300)."""
L1_BYTES = {"sm_80": 192 << 10, "sm_90": 256 << 10, "sm_100": 256 << 10}
"""L1 and shared memory of an SM (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
LEAST_L1_BYTES = 128 << 10
EVERY_INSTRUCTION_ONCE = 0
"""In the place of a model's version: no walk, but every instruction counted once."""


def comparable_estimates(before: Side, after: Side) -> tuple[WarpEstimate, WarpEstimate] | None:
    """Of both, in a form that compares: each instruction once where one was not walked through; None without code."""
    if before.static is None or after.static is None:
        return None
    old, new = before.estimate, after.estimate
    if old is not None and new is not None and (old.model, old.launched) == (new.model, new.launched):
        return old, new
    return _without_walk(before.static.profile), _without_walk(after.static.profile)


def _without_walk(profile: StaticProfile) -> WarpEstimate:
    counts = {name: float(count) for name, count in profile.opcodes.items()}
    return WarpEstimate(model=EVERY_INSTRUCTION_ONCE, executed=counts, cycles=profile.instructions)


def static_usage(side: Side, run: WarpEstimate, scale: float = 1.0) -> Usage:
    """What one warp does by its dry run, multiplied by ``scale``."""
    limit = limit_of(side)
    to_global = [a for a in run.accesses if a.op.startswith("global")]
    to_shared = [a for a in run.accesses if a.op.startswith("shared")]
    loads = [a for a in to_global if a.op == "global_load"]
    known = [(a, a.sectors) for a in to_global]
    turns = [(a, a.turns) for a in to_shared]
    return Usage(
        issued=scale * sum(run.executed.values()),
        lanes=run.lanes,
        classes={name: scale * count for name, count in run.executed.items()},
        global_requests=scale * sum(a.times for a in to_global),
        global_bytes=scale * sum(a.times * a.lanes * a.bytes for a in to_global),
        global_distinct=None if any(map(_unknown, to_global)) else scale * sum(a.distinct for a in to_global),
        global_sectors=_total(scale, known),
        global_ideal=_total(scale, ((a, _least(a, s)) for a, s in known)),
        shared_requests=scale * sum(a.times for a in to_shared),
        global_width=mean_width(to_global),
        load_lanes=_load_lanes(run, loads),
        shared_width=mean_width(to_shared),
        shared_turns=_total(scale, turns, WAVEFRONT_BYTES),
        shared_ideal=_total(scale, ((a, max(1.0, a.bytes * WARP / WAVEFRONT_BYTES)) for a in to_shared)),
        local_requests=scale * (run.executed.get("local_load", 0) + run.executed.get("local_store", 0)),
        divisions=scale * run.divisions,
        barriers=scale * run.executed.get("barrier", 0),
        alone=scale * (run.cycles + _misses_of_stack(side, run)),
        waits={name: scale * cycles for name, cycles in run.waits.items()},
        warps=limit if limit is None else resident_warps(side, limit),
        limit=limit,
    )


def _misses_of_stack(side: Side, run: WarpEstimate) -> float:
    """Cycles that a warp waits for local memory beyond what the walk reckons with, which is that all of it lies in L1.

    The stacks of all resident threads share the L1; the part that does not fit comes from the L2.
    """
    static, limit = side.static, limit_of(side)
    if static is None or limit is None or not static.profile.stack_bytes:
        return 0.0
    stacks = static.profile.stack_bytes * limit * SCHEDULERS * WARP
    missed = max(0.0, 1 - L1_BYTES.get(plain(side.arch), LEAST_L1_BYTES) / stacks)
    return missed * run.executed.get("local_load", 0) * (L2_CYCLES - LATENCY["local_load"])


def limit_of(side: Side) -> float | None:
    """Warps per scheduler that the kernel's resources allow."""
    occupancy = side.static.occupancy if side.static is not None else None
    return occupancy.warps_per_sm / SCHEDULERS if occupancy is not None else None


def resident_warps(side: Side, limit: float) -> float:
    """Warps per scheduler: less than the limit if the grid has not blocks enough for every SM.

    Without a GPU the SMs are those of a typical one.
    """
    if side.grid is None or side.block_size is None:
        return limit
    blocks = math.ceil(math.prod(side.grid) / (side.sm_count or nominal_facts(side.arch).sm_count))
    return min(limit, blocks * math.ceil(side.block_size / WARP) / SCHEDULERS)


def mean_width(accesses: Sequence[Access]) -> float | None:
    """Mean bytes per access and lane."""
    return _mean_each(accesses, operator.attrgetter("bytes"))


def _load_lanes(run: WarpEstimate, loads: Sequence[Access]) -> float | None:
    """Mean lanes of a load: of one on a side that data decide, the part of the warp that the walk sends there.

    Such a load is executed once for all of them, but counts among the accesses as no more than that part.
    """
    lanes, executed = _mean_each(loads, operator.attrgetter("lanes")), run.executed.get("global_load")
    if lanes is None or not executed:
        return lanes
    return lanes * min(sum(a.times for a in loads) / executed, 1.0)


def _mean_each(accesses: Sequence[Access], figure: Callable[[Access], float]) -> float | None:
    times = sum(a.times for a in accesses)
    return sum(a.times * figure(a) for a in accesses) / times if times else None


def _total(scale: float, accesses: Iterable[tuple[Access, float | None]], unit: int = SECTOR_BYTES) -> float:
    """Per request times requests; what data decide is taken for coalesced and free of conflicts.

    ``unit``: bytes of a sector, or of a wavefront of shared memory.
    """
    return scale * sum(
        a.times * (figure if figure is not None else max(1.0, a.bytes * a.lanes / unit)) for a, figure in accesses
    )


def _least(access: Access, found: float | None) -> float:
    """Sectors that would do; fewer if the lanes share them."""
    least = max(1.0, access.bytes * access.lanes / SECTOR_BYTES)
    return least if found is None else min(least, found)


def _unknown(access: Access) -> bool:
    """Whether data decide where it goes."""
    return access.sectors is None


def work_of(run: WarpEstimate) -> tuple[float | None, float | None]:
    """Elements of global memory that a warp, or a side of one that a branch split, writes and that it reads first.

    What it stores to read it again is no result, and no part of the work.  None where data decide about the addresses
    of some of these: nobody knows how much the rest is of the whole.
    """
    double = run.executed.get("fp64", 0) > run.executed.get("fp32", 0)

    def amount(accesses: Sequence[Access]) -> float | None:
        """In words of 4 bytes; a double is one element as a float is."""
        if any(map(_unknown, accesses)):
            return None
        return sum((a.distinct - a.scratch) / (8 if double and a.bytes == 8 else 4) for a in accesses)

    written = amount([a for a in run.accesses if a.op == "global_store" and a.lanes >= WARP / 2])
    read = amount([a for a in run.accesses if a.op == "global_load"])
    return written, read


def scale_of(before: WarpEstimate, after: WarpEstimate) -> float:
    """By what to multiply the figures of ``after`` so that it does as much work as ``before``; 1 where nothing tells.

    Work is what a warp writes, or, where single lanes write a result, what it reads.  Where data decide about that,
    both launches do the same work: of half as many warps, each does twice as much.
    """
    for was, now in zip(work_of(before), work_of(after), strict=True):
        if was is None or now is None:
            return after.warps / before.warps if before.warps and after.warps else 1.0
        if was and now:
            return was / now
    return 1.0
