"""Many workloads that cannot be compared for one and the same reason, said once: another compiler, another timer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_gpuperf.report.text import numbered
from pytest_gpuperf.verdict import Judgement, Verdict

A_LINE_EACH = 3
"""Judgements; more of one reason share a line."""

Obstacle = tuple[str, str]
"""Kind of evidence, and the reason why it cannot be compared."""


def obstacle_of(judgement: Judgement) -> Obstacle | None:
    """What keeps this judgement from comparing anything; None where it did."""
    return (judgement.kind, judgement.reason) if judgement.verdict is Verdict.NOT_COMPARABLE else None


def shared_obstacles(judgements: Iterable[Judgement]) -> dict[Obstacle, str]:
    """A line for each obstacle that more than a few judgements have in common."""
    alike: dict[Obstacle, list[Judgement]] = {}
    for judgement in judgements:
        obstacle = obstacle_of(judgement)
        if obstacle is not None:
            alike.setdefault(obstacle, []).append(judgement)
    return {obstacle: _line(those) for obstacle, those in alike.items() if len(those) > A_LINE_EACH}


def _line(those: Sequence[Judgement]) -> str:
    workloads = numbered(len({judgement.key for judgement in those}), "workload")
    targets = ", ".join(dict.fromkeys(judgement.target for judgement in those))
    return f"{workloads} NOT-COMPARABLE on {targets} ({those[0].kind}): {those[0].reason}"
