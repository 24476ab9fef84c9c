"""From two versions of a workload to the causes of what became slower, the likeliest gain first.

A rule fires on evidence that differs by more than its threshold; the source of each threshold is given with it.  The
causes are ranked afterwards, by the gain of their remedy.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection

import msgspec

from pytest_gpuperf.advise import compute_rules, memory_rules, waiting_rules
from pytest_gpuperf.advise.comparison import Case, Finding, Side, Usage, grew
from pytest_gpuperf.advise.cost import changed, costs, measured, whole
from pytest_gpuperf.advise.usage_from_code import comparable_estimates, scale_of, static_usage
from pytest_gpuperf.advise.usage_from_counters import alike, busy_parts, complete, counted_usage
from pytest_gpuperf.device.discovery import nominal_facts
from pytest_gpuperf.judge.static_weight import StaticEstimate, gains
from pytest_gpuperf.model.verdict import Advice, Change

RULES: tuple[Callable[[Case], Finding | None], ...] = (
    memory_rules.register_spilling, memory_rules.stack, memory_rules.uncoalesced, memory_rules.bank_conflicts,
    memory_rules.atomics, memory_rules.redundant_traffic, memory_rules.lost_vectorisation, memory_rules.cache_hit_loss,
    compute_rules.lost_tensor_cores, compute_rules.double_precision, compute_rules.division, compute_rules.divergence,
    compute_rules.instruction_growth, waiting_rules.launch_configuration, waiting_rules.occupancy_lost,
    waiting_rules.barrier_stalls, waiting_rules.exposed_latency,
)  # fmt: skip
"""Among equal gains the one further up is named first: the more particular before the more general."""
LEAST_GAIN = 0.002
"""A cause whose remedy would gain less is not named."""
ALIKE_GAIN = 0.02
"""Gains that differ by less are as good as equal: busy times and stalls vary by as much from run to run."""
OUTWEIGHED = 0.2
"""Of its time: a version that seems faster by more, as a whole, is taken for faster.  A rough estimate: a loop over
float4 that became one over float seems faster by 13 % on sm_90."""
FEW = 0.3
"""Weight of the case that every SM holds a single block, as at a grid's start and end: what fits is not always there
(GTC23 "Occupancy": 14.5 of 16 warps were)."""

DECLARED_ALIKE = 0.1
"""Relative difference of two scales that are one: of a stencil's bytes and operations, the rim differs."""


def advise(before: Side, after: Side, red: Collection[str] = ()) -> tuple[Advice, ...]:
    """Causes of what ``after`` is slower by: of what gates first, then the likeliest gain.  Empty if nothing differs.

    Counters speak where both sides have enough of them, the machine code otherwise.  Times bound the gain.  ``red`` are
    the figures that the gate found worse.
    """
    case = case_of(before, after)
    if case is None or _alike(case) or case.now.limit == 0:  # where nothing fits, the verdict names the limit
        return ()
    gain = _counted_gain(case) if case.counted else _static_gain(case)
    found: list[tuple[float, Finding]] = []
    for rule in RULES:
        if (finding := rule(case)) is not None:
            gates = finding.gates or finding.evidence[0].what in red  # what the verdict names comes first
            found.append((gain(finding.without), dataclasses.replace(finding, gates=gates)))
    lost = _lost(before, after)
    outweighed = not case.counted and (gain(case.was) < -OUTWEIGHED or _traded(case))
    return tuple(
        Advice(
            cause=finding.cause, evidence=finding.evidence, gain=round(min(gained, lost), 3), arch=after.arch,
            counted=case.counted, gates=finding.gates, same_code=before.same_code(after), outweighed=outweighed,
        )
        for gained, finding in sorted(found, key=lambda one: (_leads(*one), round(one[0] / ALIKE_GAIN)), reverse=True)
        if gained >= LEAST_GAIN or finding.gates
    )  # fmt: skip


def _traded(case: Case) -> bool:
    """Whether occupancy was traded, and the whole is estimated to gain: no hint contradicts what the gate says."""
    estimate = estimate_change(case.before, case.after)
    return case.was.limit != case.now.limit and estimate is not None and gains(estimate)


PROVEN_GROWTH = 1.9
"""Turns, sectors or accesses for the same bytes: twice as many, short of what a prologue does otherwise."""


def proven_causes(before: Side, after: Side) -> tuple[Change, ...]:
    """Causes that the machine code proves, as changes for the worse: conflicts, lost coalescing and vectorisation.

    Not estimates: every access is known on both sides, under the launch at hand.  Where data decide about one, or sizes
    are examples, nothing is proven.
    """
    case = static_case(before, after)
    estimates = [one for one in (before.estimate, after.estimate) if one is not None and one.launched]
    if case is None or len(estimates) < 2:
        return ()

    def exact(kind: str) -> bool:
        accesses = [[a for a in one.accesses if a.op.startswith(kind)] for one in estimates]
        return all(each and all((a.sectors, a.wavefronts) != (None, None) for a in each) for each in accesses)

    def doubled(figure: Callable[[Usage], float | None]) -> bool:
        return grew(figure(was), figure(now), PROVEN_GROWTH)

    was, now, of_shared, of_global = case.was, case.now, exact("shared"), exact("global")
    found: list[Finding | None] = []
    if of_shared and doubled(lambda usage: usage.shared_wavefronts) and doubled(memory_rules.wavefronts_per_ideal):
        found.append(memory_rules.bank_conflicts(case))
    if of_global and doubled(lambda usage: usage.global_sectors) and doubled(memory_rules.sectors_per_ideal):
        found.append(memory_rules.uncoalesced(case))
    narrowed = grew(now.global_width, was.global_width, PROVEN_GROWTH)
    as_much = (was.global_bytes or 0) >= (now.global_bytes or 0)
    if of_global and narrowed and as_much and doubled(lambda usage: usage.global_requests):
        found.append(memory_rules.lost_vectorisation(case))
    return tuple(finding.evidence[0] for finding in found if finding is not None)


def estimate_change(before: Side, after: Side) -> StaticEstimate | None:
    """What the machine code alone makes of ``after`` against ``before``, for equal work.

    None without an estimate of both: instructions that are counted once each tell of no time.
    """
    case = static_case(before, after)
    if case is None or before.estimate is None or after.estimate is None:
        return None
    was, now = costs(case.was, before.arch), costs(case.now, after.arch)
    return StaticEstimate(ratio=whole(now) / whole(was), latency=now["latency"] / was["latency"])


def _leads(gained: float, finding: Finding) -> bool:
    """Whether it explains a red verdict; fewer resident warps do not where they cost next to nothing."""
    return finding.gates and (gained >= LEAST_GAIN or finding.cause not in ("occupancy lost", "launch configuration"))


def case_of(before: Side, after: Side) -> Case | None:
    """By counters if both sides have enough, else by the machine code, else by the counters that there are."""
    if complete(before.counters) and complete(after.counters):
        return counted_case(before, after)
    return static_case(before, after) or counted_case(before, after)


def static_case(before: Side, after: Side) -> Case | None:
    """Both sides by their machine code, scaled to equal work; None if there is none of one."""
    if before.grid is None or after.grid is None:
        before, after = (msgspec.structs.replace(side, grid=None) for side in (before, after))
    estimates = comparable_estimates(before, after)
    if estimates is None:
        return None
    old, new = estimates
    scale = 1.0 if before.same_code(after) else scale_of(old, new)
    return Case(before, after, static_usage(before, old), static_usage(after, new, scale), counted=False, scale=scale)


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
    """By what to multiply figures of ``after`` for equal work, as it is declared.

    1 where bytes and operations tell two stories: that is the same result by other means, not more or less of it.
    """
    scales = [was / now for was, now in zip(before.declared, after.declared, strict=True) if was and now]
    return scales[0] if scales and math.isclose(min(scales), max(scales), rel_tol=DECLARED_ALIKE) else 1.0


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
    parts = measured(case.now, busy_parts(case.after.counters), arch, sms)
    return lambda without: 1 - whole(changed(parts, case.now, without, arch)) / whole(parts)
