"""From two versions of a workload to the causes of what became slower, the likeliest gain first."""

from __future__ import annotations

import dataclasses

from pytest_gpuperf.advise.cost import costs, whole
from pytest_gpuperf.advise.finding import Case, Finding
from pytest_gpuperf.advise.reading import scale_of, static_usage
from pytest_gpuperf.advise.rules import RULES
from pytest_gpuperf.advise.side import Side

LEAST_GAIN = 0.01
"""A cause whose remedy would gain less is not named."""


FEW = 0.3
"""Weight of the case that only one block is on each SM, where the grid is not known."""


def gain_of(case, finding, residency):
    def held(usage):
        return usage.replace(warps=None if usage.warps is None else usage.warps * residency)
    total = whole(costs(held(case.now), case.after.arch))
    return 1 - whole(costs(held(finding.without), case.after.arch)) / total


def _few(case):
    r = case.after.static
    if r is None or r.occupancy is None or not r.occupancy.blocks_per_sm: return 1.0
    return 1 / r.occupancy.blocks_per_sm


@dataclasses.dataclass(frozen=True)
class Weighed:
    """A finding and what putting it right would gain: a fraction of the time of ``after``."""

    finding: Finding
    gain: float


def advise(before: Side, after: Side) -> tuple[Weighed, ...]:
    case = static_case(before, after)
    return weigh(case) if case is not None else ()


def static_case(before: Side, after: Side) -> Case | None:
    """Both sides by their machine code, scaled to equal work."""
    runs = [s.static.profile.dry_run if s.static is not None else None for s in (before, after)]
    if runs[0] is None or runs[1] is None:
        return None
    scale = 1.0 if before.same_code(after) else scale_of(runs[0], runs[1])
    was, now = static_usage(before), static_usage(after, scale)
    assert was is not None
    assert now is not None
    return Case(before, after, was, now, counted=False)


def weigh(case: Case) -> tuple[Weighed, ...]:
    """What the rules find, by gain."""
    found = []
    for rule in RULES:
        finding = rule(case)
        if finding is not None:
            gain = (1 - FEW) * gain_of(case, finding, 1.0) + FEW * gain_of(case, finding, _few(case))
            found.append(Weighed(finding, gain))
    return tuple(sorted(found, key=lambda one: -round(one.gain, 2)))
