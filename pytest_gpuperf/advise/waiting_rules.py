"""Causes that lie in waiting: launch, occupancy, barriers, latency."""

from __future__ import annotations

from pytest_gpuperf.advise.comparison import ANY, Case, Finding, Side, Usage, change, grew
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.verdict import Change

OCCUPANCY_LOSS = 1.02
"""Theoretical occupancy; an exact figure.  COURSE: more than 50 % achieved is good, less than 25 % poor."""
SECTOR_GROWTH = 1.05
"""Sectors that another shape of block touches."""
LANE_LOSS = 1.05
"""Lanes that take part in an instruction, or in a load."""
THREAD_LOSS = 1.25
"""Threads of the whole launch."""
WAIT_GROWTH = 1.05
"""Cycles that a warp alone waits per unit of work, by the machine code: exact."""
COUNTED_WAIT_GROWTH = 1.2
"""The same by stall counters, which vary by some percent from run to run."""
WARP_LOSS = 1.1
"""Resident warps; the counted figure varies by a few percent."""
BINDING = 0.6
"""Of the limit: a full grid achieves 60 to 95 % of the theoretical occupancy (GTC23: 14.5 of 16 warps)."""
BARRIER_GROWTH = 1.05
WAITS_FOR = "cycles that a warp waits for each "
"""How the evidence of a longer wait begins, before the class of the instruction that is waited for."""


def launch_configuration(case: Case) -> Finding | None:
    """The same code in other blocks, of which an SM holds less or which touch more sectors."""
    was, now = case.before.static, case.after.static
    if was is None or now is None or not _reshaped(case):
        return None
    spread = grew(case.was.global_sectors, case.now.global_sectors, SECTOR_GROWTH)
    fewer = grew(case.now.limit, case.was.limit, OCCUPANCY_LOSS)
    if not fewer and not spread:
        return None
    blocks = ["x".join(map(str, one.block)) if one.block else "unknown" for one in (was, now)]
    evidence = [Change(what="block", before=blocks[0], after=blocks[1], direction="worse")]
    if fewer:
        evidence.append(_occupancy_change(was, now))
    if spread:
        touched, touches = (usage.global_sectors or 0 for usage in (case.was, case.now))
        evidence.append(change("sectors of global requests", touched, touches, case.per))
    return Finding("launch configuration", tuple(evidence), case.was, gates=fewer)


def _reshaped(case: Case) -> bool:
    """Whether as many threads run in blocks of another shape, and each block takes no more per thread than before."""
    was, now = case.before.static, case.after.static
    if was is None or now is None or was.block == now.block:
        return False
    threads = [side.threads for side in (case.before, case.after) if side.threads is not None]
    if len(threads) == 2 and max(threads) > THREAD_LOSS * min(threads):
        return False
    taken, takes = ((s.profile.registers, s.profile.shared_bytes + s.dynamic_shared_bytes) for s in (was, now))
    return taken == takes


def occupancy_lost(case: Case) -> Finding | None:
    """An SM holds fewer warps, for the registers or the shared memory that a block takes."""
    was, now = case.before.static, case.after.static
    fewer = grew(case.now.limit, case.was.limit, OCCUPANCY_LOSS)
    if was is None or now is None or not fewer or not _limit_binds(case.now) or _reshaped(case):
        return None
    evidence = [_occupancy_change(was, now)]
    taken, takes = (s.profile.shared_bytes + s.dynamic_shared_bytes for s in (was, now))
    if now.profile.registers > was.profile.registers:
        evidence.append(change("registers", was.profile.registers, now.profile.registers))
    if takes > taken:
        evidence.append(change("shared memory per block", taken, takes, "bytes"))
    return Finding("occupancy lost", tuple(evidence), case.now.replace(warps=case.was.warps), gates=True)


def _limit_binds(usage: Usage) -> bool:
    """Whether there are about as many warps as there could be: a small grid does not reach its limit."""
    return usage.warps is None or usage.limit is None or usage.warps >= BINDING * usage.limit


def barrier_stalls(case: Case) -> Finding | None:
    """More barriers for the same work, and for each warp: more blocks have more barriers, but wait no longer."""
    each, each_now = (_barriers_of_warp(side) for side in (case.before, case.after))
    was, now = (usage.classes.get("barrier", 0) for usage in (case.was, case.now))
    if not grew(was, now, BARRIER_GROWTH) or not grew(each, each_now, BARRIER_GROWTH):
        return None
    evidence = (change("barriers and fences", was, now, case.per),)
    waited = max(case.now.waits.get("barrier", 0) - case.was.waits.get("barrier", 0), 0)
    more = case.now.shared_requests / case.was.shared_requests if case.was.shared_requests else 0
    if not was or not 1 < more <= now / was * BARRIER_GROWTH:
        return Finding("barrier stalls", evidence, case.now.quicker(waited=waited))
    # shared memory is used more as well, and by no more than there are more barriers: more steps of a tree
    integers = min(usage.classes.get("integer", 0) for usage in (case.was, case.now))
    without = case.now.replace(
        classes={**case.now.classes, "integer": integers}, shared_wavefronts=case.was.shared_wavefronts
    )  # fmt: skip
    waited += max(case.now.waits.get("shared_load", 0) - case.was.waits.get("shared_load", 0), 0)
    less = max(case.now.issued - case.was.issued, 0)
    return Finding("barrier stalls", evidence, without.quicker(instructions=less, waited=waited))


def _barriers_of_warp(side: Side) -> float:
    if side.static is None:
        return 0.0
    run = side.estimate
    return run.executed.get("barrier", 0.0) if run is not None else side.static.profile.opcodes.get("barrier", 0)


def exposed_latency(case: Case) -> Finding | None:
    """A warp waits longer for the same work; or fewer warps share the wait."""
    fewer = grew(case.now.warps, case.was.warps, WARP_LOSS) and not _limit_binds(case.now) and not _reshaped(case)
    if fewer and case.was.warps is not None and case.now.warps is not None:
        evidence = (change("resident warps per scheduler", case.was.warps, case.now.warps),)
        return Finding("exposed latency", evidence, case.now.replace(warps=case.was.warps))
    counts, counts_now = ({**usage.classes, ANY: usage.issued} for usage in (case.was, case.now))
    own = {name: cycles for name, cycles in case.now.waits.items() if name not in _accounted_for(case)}
    before = {name: case.was.waits.get(name, 0) / count for name, count in counts.items() if count}
    excess = {name: cycles - before[name] * counts_now.get(name, 0) if name in before else 0.0
              for name, cycles in own.items()}  # fmt: skip
    waited, total = sum(own.values()), sum(excess.values())
    if waited <= 0 or not grew(waited - total, waited, COUNTED_WAIT_GROWTH if case.counted else WAIT_GROWTH):
        return None
    most = max(excess, key=lambda name: excess[name])
    was_each, now_each = (usage.waits.get(most, 0) / count[most] if count.get(most) else 0.0
                          for usage, count in ((case.was, counts), (case.now, counts_now)))  # fmt: skip
    evidence = (change(f"{WAITS_FOR}{most.replace('_', ' ')}", was_each, now_each),)
    return Finding("exposed latency", evidence, case.now.quicker(waited=total))


def _accounted_for(case: Case) -> set[str]:
    """What is waited for longer for another cause: barriers, local memory, each side of a branch that splits warps."""
    was, now = case.was, case.now
    split = grew(now.load_lanes, was.load_lanes, LANE_LOSS) and grew(now.lanes, was.lanes, LANE_LOSS)
    more_local = now.local_requests - was.local_requests
    around_local = more_local >= max(now.classes.get("global_load", 0), 1)  # loads are not issued ahead any more
    return {"barrier", "local_load", *(["global_load"] if split or around_local else [])}


def _occupancy_change(was: StaticRecord, now: StaticRecord) -> Change:
    before, after = (round(100 * s.occupancy.fraction, 4) if s.occupancy is not None else 0.0 for s in (was, now))
    note = f"limited by {now.occupancy.limiter}" if now.occupancy is not None else ""
    return Change(what="occupancy", before=before, after=after, unit="%", direction="worse", note=note)
