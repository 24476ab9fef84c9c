"""Causes that lie in local memory: spilled registers, and arrays of the thread that cannot be kept in any."""

from __future__ import annotations

from pytest_gpuperf.advise import causes
from pytest_gpuperf.advise.rule_case import Case, Finding, change, grew
from pytest_gpuperf.advise.usage import Usage

LOCAL_GROWTH = 1.01
"""Accesses to local memory; exact figures."""


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
    return Finding(causes.SPILLING, evidence, _without_local(case), gates=True)


def stack(case: Case) -> Finding | None:
    """A larger stack that is not made of spilled registers, and is read where it was written."""
    return None if _read_elsewhere(case) else _of_stack(case, causes.STACK)


def address_taken(case: Case) -> Finding | None:
    """A larger stack that the kernel writes, and something else reads by its address, as ``printf`` its arguments."""
    return _of_stack(case, causes.ADDRESS) if _read_elsewhere(case) else None


def _read_elsewhere(case: Case) -> bool:
    """Whether instructions that load from local memory are as many as before: what is new is only written there."""
    was, now = case.before.static, case.after.static
    if was is None or now is None:
        return False
    loads, stores = ([s.profile.opcodes.get(f"local_{way}", 0) for s in (was, now)] for way in ("load", "store"))
    return loads[0] == loads[1] and stores[1] > stores[0]


def _of_stack(case: Case, cause: causes.Cause) -> Finding | None:
    was, now = case.before.static, case.after.static
    if was is None or now is None:
        return None
    stores, stores_now = was.profile.spill_store_bytes, now.profile.spill_store_bytes
    if stores is None or stores_now is None or stores_now > stores:
        return None
    before, after = max(was.profile.stack_bytes - stores, 0), max(now.profile.stack_bytes - stores_now, 0)
    if after <= before or not grew(case.was.local_requests, case.now.local_requests, LOCAL_GROWTH):
        return None
    frame = change("stack bytes per thread", was.profile.stack_bytes, now.profile.stack_bytes)
    accesses = change("local memory accesses", case.was.local_requests, case.now.local_requests, case.per)
    return Finding(cause, (frame, accesses), _without_local(case), gates=True)


def _without_local(case: Case) -> Usage:
    """Without the local memory accesses that are new, and the instructions that make them."""
    now = case.now
    extra = max(now.local_requests - case.was.local_requests, 0)
    share = extra / now.local_requests if now.local_requests else 0
    less = now.replace(local_requests=now.local_requests - extra)
    return less.quicker(instructions=extra, waited=now.waits.get("local_load", 0) * share)
