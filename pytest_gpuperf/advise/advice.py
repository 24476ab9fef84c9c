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
    total = whole(costs(case.now, case.after.arch))
    found = []
    for rule in RULES:
        finding = rule(case)
        if finding is not None:
            gain = 1 - whole(costs(finding.without, case.after.arch)) / total
            found.append(Weighed(finding, gain))
    return tuple(sorted(found, key=lambda one: -one.gain))
