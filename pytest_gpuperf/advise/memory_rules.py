"""Causes that lie in traffic of memory: coalescing, banks, redundancy, width, caches, and local memory."""

from __future__ import annotations

from pytest_gpuperf.advise.comparison import SECTOR_BYTES, Case, Finding, Usage, change, grew, ratio

SECTOR_GROWTH = 1.1
"""Sectors per byte asked for: one sector in ten.  Exact figures; a load shifted by half a sector shows as 1.25."""
CONFLICT_GROWTH = 1.1
"""Passes through the banks per access (GTC23: any excess over the ideal number is a conflict)."""
TRAFFIC_GROWTH = 1.25
"""Bytes asked of global memory per unit of work (COURSE: shared memory saves 2-5x)."""
WIDTH_LOSS = 1.4
"""Bytes per memory instruction and lane: between 16, 8 and 4 lies a factor of 2."""
TURN_GROWTH = 1.25
"""Turns of atomics: a reduction in each warp before saves 32 of them, and compilers add or drop none."""
LOCAL_GROWTH = 1.01
"""Accesses to local memory; exact figures."""
LESS_COMPUTED = 2.0
"""Arithmetic instructions where fetching takes their place: a table leaves hardly any of them."""
ARITHMETIC = frozenset({"fp16", "fp32", "fp64", "mufu"})
"""Classes of what a result is computed with; integers make addresses as well."""
HIT_LOSS = 1.15
"""DRAM bytes per sector asked for; they vary by 2 % from run to run."""


def uncoalesced(case: Case) -> Finding | None:
    """More sectors for the same bytes, and for an access of the same width."""
    was, now = sectors_per_ideal(case.was), sectors_per_ideal(case.now)
    if not grew(was, now, SECTOR_GROWTH) or was is None or now is None:
        return None
    each, each_now = (ratio(usage.global_sectors, usage.global_requests) or 0 for usage in (case.was, case.now))
    if not grew(ratio(each, case.was.global_width), ratio(each_now, case.now.global_width), SECTOR_GROWTH):
        return None  # as many sectors for fewer lanes: that is divergence
    if _only_narrower(case):
        return None
    evidence = [change("bytes used of each sector", SECTOR_BYTES / was, SECTOR_BYTES / now, f"of {SECTOR_BYTES}")]
    if each_now > each:  # of narrower requests, fewer are more
        evidence.insert(0, change("sectors per global request", each, each_now))
    without = _with_traffic(case, case.now, sectors=was / now, requests=1.0)
    return Finding("uncoalesced access", tuple(evidence), without)


def _only_narrower(case: Case) -> bool:
    """Whether lanes lie as far apart as before, and take less at once: that is lost vectorisation."""
    each, each_now = (ratio(usage.global_sectors, usage.global_requests) for usage in (case.was, case.now))
    apart = grew(each, each_now, SECTOR_GROWTH) or grew(each_now, each, SECTOR_GROWTH)
    return not apart and grew(case.now.global_width, case.was.global_width, WIDTH_LOSS)


def sectors_per_ideal(usage: Usage) -> float | None:
    """Sectors touched over those that the bytes would fit into; None without global memory."""
    return ratio(usage.global_sectors, usage.global_ideal)


def _with_traffic(case: Case, usage: Usage, *, sectors: float, requests: float) -> Usage:
    """``usage`` with so many times the sectors of global memory, and so many times the requests for them."""
    less = usage.global_requests * (1 - requests)
    waited = usage.waits.get("global_load", 0) * (1 - min(sectors, requests) if case.counted else 1 - requests)
    return usage.replace(
        global_sectors=None if usage.global_sectors is None else usage.global_sectors * sectors,
        dram_bytes=None if usage.dram_bytes is None else usage.dram_bytes * sectors,
    ).quicker(instructions=less, waited=waited)


def bank_conflicts(case: Case) -> Finding | None:
    """More passes through the banks per shared-memory access than there need be."""
    was, now = wavefronts_per_ideal(case.was) or 1.0, wavefronts_per_ideal(case.now)
    if not grew(was, now, CONFLICT_GROWTH) or now is None or case.now.shared_wavefronts is None:
        return None
    each, each_now = (ratio(usage.shared_wavefronts, usage.shared_requests) for usage in (case.was, case.now))
    evidence = (change("wavefronts per shared-memory access", each or was, each_now or 0),)
    waited = case.now.waits.get("shared_load", 0) * (1 - was / now)
    without = case.now.replace(shared_wavefronts=case.now.shared_wavefronts * was / now).quicker(waited=waited)
    return Finding("bank conflicts", evidence, without)


def wavefronts_per_ideal(usage: Usage) -> float | None:
    """Passes through the banks over those that would do; None without shared memory."""
    return ratio(usage.shared_wavefronts, usage.shared_ideal)


def redundant_traffic(case: Case) -> Finding | None:
    """More bytes asked of global memory for the same work: the same data again, or what used to be computed."""
    was, now = case.was.global_bytes, case.now.global_bytes
    if not grew(was, now, TRAFFIC_GROWTH) or not was or not now:
        return None
    if _is_other_data(case, now - was):
        return None
    evidence = [
        change("global memory accesses", case.was.global_requests, case.now.global_requests, case.per),
        change("bytes asked of global memory", was, now, case.per),
    ]
    if case.was.shared_requests > case.now.shared_requests * TRAFFIC_GROWTH:
        evidence.append(change("shared memory accesses", case.was.shared_requests, case.now.shared_requests, case.per))
    without = _with_traffic(case, case.now, sectors=was / now, requests=was / now)
    return Finding("redundant global traffic", tuple(evidence), without)


def _is_other_data(case: Case, more: float) -> bool:
    """Whether so many more bytes are not the same data again, nor fetched where they used to be shared or computed."""
    if grew(case.now.shared_requests, case.was.shared_requests, TRAFFIC_GROWTH):
        return False
    computed, computes = (sum(side.classes.get(name, 0) for name in ARITHMETIC) for side in (case.was, case.now))
    was, now = ((side.dram_bytes if case.counted else side.global_distinct) for side in (case.was, case.now))
    return was is not None and now is not None and now - was >= more / 2 and not grew(computes, computed, LESS_COMPUTED)


def lost_vectorisation(case: Case) -> Finding | None:
    """Fewer bytes per memory instruction, of global or of shared memory."""
    was, now = ({"global": (usage.global_width, usage.global_requests),
                 "shared": (usage.shared_width, usage.shared_requests)} for usage in (case.was, case.now))  # fmt: skip
    shares = {kind: (width or 0) / (was[kind][0] or 1) if grew(width, was[kind][0], WIDTH_LOSS) else 1.0
              for kind, (width, _) in now.items()}  # fmt: skip
    """Which part of the accesses would do, had they the width they had before; 1 if they lost none."""
    narrowed = sorted((kind for kind in shares if shares[kind] < 1), key=lambda kind: now[kind][1], reverse=True)
    if not narrowed:
        return None
    evidence = [figure for kind in narrowed for figure in (
        change(f"bytes per {kind} memory access and lane", was[kind][0] or 0, now[kind][0] or 0),
        change(f"{kind} memory accesses", was[kind][1], now[kind][1], case.per),
    )]  # fmt: skip
    return Finding("lost vectorisation", tuple(evidence), _widened(case, shares["global"], shares["shared"]))


def _widened(case: Case, of_global: float, of_shared: float) -> Usage:
    """With as many bytes in such parts of the accesses, each with less to issue."""
    usage = case.now
    before, overhead = (sum(one.classes.get(name, 0) for name in OVERHEAD) for one in (case.was, usage))
    less = usage.global_requests * (1 - of_global) + usage.shared_requests * (1 - of_shared)
    share = 1 - less / (usage.global_requests + usage.shared_requests or 1.0)
    saved = min(max(overhead - max(overhead * share, before), 0), MOST_OVERHEAD * less)
    integers = usage.classes.get("integer", 0) * (1 - saved / overhead if overhead else 1.0)
    waited = usage.waits.get("shared_load", 0) * (1 - of_shared)
    usage = usage.replace(classes={**usage.classes, "integer": integers})
    usage = usage.quicker(instructions=saved + usage.shared_requests * (1 - of_shared), waited=waited)
    return _with_traffic(case, usage, sectors=of_global if _only_narrower(case) else 1.0, requests=of_global)


OVERHEAD = frozenset({"integer", "compare", "branch", "move"})
"""Classes of what comes with each access: its address, the loop around it."""
MOST_OVERHEAD = 8
"""Instructions that come with one access, at most, by the machine code around LDG: a check of bounds (ISETP, BRA), an
address of 64 bits (up to 3), and the count, comparison and jump of a loop (3).  What there is beyond is what the kernel
computes: the recurrence of an alignment, for instance, is integers as well."""


def atomics(case: Case) -> Finding | None:
    """More turns of atomic operations on global memory for the same work, beyond those in place of a load and store."""
    was, now = case.was, case.now
    each, each_now = (ratio(usage.atomic_turns, usage.atomics) or 1.0 for usage in (was, now))
    is_more = each_now > each or now.global_requests + now.atomics > was.global_requests + was.atomics
    if not is_more or not grew(was.atomic_turns, now.atomic_turns, TURN_GROWTH):
        return None
    evidence = [change("lanes that add to one address", each, each_now)] if each_now > each else []
    if now.atomics > was.atomics:
        evidence.append(change("global atomics", was.atomics, now.atomics, case.per))
    share = was.atomic_turns / now.atomic_turns
    fewer = now.replace(
        atomics=min(was.atomics, now.atomics), atomic_turns=was.atomic_turns,
        scattered_atomics=now.scattered_atomics * share,
    )  # fmt: skip
    waited = now.waits.get("atomic", 0) * (1 - share)
    without = fewer.quicker(instructions=max(now.atomics - was.atomics, 0.0), waited=waited)
    return Finding("contended atomics", tuple(evidence), without)


def cache_hit_loss(case: Case) -> Finding | None:
    """More of what was asked for has to come from memory; counted only."""
    was, now = (ratio(usage.dram_bytes, usage.global_sectors) for usage in (case.was, case.now))
    if not grew(was, now, HIT_LOSS) or was is None or now is None or case.now.dram_bytes is None:
        return None
    evidence = (change("DRAM bytes per sector asked for", was, now, "bytes"),)
    # what comes from further away is waited for longer
    waited = max(case.now.waits.get("global_load", 0) - case.was.waits.get("global_load", 0), 0)
    without = case.now.replace(dram_bytes=case.now.dram_bytes * was / now).quicker(waited=waited)
    return Finding("cache hit loss", evidence, without)


def register_spilling(case: Case) -> Finding | None:
    """More spilled bytes; where nobody counted them, a larger stack that is used more."""
    was, now = case.before.static, case.after.static
    if was is None or now is None:
        return None
    before, after, what = was.profile.spill_bytes, now.profile.spill_bytes, "spilled bytes per thread"
    if before is None or after is None:
        before, after, what = was.profile.stack_bytes, now.profile.stack_bytes, "stack bytes per thread"
        if not grew(case.was.local_requests, case.now.local_requests, LOCAL_GROWTH):
            return None
    if after <= before:
        return None
    evidence = (
        change(what, before, after),
        change("local memory accesses", case.was.local_requests, case.now.local_requests, case.per),
        change("registers", was.profile.registers, now.profile.registers),
    )
    return Finding("register spilling", evidence, _without_local(case), gates=True)


def stack(case: Case) -> Finding | None:
    """A larger stack that is not made of spilled registers.

    Where it is only written, something else reads it by its address, as ``printf`` its arguments.
    """
    was, now = case.before.static, case.after.static
    if was is None or now is None:
        return None
    stores, stores_now = was.profile.spill_store_bytes, now.profile.spill_store_bytes
    if stores is None or stores_now is None or stores_now > stores:
        return None
    before, after = max(was.profile.stack_bytes - stores, 0), max(now.profile.stack_bytes - stores_now, 0)
    written, read = (now.profile.opcodes.get(name, 0) - was.profile.opcodes.get(name, 0)
                     for name in ("local_store", "local_load"))  # fmt: skip
    is_address = written > 0 == read
    evidence = [change("stack bytes per thread", was.profile.stack_bytes, now.profile.stack_bytes)]
    if grew(case.was.local_requests, case.now.local_requests, LOCAL_GROWTH):
        evidence.append(change("local memory accesses", case.was.local_requests, case.now.local_requests, case.per))
    elif case.counted or not is_address:  # printf is mostly for one thread, of no warp that was walked
        return None
    if after <= before:
        return None
    cause = "address of a local variable" if is_address else "stack from run-time indexing"
    return Finding(cause, tuple(evidence), _without_local(case), gates=True)


def _without_local(case: Case) -> Usage:
    """Without the local memory accesses that are new, and the instructions that make them."""
    now = case.now
    extra = max(now.local_requests - case.was.local_requests, 0)
    waited = now.waits.get("local_load", 0) * (extra / now.local_requests if now.local_requests else 0)
    less = now.replace(local_requests=now.local_requests - extra).quicker(instructions=extra, waited=waited)
    if less.single_warp_cycles is None or case.was.single_warp_cycles is None:
        return less
    # where values live in local memory, loads are not issued ahead any more either: those waits go with it
    return less.replace(single_warp_cycles=min(less.single_warp_cycles, case.was.single_warp_cycles))
