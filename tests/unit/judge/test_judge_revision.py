"""A time in a run against another revision, which has no times: what can be said before blocks are paired."""

from __future__ import annotations

import math
from typing import Any

import pytest
from judge_samples import EDITED, IDENTITY, KEY, identity, time_case

from pytest_gpuperf.judge.block_decision import judge_blocks
from pytest_gpuperf.judge.paired_verdict import judge_pairs
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.time_case import TimeStep
from pytest_gpuperf.judge.time_verdict import judge_time
from pytest_gpuperf.model.evidence import Identity
from pytest_gpuperf.model.verdict import UNDECIDED, Verdict

POLICY = Policy(alpha=1e-3)


def judged(new: Identity = EDITED, **changes: Any) -> TimeStep:
    """Today's times would be slower by a tenth than the one round that says about how long the revision takes."""
    return judge_time(time_case([[50e3]], [55e3] * 4, new=new, of_revision=True, **changes), POLICY)


def test_unchanged_work_is_unchanged_whatever_a_round_says() -> None:
    found = judged(IDENTITY)
    assert found.judgement.verdict is Verdict.UNCHANGED
    assert found.judgement.reason == "the machine code and its launch are those of the baseline"
    assert (found.judgement.key, found.pairing_helps, found.confirmation_wanted) == (KEY, False, False)


def test_changed_code_has_to_be_paired() -> None:
    found = judged()
    assert found.judgement.verdict is Verdict.INCONCLUSIVE
    assert found.judgement.reason.startswith(f"{UNDECIDED}; ")
    assert "source" in found.judgement.reason
    assert found.pairing_helps


def test_other_work_is_not_comparable_and_may_be_paired() -> None:
    found = judged(identity(code="bb", arguments=("float32[2048] align=512", "int32=7")))
    assert found.judgement.verdict is Verdict.NOT_COMPARABLE
    argument = "argument 1 was float32[1024] align=512 and is float32[2048] align=512"
    assert found.judgement.reason == f"the workload changed: {argument}"
    assert found.pairing_helps


def test_a_revision_without_the_workload_is_no_reason_to_compare() -> None:
    assert judged(baseline=None).judgement.verdict is Verdict.NEW


@pytest.mark.parametrize("of_revision", [True, False])
def test_what_is_told_of_a_recording_is_of_none_where_there_is_no_recording(of_revision: bool) -> None:
    case = time_case([[50e3]], [50e3] * 4, of_revision=of_revision)
    blocks = judge_blocks([math.log(1.0)] * 60, POLICY, stopped=True)
    found = judge_pairs(case, POLICY, blocks).judgement
    assert bool(found.notes) is not of_revision
    assert found.time is not None
    assert (found.time.record_ratio is None) is of_revision
