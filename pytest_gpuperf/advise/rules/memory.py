"""Causes that lie in memory traffic: spills, stack, coalescing, banks, redundancy, width, caches."""

from __future__ import annotations

from pytest_gpuperf.advise import causes
from pytest_gpuperf.advise.finding import Case, Finding, change, grew
from pytest_gpuperf.advise.usage import SECTOR_BYTES, Usage

SECTOR_GROWTH = 1.1
"""Sectors per byte asked for: one sector in ten.  Exact figures; a load shifted by half a sector shows as 1.25."""
CONFLICT_GROWTH = 1.1
"""Passes through the banks per access (GTC23: any excess over the ideal number is a conflict)."""
TRAFFIC_GROWTH = 1.25
"""Bytes asked of global memory per unit of work (COURSE: shared memory saves 2-5x)."""
WIDTH_LOSS = 1.4
"""Bytes per memory instruction and lane: between 16, 8 and 4 lies a factor of 2."""
HIT_LOSS = 1.15
"""DRAM bytes per sector asked for; they vary by 2 % from run to run."""


def register_spilling(case: Case) -> Finding | None:
    """More spilled bytes."""
    was, now = case.before.static, case.after.static
    if was is None or now is None:
        return None
    before, after = was.profile.spill_bytes, now.profile.spill_bytes
    if before is None or after is None or after <= before:
        return None
    evidence = (
        change("spilled bytes per thread", before, after),
        change("local memory accesses", case.was.local_requests, case.now.local_requests, case.per),
        change("registers", was.profile.registers, now.profile.registers),
    )
    without = _without_local(case)
    if without.alone is not None and case.was.alone is not None:
        # where values do not fit, loads are not issued ahead any more either: those waits go with the spills
        without = without.replace(alone=min(without.alone, case.was.alone))
    return Finding(causes.SPILLING, evidence, without)


def stack(case: Case) -> Finding | None:
    """A larger stack that is not made of spilled registers; of unknown spills nothing is said."""
    was, now = case.before.static, case.after.static
    if was is None or now is None:
        return None
    stored = was.profile.spill_store_bytes, now.profile.spill_store_bytes
    if stored[0] is None or stored[1] is None or stored[1] > stored[0]:
        return None
    before, after = max(was.profile.stack_bytes - stored[0], 0), max(now.profile.stack_bytes - stored[1], 0)
    if after <= before or not grew(case.was.local_requests, case.now.local_requests, 1.01):
        return None
    evidence = (
        change("stack bytes per thread", was.profile.stack_bytes, now.profile.stack_bytes),
        change("local memory accesses", case.was.local_requests, case.now.local_requests, case.per),
    )
    return Finding(causes.STACK, evidence, _without_local(case))


def _without_local(case: Case) -> Usage:
    """Without the local memory accesses that are new, and the instructions that make them."""
    now = case.now
    extra = max(now.local_requests - case.was.local_requests, 0)
    share = extra / now.local_requests if now.local_requests else 0
    waited = now.waits.get("local_load", 0) * share
    less = now.replace(local_requests=now.local_requests - extra, issued=max(now.issued - extra, 1))
    return less.faster_alone(extra + waited)


def uncoalesced(case: Case) -> Finding | None:
    """More sectors for the same bytes."""
    was, now = _sectors_per_ideal(case.was), _sectors_per_ideal(case.now)
    if not grew(was, now, SECTOR_GROWTH) or was is None or now is None:
        return None
    evidence = (
        change("sectors per global request", _each(case.was), _each(case.now)),
        change("bytes used of each sector", SECTOR_BYTES / was, SECTOR_BYTES / now, f"of {SECTOR_BYTES}"),
    )
    return Finding(causes.UNCOALESCED, evidence, _with_traffic(case, sectors=was / now, requests=1.0))


def _sectors_per_ideal(usage: Usage) -> float | None:
    if not usage.global_sectors or not usage.global_ideal:
        return None
    return usage.global_sectors / usage.global_ideal


def _each(usage: Usage) -> float:
    return (usage.global_sectors or 0) / usage.global_requests if usage.global_requests else 0


def _with_traffic(case: Case, *, sectors: float, requests: float, of: Usage | None = None) -> Usage:
    """With so many times the sectors of global memory, and so many times the requests for them."""
    usage = of or case.now
    dram = usage.dram_bytes
    if dram is not None:
        dram = max(dram * sectors, min(case.was.dram_bytes or 0.0, dram))
    classes = dict(usage.classes)
    for name in ("global_load", "global_store"):
        if name in classes:
            classes[name] *= requests
    less = usage.global_requests * (1 - requests)
    ideal = usage.global_ideal
    slim = usage.replace(
        global_sectors=None if usage.global_sectors is None else usage.global_sectors * sectors,
        global_ideal=ideal if ideal is None or requests == 1 else ideal * sectors,
        global_requests=usage.global_requests - less,
        classes=classes,
        issued=usage.issued - less,
        l2_sectors=None if usage.l2_sectors is None else usage.l2_sectors * sectors,
        dram_bytes=dram,
    )
    return slim.faster_alone(less + usage.waits.get("global_load", 0) * (1 - requests))


def bank_conflicts(case: Case) -> Finding | None:
    """More passes through the banks per shared-memory access than there need be."""
    was, now = _turns_per_ideal(case.was) or 1.0, _turns_per_ideal(case.now)
    if not grew(was, now, CONFLICT_GROWTH) or now is None or case.now.shared_turns is None:
        return None
    evidence = (change("passes per shared-memory access", _turns_each(case.was) or was, _turns_each(case.now)),)
    return Finding(causes.BANK_CONFLICTS, evidence, case.now.replace(shared_turns=case.now.shared_turns * was / now))


def _turns_per_ideal(usage: Usage) -> float | None:
    return usage.shared_turns / usage.shared_ideal if usage.shared_turns and usage.shared_ideal else None


def _turns_each(usage: Usage) -> float:
    return (usage.shared_turns or 0) / usage.shared_requests if usage.shared_requests else 0


def redundant_traffic(case: Case) -> Finding | None:
    """More bytes asked of global memory for the same work."""
    was, now = case.was.global_bytes, case.now.global_bytes
    if not grew(was, now, TRAFFIC_GROWTH) or not was or not now:
        return None
    evidence = [
        change("global memory accesses", case.was.global_requests, case.now.global_requests, case.per),
        change("bytes asked of global memory", was, now, case.per),
    ]
    if case.was.shared_requests > case.now.shared_requests * TRAFFIC_GROWTH:
        evidence.append(change("shared memory accesses", case.was.shared_requests, case.now.shared_requests, case.per))
    without = _with_traffic(case, sectors=was / now, requests=was / now)
    return Finding(causes.REDUNDANT_TRAFFIC, tuple(evidence), without)


def lost_vectorisation(case: Case) -> Finding | None:
    """Fewer bytes per memory instruction, of global or of shared memory."""
    for kind in ("global", "shared"):
        was, now = _width(case.was, kind), _width(case.now, kind)
        if grew(now, was, WIDTH_LOSS) and was is not None and now is not None:
            evidence = (
                change(f"bytes per {kind} memory access and lane", was, now),
                change(f"{kind} memory accesses", _requests(case.was, kind), _requests(case.now, kind), case.per),
            )
            return Finding(causes.VECTORISATION, evidence, _widened(case, kind, now / was))
    return None


def _width(usage: Usage, kind: str) -> float | None:
    return usage.global_width if kind == "global" else usage.shared_width


def _requests(usage: Usage, kind: str) -> float:
    return usage.global_requests if kind == "global" else usage.shared_requests


OVERHEAD = ("integer", "compare", "branch", "move")
"""Instructions that come with each access: its address, the loop around it."""


def _widened(case: Case, kind: str, share: float) -> Usage:
    """With as many bytes in fewer accesses: less to issue with each, and more on its way in the same wait."""
    classes = dict(case.now.classes)
    saved = 0.0
    for name in OVERHEAD:
        count = classes.get(name, 0)
        fewer = min(count, max(count * share, case.was.classes.get(name, 0)))
        saved += count - fewer
        classes[name] = fewer
    usage = case.now.replace(classes=classes, issued=case.now.issued - saved).faster_alone(saved)
    if kind == "global":
        return _with_traffic(case, sectors=1.0, requests=share, of=usage)
    less = usage.shared_requests * (1 - share)
    slim = usage.replace(shared_requests=usage.shared_requests - less, issued=usage.issued - less)
    return slim.faster_alone(less + usage.waits.get("shared_load", 0) * (1 - share))


def cache_hit_loss(case: Case) -> Finding | None:
    """More of what was asked for has to come from memory; counted only."""
    was, now = _missed(case.was), _missed(case.now)
    if not grew(was, now, HIT_LOSS) or was is None or now is None or case.now.dram_bytes is None:
        return None
    evidence = (change("DRAM bytes per sector asked for", was, now, "bytes"),)
    return Finding(causes.CACHE, evidence, case.now.replace(dram_bytes=case.now.dram_bytes * was / now))


def _missed(usage: Usage) -> float | None:
    return usage.dram_bytes / usage.global_sectors if usage.dram_bytes and usage.global_sectors else None
