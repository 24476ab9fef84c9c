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
"""Sectors that reach the next level per sector asked for; near-exact figures vary by 2 %."""


def register_spilling(case: Case) -> Finding | None:
    """More spilled bytes, or spill instructions where they are counted."""
    was, now = case.before.static, case.after.static
    if was is None or now is None:
        return None
    before = was.profile.spill_store_bytes + was.profile.spill_load_bytes
    after = now.profile.spill_store_bytes + now.profile.spill_load_bytes
    if after <= before:
        return None
    evidence = (
        change("spilled bytes per thread", before, after),
        change("local memory accesses", case.was.local_requests, case.now.local_requests, _per(case)),
        change("registers", was.profile.registers, now.profile.registers),
    )
    return Finding(causes.SPILLING, evidence, _without_local(case))


def stack(case: Case) -> Finding | None:
    """A larger stack that is not made of spilled registers."""
    was, now = case.before.static, case.after.static
    if was is None or now is None:
        return None
    before, after = (max(p.stack_bytes - p.spill_store_bytes, 0) for p in (was.profile, now.profile))
    spills = now.profile.spill_store_bytes > was.profile.spill_store_bytes
    if after <= before or spills or not grew(case.was.local_requests, case.now.local_requests, 1.01):
        return None
    evidence = (
        change("stack bytes per thread", was.profile.stack_bytes, now.profile.stack_bytes),
        change("local memory accesses", case.was.local_requests, case.now.local_requests, _per(case)),
    )
    return Finding(causes.STACK, evidence, _without_local(case))


def _without_local(case: Case) -> Usage:
    """Without the local memory accesses that are new, and the instructions that make them."""
    extra = max(case.now.local_requests - case.was.local_requests, 0)
    share = extra / case.now.local_requests if case.now.local_requests else 0
    alone = case.now.alone
    if alone is not None and case.now.issued:
        alone *= max(case.now.issued - extra, 1) / case.now.issued
    return case.now.replace(
        local_requests=case.now.local_requests * (1 - share), issued=case.now.issued - extra, alone=alone
    )


def uncoalesced(case: Case) -> Finding | None:
    """More sectors for the same bytes."""
    if case.before.same_code(case.after) and not case.counted:
        return None
    was, now = _sectors_per_ideal(case.was), _sectors_per_ideal(case.now)
    if not grew(was, now, SECTOR_GROWTH) or case.now.global_sectors is None or was is None or now is None:
        return None
    evidence = (
        change("sectors per global request", _each(case.was), _each(case.now)),
        change("bytes used of each sector", SECTOR_BYTES / was, SECTOR_BYTES / now, f"of {SECTOR_BYTES}"),
    )
    share = was / now
    return Finding(causes.UNCOALESCED, evidence, _scaled_traffic(case.now, share, requests=1.0))


def _sectors_per_ideal(usage: Usage) -> float | None:
    if not usage.global_sectors or not usage.global_ideal:
        return None
    return usage.global_sectors / usage.global_ideal


def _each(usage: Usage) -> float:
    return (usage.global_sectors or 0) / usage.global_requests if usage.global_requests else 0


def _scaled_traffic(usage: Usage, sectors: float, requests: float) -> Usage:
    """With so many times the sectors, and so many times the requests that cause them."""
    classes = dict(usage.classes)
    for name in ("global_load", "global_store"):
        if name in classes:
            classes[name] *= requests
    less = usage.global_requests * (1 - requests)
    alone = usage.alone
    if alone is not None and usage.issued:
        alone *= 1 - less / usage.issued
    return usage.replace(
        global_sectors=None if usage.global_sectors is None else usage.global_sectors * sectors,
        global_requests=usage.global_requests * requests, classes=classes, issued=usage.issued - less, alone=alone,
        l2_sectors=None if usage.l2_sectors is None else usage.l2_sectors * sectors,
    )  # fmt: skip


def bank_conflicts(case: Case) -> Finding | None:
    """More passes through the banks per shared-memory access than there need be."""
    was, now = _turns_per_ideal(case.was), _turns_per_ideal(case.now)
    if not grew(was or 1.0, now, CONFLICT_GROWTH) or now is None or case.now.shared_turns is None:
        return None
    evidence = (change("passes per shared-memory access", _turns_each(case.was), _turns_each(case.now)),)
    without = case.now.replace(shared_turns=case.now.shared_turns * (was or 1.0) / now)
    return Finding(causes.BANK_CONFLICTS, evidence, without)


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
        change("global memory accesses", case.was.global_requests, case.now.global_requests, _per(case)),
        change("bytes asked of global memory", was, now, _per(case)),
    ]
    if case.was.shared_requests > case.now.shared_requests * TRAFFIC_GROWTH:
        evidence.append(change("shared memory accesses", case.was.shared_requests, case.now.shared_requests))
    share = was / now
    return Finding(causes.REDUNDANT_TRAFFIC, tuple(evidence), _scaled_traffic(case.now, share, share))


def lost_vectorisation(case: Case) -> Finding | None:
    """Fewer bytes per memory instruction, of global or of shared memory, for about as many bytes."""
    for kind, was, now in (("global", _width(case.was), _width(case.now)),
                           ("shared", _shared_width(case.was), _shared_width(case.now))):  # fmt: skip
        if not grew(now, was, WIDTH_LOSS) or was is None or now is None:
            continue
        evidence = (change(f"bytes per {kind} memory instruction and lane", was, now),)
        return Finding(causes.VECTORISATION, evidence, _widened(case.now, kind, now / was))
    return None


def _width(usage: Usage) -> float | None:
    if usage.global_bytes is None or not usage.global_requests:
        return None
    return usage.global_bytes / usage.global_requests / 32


def _shared_width(usage: Usage) -> float | None:
    if usage.shared_bytes is None or not usage.shared_requests:
        return None
    return usage.shared_bytes / usage.shared_requests / 32


def _widened(usage: Usage, kind: str, share: float) -> Usage:
    """With as many bytes in fewer instructions: less to issue, and more on its way per wait."""
    alone = None if usage.alone is None else usage.alone * share
    if kind == "global":
        fewer = _scaled_traffic(usage, 1.0, share)
        return fewer.replace(alone=alone)
    less = usage.shared_requests * (1 - share)
    return usage.replace(shared_requests=usage.shared_requests * share, issued=usage.issued - less, alone=alone)


def cache_hit_loss(case: Case) -> Finding | None:
    """More of what was asked for has to come from further away; counted only."""
    was, now = _missed(case.was), _missed(case.now)
    if not case.counted or not grew(was, now, HIT_LOSS) or was is None or now is None:
        return None
    evidence = (change("DRAM bytes per sector asked for", was, now, "bytes"),)
    scaled = None if case.now.dram_bytes is None else case.now.dram_bytes * was / now
    return Finding(causes.CACHE, evidence, case.now.replace(dram_bytes=scaled))


def _missed(usage: Usage) -> float | None:
    if usage.dram_bytes is None or not usage.global_sectors:
        return None
    return usage.dram_bytes / usage.global_sectors


def _per(case: Case) -> str:
    return "" if case.counted else "per warp"
