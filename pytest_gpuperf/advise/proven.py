"""Causes that the machine code proves: figures of every access known, for both versions, under the launch at hand.

Not estimates: where data decide about one access, or sizes are examples, nothing is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_gpuperf.advise.advisor import static_case
from pytest_gpuperf.advise.comparison import Case, Finding, Side, grew
from pytest_gpuperf.advise.cost import costs, whole
from pytest_gpuperf.advise.rules import memory
from pytest_gpuperf.judge.static_weight import CLEARLY
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

PROVEN_GROWTH = 1.9
"""Turns, sectors or accesses for the same bytes: twice as many, short of what a prologue does otherwise."""


def proven_causes(before: Side, after: Side) -> tuple[Change, ...]:
    """Bank conflicts, lost coalescing and lost vectorisation that are exact on both sides, as changes for the worse."""
    case = static_case(before, after)
    estimates = before.estimate, after.estimate
    if case is None or any(one is None or not one.launched for one in estimates):
        return ()
    known = [one for one in estimates if one is not None]
    found = [finding for finding in _found(case, known) if finding is not None]
    return tuple(finding.evidence[0] for finding in found if not _is_price(case, finding))


def _is_price(case: Case, finding: Finding) -> bool:
    """Whether the version would clearly gain without this cause, and by more than it loses with it.

    Something else got better then, and this was paid for it: which of the two weighs more, rough estimates cannot say.
    """
    was, now, without = (whole(costs(usage, case.after.arch)) for usage in (case.was, case.now, finding.without))
    return without <= CLEARLY * was and without * now <= was * was


def _found(case: Case, estimates: Sequence[WarpEstimate]) -> Iterator[Finding | None]:
    was, now = case.was, case.now
    shared, everywhere = _exact(estimates, "shared"), _exact(estimates, "global")
    turns = memory.turns_per_ideal(was), memory.turns_per_ideal(now)
    if shared and _doubled(was.shared_turns, now.shared_turns) and _doubled(*turns):
        yield memory.bank_conflicts(case)
    spread = memory.sectors_per_ideal(was), memory.sectors_per_ideal(now)
    if everywhere and _doubled(was.global_sectors, now.global_sectors) and _doubled(*spread):
        yield memory.uncoalesced(case)
    narrowed = _doubled(now.global_width, was.global_width) and was.global_bytes == now.global_bytes
    if everywhere and narrowed and _doubled(was.global_requests, now.global_requests):
        yield memory.lost_vectorisation(case)


def _doubled(before: float | None, after: float | None) -> bool:
    return grew(before, after, PROVEN_GROWTH)


def _exact(estimates: Sequence[WarpEstimate], kind: str) -> bool:
    """Whether there are such accesses on both sides, and what each of them touches is known."""
    of_kind = [[a for a in one.accesses if a.op.startswith(kind)] for one in estimates]
    return all(accesses and all(map(_known, accesses)) for accesses in of_kind)


def _known(access: Access) -> bool:
    return access.turns is not None
