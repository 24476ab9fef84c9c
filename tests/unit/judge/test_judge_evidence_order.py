"""What was measured outranks what was counted and what the machine code says, on the GPU that it was measured on."""

from __future__ import annotations

import pytest
from judge_samples import KEY

from pytest_gpuperf.judge.static_weight import weighed_by_time
from pytest_gpuperf.model.verdict import BESIDE, EvidenceKind, Judgement, Verdict


def one(kind: EvidenceKind, target: str, verdict: Verdict) -> Judgement:
    return Judgement(key=KEY, target=target, kind=kind, verdict=verdict, reason=f"{kind} says so")


WORSE_HERE = one("static", "sm_90", Verdict.WORSE)
WORSE_ELSEWHERE = one("static", "sm_80", Verdict.WORSE)
COUNTED = one("counters", "nvidia-h200", Verdict.WORSE)
EVIDENCE = [WORSE_HERE, one("static", "sm_90a", Verdict.WORSE), WORSE_ELSEWHERE, COUNTED]


@pytest.mark.parametrize("proven", [Verdict.SAME, Verdict.FASTER])
def test_worse_and_proven_not_slower_is_a_note(proven: Verdict) -> None:
    time = one("time", "nvidia-h200", proven)
    here, variant, elsewhere, counted, last = weighed_by_time([*EVIDENCE, time], "sm_90")
    assert [each.verdict for each in (here, variant, counted)] == [Verdict.SAME] * 3
    assert here.reason == f"worse, not slower: static says so; its time on nvidia-h200 is {proven.value}"
    assert (elsewhere, last) == (WORSE_ELSEWHERE, time)


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - {Verdict.SAME, Verdict.FASTER}, key=str))
def test_any_other_verdict_on_time_outranks_nothing(verdict: Verdict) -> None:
    given = (*EVIDENCE, one("time", "nvidia-h200", verdict))
    assert weighed_by_time(given, "sm_90") == given
    assert weighed_by_time(tuple(EVIDENCE), "sm_90") == tuple(EVIDENCE)


@pytest.mark.parametrize("kind", BESIDE)
def test_a_time_that_holds_excuses_no_other_cost(kind: EvidenceKind) -> None:
    given = (one(kind, "nvidia-h200", Verdict.WORSE), one("time", "nvidia-h200", Verdict.SAME))
    assert weighed_by_time(given, "sm_90") == given


def test_counters_of_another_gpu_and_what_is_not_worse_stay() -> None:
    given = (one("counters", "nvidia-a100", Verdict.WORSE), one("static", "sm_90", Verdict.BETTER),
             one("counters", "nvidia-h200", Verdict.NOT_COMPARABLE),
             one("time", "nvidia-h200", Verdict.SAME))  # fmt: skip
    assert weighed_by_time(given, "sm_90") == given
