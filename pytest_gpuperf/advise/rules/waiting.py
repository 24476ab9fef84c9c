"""Causes that lie in waiting: launch, work per thread, occupancy, barriers, latency."""

from __future__ import annotations

from pytest_gpuperf.advise import causes
from pytest_gpuperf.advise.finding import Case, Finding, change, grew
from pytest_gpuperf.advise.side import Side
from pytest_gpuperf.verdict import Change

OCCUPANCY_LOSS = 1.02
"""Theoretical occupancy; an exact figure.  COURSE: more than 50 % achieved is good, less than 25 % poor."""
THREAD_LOSS = 1.25
"""Threads of the whole launch."""
LATENCY_GROWTH = 1.05
"""Cycles of a warp alone per unit of work, as the machine code tells; GTC25: half again is worth a rewrite."""
BARRIER_CYCLES = 30.0
"""That a barrier costs a warp at the least: the warps of a block start again together, and wait together."""


def launch_configuration(case: Case) -> Finding | None:
    """The same code, launched in other blocks of which an SM holds less, or which touch more sectors."""
    if not case.before.same_code(case.after) or case.before.static is None or case.after.static is None:
        return None
    was, now = case.before.static, case.after.static
    if was.block == now.block:
        return None
    warps, held = case.was.warps, case.now.warps
    spread = grew(case.was.global_sectors, case.now.global_sectors, 1.05)
    if not grew(held, warps, OCCUPANCY_LOSS) and not spread:
        return None
    evidence = [_block_change(case)]
    if warps is not None and held is not None:
        evidence.append(_occupancy_change(case))
    if spread:
        evidence.append(
            change("sectors of global requests", case.was.global_sectors or 0, case.now.global_sectors or 0)
        )
    return Finding(causes.LAUNCH, tuple(evidence), case.was)


def more_work_per_thread(case: Case) -> Finding | None:
    """Fewer threads for the same work."""
    was, now = case.before.threads, case.after.threads
    if was is None or now is None or was < now * THREAD_LOSS or not case.before.same_code(case.after):
        return None
    evidence = (change("threads of the launch", was, now),)
    return Finding(causes.WORK_PER_THREAD, evidence, case.was)


def occupancy_lost(case: Case) -> Finding | None:
    """An SM holds fewer warps, for the registers or the shared memory that a block takes."""
    if not grew(case.now.warps, case.was.warps, OCCUPANCY_LOSS) or _launch_is_to_blame(case):
        return None
    evidence = [_occupancy_change(case)]
    if case.before.static is not None and case.after.static is not None:
        was, now = case.before.static, case.after.static
        if now.profile.registers != was.profile.registers:
            evidence.append(change("registers", was.profile.registers, now.profile.registers))
        shared = (s.profile.shared_bytes + s.dynamic_shared_bytes for s in (was, now))
        before, after = shared
        if before != after:
            evidence.append(change("shared memory per block", before, after, "bytes"))
    without = case.now.replace(warps=case.was.warps)
    return Finding(causes.OCCUPANCY, tuple(evidence), without, detail=_limiter(case.after))


def _launch_is_to_blame(case: Case) -> bool:
    """Whether only the block differs in what the occupancy depends on."""
    was, now = case.before.static, case.after.static
    if was is None or now is None or was.block == now.block:
        return False
    resources = [(s.profile.registers, s.profile.shared_bytes + s.dynamic_shared_bytes) for s in (was, now)]
    return resources[0] == resources[1]


def barrier_stalls(case: Case) -> Finding | None:
    """More barriers for the same work."""
    if not grew(case.was.barriers, case.now.barriers, LATENCY_GROWTH):
        return None
    evidence = (change("barriers", case.was.barriers, case.now.barriers, "" if case.counted else "per warp"),)
    extra = (case.now.barriers - case.was.barriers) * BARRIER_CYCLES
    alone = case.now.alone
    without = case.now.replace(
        barriers=case.was.barriers, alone=None if alone is None else max(alone - extra, alone * 0.1)
    )
    return Finding(causes.BARRIERS, evidence, without)


def exposed_latency(case: Case) -> Finding | None:
    """A warp takes longer for the same work than its instructions account for; or fewer warps share the wait."""
    if _fewer_threads_in_a_block(case):
        was, now = case.before.block_size or 0, case.after.block_size or 0
        evidence: tuple[Change, ...] = (change("threads per block", was, now),)
        share = now / was
        warps = None if case.now.warps is None else case.now.warps / share
        return Finding(causes.LATENCY, evidence, case.now.replace(warps=warps))
    was_alone, now_alone = _wait(case.was), _wait(case.now)
    if not grew(was_alone, now_alone, LATENCY_GROWTH) or was_alone is None or now_alone is None:
        return None
    evidence = (change("cycles of a warp alone per instruction", was_alone, now_alone),)
    alone = None if case.now.alone is None else case.now.alone * was_alone / now_alone
    return Finding(causes.LATENCY, evidence, case.now.replace(alone=alone))


def _fewer_threads_in_a_block(case: Case) -> bool:
    was, now = case.before.block_size, case.after.block_size
    return case.before.same_code(case.after) and was is not None and now is not None and now < was


def _wait(usage: object) -> float | None:
    alone, issued = getattr(usage, "alone", None), getattr(usage, "issued", 0)
    return alone / issued if alone is not None and issued else None


def _block_change(case: Case) -> Change:
    def text(side: Side) -> str:
        block = side.block or (side.static.block if side.static else None)
        return "x".join(map(str, block)) if block else "unknown"

    return Change(what="block", before=text(case.before), after=text(case.after), direction="worse")


def _occupancy_change(case: Case) -> Change:
    was, now = case.before.static, case.after.static
    if was is not None and now is not None and was.occupancy is not None and now.occupancy is not None:
        fractions = (100 * was.occupancy.fraction, 100 * now.occupancy.fraction)
        return change("occupancy", *fractions, "%", f"limited by {now.occupancy.limiter}")
    return change("resident warps per scheduler", case.was.warps or 0, case.now.warps or 0)


def _limiter(side: Side) -> str:
    return side.static.occupancy.limiter if side.static is not None and side.static.occupancy is not None else ""
