"""A usage out of the machine code: its dry run, scaled to equal work."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_gpuperf.advise.comparison import SECTOR_BYTES, WARP, Side, Usage
from pytest_gpuperf.advise.cost import SCHEDULERS
from pytest_gpuperf.device.discovery import nominal_facts
from pytest_gpuperf.model.evidence import StaticProfile
from pytest_gpuperf.model.warp_estimate import Access, Site, WarpEstimate

WAVEFRONT_BYTES = 128
"""What the 32 banks of shared memory deliver in one pass."""


def comparable_estimates(before: Side, after: Side) -> tuple[WarpEstimate, WarpEstimate] | None:
    """Of both, in a form that compares: each instruction once where one was not walked through; None without code."""
    if before.static is None or after.static is None:
        return None
    old, new = before.estimate, after.estimate
    if old is not None and new is not None and (old.model, old.launched) == (new.model, new.launched):
        return old, new
    return _without_walk(before.static.profile), _without_walk(after.static.profile)


def _without_walk(profile: StaticProfile) -> WarpEstimate:
    """Every instruction counted once."""
    counts = {name: float(count) for name, count in profile.opcodes.items()}
    return WarpEstimate(model=0, executed=counts, cycles=profile.instructions)


def static_usage(side: Side, run: WarpEstimate, scale: float = 1.0) -> Usage:
    """What one warp does by its dry run, multiplied by ``scale``.

    An access whose address data decide is taken for coalesced and free of conflicts.
    """
    limit = limit_of(side)
    to_global, to_shared, atomics = (
        [a for a in run.accesses if a.op.startswith(kind)] for kind in ("global", "shared", "atomic_global")
    )
    known = all(a.sectors is not None for a in to_global)
    return Usage(
        issued=scale * sum(run.executed.values()),
        lanes=run.lanes,
        classes={name: scale * count for name, count in run.executed.items()},
        global_requests=scale * sum(a.times for a in to_global),
        global_bytes=scale * sum(a.times * a.lanes * a.bytes for a in to_global),
        global_distinct=scale * sum(a.distinct for a in to_global) if known else None,
        global_sectors=scale * sum(a.times * _sectors(a) for a in to_global),
        global_ideal=scale * sum(a.times * min(least_sectors(a), _sectors(a)) for a in to_global),
        global_width=mean_width(to_global),
        load_lanes=_load_lanes(run),
        shared_requests=scale * sum(a.times for a in to_shared),
        shared_width=mean_width(to_shared),
        shared_wavefronts=scale
        * sum(a.times * (least_wavefronts(a) if a.wavefronts is None else a.wavefronts) for a in to_shared),
        shared_ideal=scale * sum(a.times * least_wavefronts(a) for a in to_shared),
        local_requests=scale * (run.executed.get("local_load", 0) + run.executed.get("local_store", 0)),
        atomics=scale * sum(a.times for a in atomics),
        atomic_turns=scale * sum(a.times * (a.wavefronts or 1) for a in atomics),
        scattered_atomics=scale * sum(a.times for a in atomics if a.wavefronts is None),
        divisions=scale * run.divisions,
        single_warp_cycles=scale * run.cycles,
        waits={name: scale * cycles for name, cycles in run.waits.items()},
        warps=limit if limit is None else resident_warps(side, limit),
        limit=limit,
    )


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
    times = sum(a.times for a in accesses)
    return sum(a.times * a.bytes for a in accesses) / times if times else None


def _load_lanes(run: WarpEstimate) -> float | None:
    """Mean lanes of a load of global memory.

    On a side that data decide it is executed once for all of them, but counts among the accesses as no more than the
    part of the warp that the walk sends there.
    """
    loads = [a for a in run.accesses if a.op == "global_load"]
    executed = max(run.executed.get("global_load", 0), sum(a.times for a in loads))
    return sum(a.times * a.lanes for a in loads) / executed if loads and executed else None


def _sectors(access: Access) -> float:
    return least_sectors(access) if access.sectors is None else access.sectors


def least_sectors(access: Access | Site) -> float:
    """Sectors that would do."""
    return max(1.0, access.bytes * access.lanes / SECTOR_BYTES)


def least_wavefronts(access: Access | Site) -> float:
    """Wavefronts that would do."""
    return max(1.0, access.bytes * WARP / WAVEFRONT_BYTES)


def work_of(run: WarpEstimate) -> tuple[float | None, float | None]:
    """Elements of global memory that a warp, or a side of one that a branch split, writes and that it reads first.

    What it stores to read it again is no result, and no part of the work.  None where data decide about the addresses
    of some of these: nobody knows how much the rest is of the whole.
    """
    double = run.executed.get("fp64", 0) > run.executed.get("fp32", 0)

    def amount(accesses: Sequence[Access]) -> float | None:
        """In words of 4 bytes; a double is one element as a float is."""
        if any(a.sectors is None for a in accesses):
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
