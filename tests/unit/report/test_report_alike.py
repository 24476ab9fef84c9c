"""One reason that keeps many workloads from being compared is said once."""

from __future__ import annotations

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.report.remarks import A_LINE_EACH, obstacle_of, shared_obstacles

WHY = "the timer changed"


def judged(
    test: str, reason: str = WHY, *, verdict: Verdict = Verdict.NOT_COMPARABLE, kind: EvidenceKind = "time"
) -> Judgement:
    key = Key(module="suite/test_a.py", test=test, workload="copy")
    return Judgement(key=key, target="nvidia-h200", kind=kind, verdict=verdict, reason=reason)


def many(number: int = A_LINE_EACH + 1) -> list[Judgement]:
    return [judged(f"test_{n}") for n in range(number)]


def test_a_shared_reason_has_one_line_that_counts_its_workloads() -> None:
    found = shared_obstacles(many())
    assert list(found.values()) == ["4 workloads NOT-COMPARABLE on nvidia-h200 (time): the timer changed"]
    assert all(obstacle_of(judgement) in found for judgement in many())


def test_a_few_workloads_keep_lines_of_their_own() -> None:
    assert shared_obstacles(many(A_LINE_EACH)) == {}


def test_other_reasons_other_evidence_and_other_verdicts_are_not_put_together() -> None:
    few = many(A_LINE_EACH)
    others = [
        judged("x", "the cache state changed"),
        judged("x", kind="static"),
        judged("x", verdict=Verdict.INCONCLUSIVE),
    ]
    assert shared_obstacles([*few, *others]) == {}
    assert obstacle_of(others[-1]) is None
