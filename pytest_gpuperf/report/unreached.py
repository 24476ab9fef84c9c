"""Workloads that have a baseline and that their tests stopped too early for, in words; a line each, if they are few."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_gpuperf.verdict import Judgement

A_LINE_EACH = 5
"""Workloads; more of them share one line."""
NAMED = 3


def unreached_lines(judgements: Iterable[Judgement]) -> list[str]:
    """What there is to say at the end of a run; nothing if every workload was reached."""
    first = {judgement.key: judgement for judgement in reversed(list(judgements))}
    keys = sorted(first)
    if len(keys) <= A_LINE_EACH:
        return [f"{key.node_id}: {key.workload} {first[key].reason}" for key in keys]
    named = ", ".join(f"{key.node_id}: {key.workload}" for key in keys[:NAMED])
    return [
        f"{len(keys)} workloads have a baseline and were not reached: {named}, and {len(keys) - NAMED} more. "
        f"{_why(first[keys[0]])}"
    ]


def _why(judgement: Judgement) -> str:
    why = judgement.reason.partition(": ")[2]
    return why[0].upper() + why[1:]
