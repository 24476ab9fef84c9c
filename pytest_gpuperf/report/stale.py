"""What the code has left behind for the better: a baseline that it beats, an expected regression that is gone."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_gpuperf.report.text import numbered
from pytest_gpuperf.session import TestEvidence
from pytest_gpuperf.verdict import Judgement, Verdict

STALE = (
    "the baseline is stale: accept the gain with pytest{ncu} --update-baselines, or a later loss of as much goes unseen"
)
"""``{ncu}`` is the flag that an update needs to take counters too."""


def stale_lines(evidence: Iterable[TestEvidence]) -> list[str]:
    """One line for all workloads that are nothing but better than their record; none if there are none."""
    gains = [
        judgement
        for one in evidence
        for work in one.workloads
        if not any(judgement.verdict.is_regression for judgement in work.judgements)
        for judgement in work.judgements
        if _is_gain(judgement)
    ]
    if not gains:
        return []
    those = numbered(len({judgement.key for judgement in gains}), "workload", "is", "are")
    ncu = " --gpuperf-ncu" if any(judgement.kind == "counters" for judgement in gains) else ""
    return [f"{those} FASTER or BETTER than on record: {STALE.format(ncu=ncu)}"]


def no_longer_expected(evidence: Iterable[TestEvidence]) -> list[str]:
    """One line for each test that runs to its end without the regression that its marker expects."""
    return [
        f"{one.module}::{one.test} is expected to regress ({one.xfail}) and does not: take xfail= off its marker"
        for one in evidence
        if one.xfail and one.status == "complete" and _acquitted(one)
    ]


def _acquitted(test: TestEvidence) -> bool:
    judgements = [judgement for work in test.workloads for judgement in work.judgements]
    return bool(judgements) and all(one.verdict.is_pass or _is_gain(one) for one in judgements)


def _is_gain(judgement: Judgement) -> bool:
    return judgement.verdict in (Verdict.FASTER, Verdict.BETTER)
