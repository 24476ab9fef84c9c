"""Remarks on tolerances that let more pass than a reader of the run may expect."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.tolerance import PROFILES, Limits
from pytest_gpuperf.model.verdict import TimeFigures, Verdict
from pytest_gpuperf.report.remarks import NAMED


def raised_lines(evidence: Iterable[TestEvidence], revision: str) -> list[str]:
    """One line for workloads whose tolerance is wider than in the ``revision`` that they are compared with."""
    raised = [
        f"{work.key} ({work.tolerance_there * 100:g} % -> {work.tolerance * 100:g} %)"
        for one in evidence
        for work in one.workloads
        if work.tolerance is not None and work.tolerance_there is not None and work.tolerance > work.tolerance_there
    ]
    if not raised:
        return []
    those = numbered(len(raised), "workload", "has", "have")
    return [f"{those} a wider tolerance than in {revision}: {first_of(raised, NAMED, ',')}"]


def lenient_lines(evidence: Iterable[TestEvidence], profile: str) -> list[str]:
    """One line for what is slower than the ``profile`` accepts, and passes by a tolerance of its test or the run."""
    limits = PROFILES[profile]
    those = [
        (judgement.key, judgement.time)
        for one in evidence
        for judgement in one.judgements
        if judgement.verdict is Verdict.SAME and judgement.time is not None
        if _is_lenient(judgement.time, limits)
    ]
    if not those:
        return []
    named = [f"{key} x{one.ratio:.3f} (tolerance {one.tolerance * 100:g} %)" for key, one in those]
    return [
        f"{numbered(len(those), 'workload', 'is', 'are')} slower by more than the {limits.tolerance * 100:g} % of the "
        f"profile {profile}, and passes by a wider tolerance: {first_of(named, NAMED)}"
    ]


def _is_lenient(figures: TimeFigures, usual: Limits) -> bool:
    """Whether the profile's limits would not have let it pass; ``figures`` have its own tolerance."""
    return (
        figures.tolerance > usual.tolerance
        and figures.interval is not None
        and figures.interval[0] > 1 + usual.tolerance
    )
