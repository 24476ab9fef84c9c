"""From two versions of a workload to the causes of what became slower, the likeliest gain first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_gpuperf.advise.cost import changed, costs, measured, whole
from pytest_gpuperf.advise.counting import busy_parts, counted_usage
from pytest_gpuperf.advise.finding import Case
from pytest_gpuperf.advise.reading import scale_of, static_usage
from pytest_gpuperf.advise.record import Advice
from pytest_gpuperf.advise.rules import RULES
from pytest_gpuperf.advise.side import Side
from pytest_gpuperf.advise.usage import Usage

LEAST_GAIN = 0.002
"""A cause whose remedy would gain less is not named."""
COUNTED_LEAST_GAIN = 0.02
"""The same where it was counted: times and counters vary by a percent or two."""
FEW = 0.3
"""Weight of the case that every SM holds a single block, where the grid is not known."""


def advise(before: Side, after: Side) -> tuple[Advice, ...]:
    """Causes of what ``after`` is slower by, the likeliest gain first.  Empty where nothing differs.

    Counters speak where both sides have them, the machine code otherwise.  Times bound the gain: undoing the change can
    bring back no more than was lost.
    """
    counted = counted_case(before, after)
    case = counted or static_case(before, after)
    if case is None or _alike(case):
        return ()
    gain = _counted_gain(case) if counted else _static_gain(case)
    least = COUNTED_LEAST_GAIN if counted else LEAST_GAIN
    found = [(gain(finding.without), finding) for rule in RULES if (finding := rule(case)) is not None]
    lost = _lost(before, after)
    found.sort(key=lambda one: -round(one[0], 2))
    return tuple(
        Advice(
            cause=finding.cause.key,
            evidence=finding.evidence,
            gain=round(min(gained, lost), 3),
            arch=after.arch,
            counted=case.counted,
        )
        for gained, finding in found
        if gained >= least
    )


def static_case(before: Side, after: Side) -> Case | None:
    """Both sides by their machine code, scaled to equal work; None if one has none that was walked through."""
    runs = [side.static.profile.dry_run if side.static is not None else None for side in (before, after)]
    if runs[0] is None or runs[1] is None:
        return None
    scale = 1.0 if before.same_code(after) else scale_of(runs[0], runs[1])
    was, now = static_usage(before), static_usage(after, scale)
    return None if was is None or now is None else Case(before, after, was, now, counted=False)


def counted_case(before: Side, after: Side) -> Case | None:
    """Both sides by their counters, scaled to the work that the test declares; None if one has none."""
    was, now = counted_usage(before), counted_usage(after, _declared_scale(before, after))
    return None if was is None or now is None else Case(before, after, was, now, counted=True)


def _declared_scale(before: Side, after: Side) -> float:
    for was, now in ((before.flops, after.flops), (before.bytes, after.bytes)):
        if was and now:
            return was / now
    return 1.0


def _alike(case: Case) -> bool:
    """Whether there is nothing that could be a cause: the same code, launched alike, and counted alike if counted."""
    sides = (case.before, case.after)
    same_launch = len({(s.grid, s.block or (s.static.block if s.static else None)) for s in sides}) == 1
    same_shared = len({s.static.dynamic_shared_bytes if s.static else 0 for s in sides}) == 1
    return not case.counted and case.before.same_code(case.after) and same_launch and same_shared


def _lost(before: Side, after: Side) -> float:
    """Fraction of the slower time that the faster one did not take; 1 where that is not known."""
    if before.time_ns is None or after.time_ns is None:
        return 1.0
    scale = _declared_scale(before, after)
    return max(1 - before.time_ns / (after.time_ns * scale), 0.0)


def _static_gain(case: Case) -> Callable[[Usage], float]:
    """Gain by the machine code: with as many warps as fit, and with a single block on each SM."""
    few = 1.0
    record = case.after.static
    if case.after.grid is None and record is not None and record.occupancy is not None:
        few = 1 / max(record.occupancy.blocks_per_sm, 1)

    def gain(without: Usage) -> float:
        arch = case.after.arch
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
    busy: Mapping[str, float] = busy_parts(case.after.counters)
    parts = measured(case.now, busy, arch, case.after.sm_count or 132)
    return lambda without: 1 - whole(changed(parts, case.now, without, arch)) / whole(parts)
