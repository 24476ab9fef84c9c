"""Corrects a static judgement: the estimate of the whole kernel overrides a single figure.

Occupancy is a means.  A loss of it gates unless an estimate gains for what it was traded for, or loses nothing where
another figure that gates got better; and a rise of it alone proves no gain.  Spills, stack and local memory gate unless
an estimate gains and something was bought with them: occupancy that rises, or conflicts, sectors or narrow accesses
that the machine code proves to be removed.  Nothing here turns what does not gate into WORSE but causes that the
machine code proves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from pytest_gpuperf.judge import static_rules as rules
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict


class StaticEstimate(NamedTuple):
    """Two versions of a kernel by their machine code alone, for equal work: the second over the first."""

    ratio: float
    """Of the time, all parts of the hardware together."""
    latency: float
    """Of the waiting that the resident warps leave uncovered: a warp's own time over how many share it."""


CLEARLY = 0.8
"""An estimate is rough (docs/explanation/static-evidence.md): less of the time than this is a gain whatever waits."""
ALIKE = 1.02
"""Up to this ratio the whole takes as long as before, so that less waiting is a gain."""
OCCUPANCY = frozenset({rules.OCCUPANCY.what})
LOCAL = frozenset(
    rule.what for rule in (rules.SPILL_STORES, rules.SPILL_LOADS, rules.STACK, rules.LOCAL_LOADS, rules.LOCAL_STORES)
)
"""What a bound on registers or another way to memory costs, and may be worth."""
_OPEN = "needs a timing run"


def gains(estimate: StaticEstimate) -> bool:
    """Whether the whole became faster: clearly, or as fast as it was and with less waiting uncovered."""
    return estimate.ratio <= CLEARLY or (estimate.ratio <= ALIKE and estimate.latency <= 1)


def loses(estimate: StaticEstimate) -> bool:
    """Whether the whole became slower, or is as fast as it was and leaves more of its waiting uncovered."""
    return estimate.ratio > ALIKE or (estimate.ratio >= 1 / ALIKE and estimate.latency > ALIKE)


def with_estimate(
    judgement: Judgement, estimate: StaticEstimate | None, causes: Sequence[Change] = (),
    cured: Sequence[Change] = (),
) -> Judgement:  # fmt: skip
    """The judgement with its figures overridden where the ``estimate`` of the whole gains.

    ``causes`` are changes for the worse that the machine code proves; they gate where the estimate loses.  ``cured``
    are those of the way back: what it proves to be better.  Without an estimate a loss gates as it is.
    """
    if judgement.verdict not in (Verdict.WORSE, Verdict.BETTER, Verdict.SAME):
        return judgement
    better = {one.what for one in judgement.changes if one.direction == "better"}
    gained = estimate is not None and (gains(estimate) or (estimate.ratio <= ALIKE and better - OCCUPANCY))
    bought = cured or better & OCCUPANCY
    weighable = (OCCUPANCY | LOCAL if bought else OCCUPANCY) if gained else frozenset[str]()
    minor = [one.what for one in _worse(judgement.changes) if one.what in weighable]
    changes = tuple(
        msgspec.structs.replace(one, direction="neutral") if one.what in minor else one for one in judgement.changes
    )
    slower = estimate is not None and loses(estimate)
    if slower:
        changes = (*causes, *changes)
    verdict, reason = _verdict(judgement, changes, slower=slower)
    if estimate is not None and minor and verdict is not Verdict.WORSE:
        why = f"{', '.join(minor)} got worse; an estimate of the whole kernel overrides it"
        verdict, reason = Verdict.SAME, f"{why} ({_percent(estimate)}): {_OPEN}"
    return msgspec.structs.replace(judgement, verdict=verdict, reason=reason, changes=changes)


def _worse(changes: Sequence[Change]) -> list[Change]:
    return [one for one in changes if one.direction == "worse"]


def _verdict(judgement: Judgement, changes: Sequence[Change], *, slower: bool) -> tuple[Verdict, str]:
    worse, better = _worse(changes), [one.what for one in changes if one.direction == "better"]
    if worse and worse == _worse(judgement.changes):
        return Verdict.WORSE, judgement.reason
    if worse:
        return Verdict.WORSE, f"the machine code got worse: {', '.join(one.what for one in worse)}"
    if not better:
        return Verdict.SAME, judgement.reason
    if OCCUPANCY.issuperset(better):
        return Verdict.SAME, f"the occupancy rose, which proves no gain: {_OPEN}"
    named = f"{', '.join(better)} got better"
    if slower:
        return Verdict.SAME, f"{named}, but an estimate of the whole kernel did not: {_OPEN}"
    return Verdict.BETTER, f"the machine code got better: {', '.join(better)}"


def _percent(whole: StaticEstimate) -> str:
    if whole.ratio < 1 / ALIKE:
        return f"about {100 * (1 - whole.ratio):.0f} % faster"
    return f"as fast, with {100 * (1 - whole.latency):.0f} % less exposed latency" if whole.latency < 1 else "as fast"


# --- by measured time ----------------------------------------------------------------------------


def overridden_by_time(judgements: Sequence[Judgement], times: Sequence[Judgement], arch: str) -> tuple[Judgement, ...]:
    """The judgements of one workload: what got worse on the GPU of ``arch`` (``sm_90``) and is not slower is SAME.

    ``times`` are its own judgement, or those of the callables that launch it.  Machine code for other architectures is
    judged as it is without a GPU: nobody measured it.
    """
    if not times or any(one.verdict not in (Verdict.SAME, Verdict.FASTER) for one in times):
        return tuple(judgements)
    return tuple(_overridden(one, times[0], arch) if one.verdict is Verdict.WORSE else one for one in judgements)


def _overridden(one: Judgement, time: Judgement, arch: str) -> Judgement:
    of_this_gpu = plain(one.target) == plain(arch) if one.kind == "static" else one.target == time.target
    if one.kind not in ("static", "counters") or not of_this_gpu:
        return one
    reason = f"worse, not slower: {one.reason}; its time on {time.target} is {time.verdict.value}"
    return msgspec.structs.replace(one, verdict=Verdict.SAME, reason=reason)
