"""From two versions of a workload to the causes of what became slower, the likeliest gain first."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence

import msgspec

from pytest_gpuperf.advise import causes
from pytest_gpuperf.advise.cost import changed, costs, measured, whole
from pytest_gpuperf.advise.rule_case import Case, Finding
from pytest_gpuperf.advise.rules import RULES
from pytest_gpuperf.advise.side import Side
from pytest_gpuperf.advise.usage import Usage
from pytest_gpuperf.advise.usage_from_code import comparable_estimates, scale_of, static_usage
from pytest_gpuperf.advise.usage_from_counters import alike, busy_parts, complete, counted_usage, same_traffic
from pytest_gpuperf.device.facts import nominal_facts
from pytest_gpuperf.judge.static_weight import StaticEstimate, gains
from pytest_gpuperf.model.advice import Advice

LEAST_GAIN = 0.002
"""A cause whose remedy would gain less is not named."""
COUNTED_LEAST_GAIN = 0.005
"""The same where it was counted."""
ALIKE_GAIN = 0.02
"""Gains that differ by less are as good as equal: busy times and stalls vary by as much from run to run."""
BY_THE_WAY = 0.5
"""Of the largest cause's gain: an occupancy that costs less was lost by the way, and does not stand first."""
OUTWEIGHED = 0.2
"""Of its time: a version that seems faster by more, as a whole, is taken for faster.  A rough estimate: a loop over
float4 that became one over float seems faster by 13 % on sm_90."""
FEW = 0.3
"""Weight of the case that every SM holds a single block, as at a grid's start and end: what fits is not always there
(GTC23 "Occupancy": 14.5 of 16 warps were)."""

OTHER_SMS = 2.0
"""Ratio of launches that no number of SMs makes out: from 108 (A100) to 170 (RTX 5090) is a factor of 1.6."""


def advise(before: Side, after: Side, red: Collection[str] = ()) -> tuple[Advice, ...]:
    """Causes of what ``after`` is slower by: of what gates first, then the likeliest gain.  Empty if nothing differs.

    Counters speak where both sides have enough of them, the machine code otherwise.  Times bound the gain.  ``red`` are
    the figures that the gate found worse.
    """
    case = case_of(before, after)
    if case is None or _alike(case):
        return ()
    gain = _counted_gain(case) if case.counted else _static_gain(case)
    findings = [_gating(finding, red) for rule in RULES if (finding := rule(case)) is not None]
    found = [(gain(finding.without), finding) for finding in findings]
    least = COUNTED_LEAST_GAIN if case.counted else LEAST_GAIN
    lost = _lost(before, after)
    named = [(gained, finding) for gained, finding in _ranked(found) if gained >= least or finding.gates]
    outweighed = not case.counted and (gain(case.was) < -OUTWEIGHED or _traded(case))
    return tuple(_advice(case, finding, min(gained, lost), outweighed) for gained, finding in named)


def _gating(finding: Finding, red: Collection[str]) -> Finding:
    """A finding whose figure is red gates, too: what the verdict names comes first."""
    return dataclasses.replace(finding, gates=finding.gates or finding.evidence[0].what in red)


def _traded(case: Case) -> bool:
    """Whether occupancy was traded, and the whole is estimated to gain: no hint contradicts what the gate says."""
    estimate = weigh(case.before, case.after)
    return case.was.limit != case.now.limit and estimate is not None and gains(estimate)


def weigh(before: Side, after: Side) -> StaticEstimate | None:
    """What the machine code alone makes of ``after`` against ``before``, for equal work.

    None without an estimate of both: instructions that are counted once each tell of no time.
    """
    case = static_case(before, after)
    if case is None or before.estimate is None or after.estimate is None:
        return None
    was, now = costs(case.was, before.arch), costs(case.now, after.arch)
    return StaticEstimate(ratio=whole(now) / whole(was), latency=now["latency"] / was["latency"])


def _ranked(found: Sequence[tuple[float, Finding]]) -> list[tuple[float, Finding]]:
    """What explains a figure that gates before what does not, then the largest gain first."""
    most = max((gained for gained, _ in found), default=0.0)
    first, rest = ([one for one in found if _leads(*one, most) is leads] for leads in (True, False))
    return _by_gain(first) + _exact_first(_by_gain(rest))


def _exact_first(ranked: list[tuple[float, Finding]]) -> list[tuple[float, Finding]]:
    """Waiting that an estimate makes out, behind the conflicts that it may come from: their turns are exact."""
    conflicts = [one for one in ranked if one[1].cause is causes.BANK_CONFLICTS and one[0] >= LEAST_GAIN]
    if not conflicts or ranked[0][1].cause is not causes.LATENCY:
        return ranked
    return conflicts + [one for one in ranked if one not in conflicts]


def _leads(gained: float, finding: Finding, most: float) -> bool:
    """Whether it explains a red verdict; fewer resident warps do not where they cost next to nothing."""
    least = max(LEAST_GAIN, BY_THE_WAY * most)
    return finding.gates and (gained >= least or finding.cause not in (causes.OCCUPANCY, causes.LAUNCH))


def _by_gain(found: Sequence[tuple[float, Finding]]) -> list[tuple[float, Finding]]:
    """Of gains that are as good as equal, the one that the rules name first."""
    left, ranked = list(found), []
    while left:
        most = max(gained for gained, _ in left)
        first = next(one for one in left if one[0] > most - ALIKE_GAIN)
        left.remove(first)
        ranked.append(first)
    return ranked


def _advice(case: Case, finding: Finding, gain: float, outweighed: bool) -> Advice:
    return Advice(
        cause=finding.cause.key, evidence=finding.evidence, gain=round(gain, 3), arch=case.after.arch,
        counted=case.counted, gates=finding.gates, same_code=case.before.same_code(case.after),
        outweighed=outweighed,
    )  # fmt: skip


def case_of(before: Side, after: Side) -> Case | None:
    """By counters if both sides have enough, else by the machine code, else by the counters that there are."""
    if complete(before.counters) and complete(after.counters):
        return counted_case(before, after)
    return static_case(before, after) or counted_case(before, after)


def static_case(before: Side, after: Side) -> Case | None:
    """Both sides by their machine code, scaled to equal work; None if there is none of one."""
    if not _comparable_grids(before, after):
        before, after = (msgspec.structs.replace(side, grid=None) for side in (before, after))
    estimates = comparable_estimates(before, after)
    if estimates is None:
        return None
    old, new = estimates
    scale = 1.0 if before.same_code(after) else scale_of(old, new, _threads_on_record(before, after))
    return Case(before, after, static_usage(before, old), static_usage(after, new, scale), counted=False, scale=scale)


def _threads_on_record(before: Side, after: Side) -> float:
    """Threads of the launch of ``after`` over those of ``before``, as their records have them; 1 if one has none."""
    was, now = (
        math.prod(static.grid) * math.prod(static.block) if static and static.grid and static.block else 0
        for static in (before.static, after.static)
    )
    return now / was if was and now else 1.0


def _comparable_grids(before: Side, after: Side) -> bool:
    """Whether both grids are known, and a difference of them is one of the launches.

    What was not timed may be of another GPU, or of none, and a grid made for its number of SMs is somewhat larger or
    smaller for that.
    """
    threads, now = before.threads, after.threads
    if threads is None or now is None:
        return False
    timed = before.time_ns is not None and after.time_ns is not None
    return timed or threads == now or max(threads, now) >= OTHER_SMS * min(threads, now)


def counted_case(before: Side, after: Side) -> Case | None:
    """Both sides by the counters that both have, scaled to the work that the test declares; None if one has none."""
    both = before.counters.keys() & after.counters.keys()
    before, after = (
        msgspec.structs.replace(side, counters={name: value for name, value in side.counters.items() if name in both})
        for side in (before, after)
    )
    was, now = counted_usage(before), counted_usage(after, _declared_scale(before, after))
    return None if was is None or now is None else Case(before, after, was, now, counted=True)


def _declared_scale(before: Side, after: Side) -> float:
    """By what to multiply figures of ``after`` for equal work: as declared, unless equal threads ask for the same.

    One that moves more and computes less does so for the same work: neither declaration says how much that is.
    """
    if before.threads is not None and before.threads == after.threads and same_traffic(before.counters, after.counters):
        return 1.0
    declared = ((before.bytes, after.bytes), (before.flops, after.flops))
    if {_trend(was, now) for was, now in declared} == {1, -1}:
        return 1.0
    for was, now in declared:
        if was and now:
            return was / now
    return 1.0


def _trend(before: int | None, after: int | None) -> int:
    """1 for more, -1 for less, 0 where that is not known."""
    return 0 if not before or not after else (after > before) - (after < before)


def _alike(case: Case) -> bool:
    """Whether nothing differs that could be a cause: the same code, launched alike, and counted alike if counted."""
    before, after = case.before, case.after
    same = before.launch == after.launch and (before.same_code(after) or before.static is None is after.static)
    return same and (not case.counted or alike(before.counters, after.counters))


def _lost(before: Side, after: Side) -> float:
    """Fraction of the slower time that the faster one did not take; 1 where that is not known."""
    if before.time_ns is None or after.time_ns is None:
        return 1.0
    return max(1 - before.time_ns / (after.time_ns * _declared_scale(before, after)), 0.0)


def _static_gain(case: Case) -> Callable[[Usage], float]:
    """Gain by the machine code: with as many warps as fit, or as the grid has, and with a single block on each SM."""
    few, record, arch, now = 1.0, case.after.static, case.after.arch, case.now
    if record is not None and record.occupancy is not None and now.limit and now.warps:
        few = min(now.limit / max(record.occupancy.blocks_per_sm, 1) / now.warps, 1.0)

    def gain(without: Usage) -> float:
        full, single = (
            1 - whole(costs(_held(without, share), arch)) / whole(costs(_held(case.now, share), arch))
            for share in (1.0, few)
        )
        return (1 - FEW) * full + FEW * single

    return gain


def _held(usage: Usage, share: float) -> Usage:
    return usage.replace(warps=None if usage.warps is None else usage.warps * share)


def _counted_gain(case: Case) -> Callable[[Usage], float]:
    """Gain by how busy each part was."""
    arch = case.after.arch
    sms = case.after.sm_count or nominal_facts(arch).sm_count
    if case.after.grid is not None:
        sms = min(sms, math.prod(case.after.grid))
    parts = measured(case.now, busy_parts(case.after.counters), arch, sms)
    return lambda without: 1 - whole(changed(parts, case.now, without, arch, sms)) / whole(parts)
