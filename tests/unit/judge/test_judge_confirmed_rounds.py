"""What unpaired rounds of one process call slower, after rounds of a second."""

from __future__ import annotations

import pytest
from judge_samples import identity, session, time_case

from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.time_case import TimeCase
from pytest_gpuperf.judge.time_verdict import confirm_rounds, judge_time
from pytest_gpuperf.model.verdict import Judgement, Verdict

BASE = [[100.0, 100.1], [99.9, 100.0], [100.1, 100.2], [100.0, 99.9], [100.0, 100.1]]
POLICY = Policy(alpha=1e-4)
CANARIES = {"copy": 16_000.0, "fma": 300_000.0}
SLOW_MACHINE = session("new", canaries={"copy": 17_000.0, "fma": 330_000.0})


def case(midmean: float, rounds: int = 16, **changes: object) -> TimeCase:
    return time_case(BASE, [midmean] * rounds, **changes)  # type: ignore[arg-type]


def suspected(midmean: float = 110.0) -> Judgement:
    found = judge_time(case(midmean), POLICY).judgement
    assert found.verdict is Verdict.SLOWER
    return found


def test_slower_in_a_second_process_stands_with_the_figures_of_the_first() -> None:
    first = suspected()
    found = confirm_rounds(first, case(108.0), POLICY)
    assert found.verdict is Verdict.SLOWER
    assert found.reason == first.reason.replace("2 % slower; ", "2 % slower, in two processes; ")
    assert found.time == first.time


def test_a_tolerance_beyond_what_rounds_resolve_is_named() -> None:
    policy = Policy(delta=0.04, epsilon=0.08)
    first = judge_time(case(120.0, 4), policy).judgement
    assert "more than 4 % slower, in two processes; " in confirm_rounds(first, case(120.0), policy).reason


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (110.0, case(100.0), "slower in one process and not in a second: it differs from process to process"),
        (110.0, case(90.0), "slower in one process and not in a second: it differs from process to process"),
        (110.0, case(101.0), "slower in one process and not in a second: it differs from process to process"),
        (104.5, case(102.2), "slower in one process and less than 5 % in a second: it lies between the two tolerances"),
        (110.0, case(101.0, 1), "slower in one process, undecided in a second"),
        (
            110.0,
            case(110.0, sessions={"old": session(canaries=CANARIES)}, session=SLOW_MACHINE),
            "slower in one process, and in a second it is the machine's doing",
        ),
    ],
)
def test_what_a_second_process_does_not_see_is_inconclusive(first: float, second: TimeCase, words: str) -> None:
    found = confirm_rounds(suspected(first), second, POLICY)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason.startswith(f"suspected slower, not confirmed: {words}; proven to be more than 2 % slower; ")


@pytest.mark.parametrize("second", [{"midmean": 101.0}, {"midmean": 90.0}])
def test_other_work_that_is_not_slower_in_a_second_process_stays_incomparable(second: dict[str, float]) -> None:
    other = identity(arguments=("int32=8",))
    first = judge_time(case(110.0, new=other), POLICY).judgement
    found = confirm_rounds(first, case(**second, new=other), POLICY)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.reason.startswith("slower in one process, and not proven so in a second; the workload changed: ")


def test_a_second_process_that_leans_to_slower_and_proves_nothing_leaves_a_suspect() -> None:
    found = confirm_rounds(suspected(), case(110.0, 1), POLICY)
    assert found.verdict is Verdict.SUSPECT
    words = "suspected slower, and no second process could say: it took too few rounds to tell; proven to be more than"
    assert found.reason.startswith(words)


def test_disturbed_rounds_confirm_nothing_and_say_what_disturbed_them() -> None:
    found = confirm_rounds(suspected(), case(110.0, disturbances=("the GPU was throttled",)), POLICY)
    assert found.verdict is Verdict.SUSPECT
    assert found.reason.startswith(
        "suspected slower, and no second process could say: its rounds were disturbed, so they prove nothing; "
    )
    assert found.notes[-1] == "the GPU was throttled"


def test_the_second_process_need_not_pay_for_the_suite() -> None:
    assert POLICY.confirming().alpha == 0.01
    strict = Policy(alpha=1e-12)
    assert judge_time(case(105.0), strict).judgement.verdict is not Verdict.SLOWER
    assert confirm_rounds(suspected(), case(105.0), strict).verdict is Verdict.SLOWER


def test_without_a_baseline_there_is_nothing_to_hold_a_second_process_against() -> None:
    with pytest.raises(ValueError, match="there is no baseline"):
        confirm_rounds(suspected(), case(110.0, baseline=None), POLICY)
