"""What is slower without a change of its code is excused by evidence alone, and no machine makes a callable SLOWER."""

from __future__ import annotations

import numpy as np
import pytest
from judge_samples import IDENTITY, identity, noisy, session, time_case

from pytest_gpuperf.judge.error_budget import Spending
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.time_verdict import judge_time
from pytest_gpuperf.model.verdict import Judgement, Verdict

BASE = [[100.0, 100.1], [99.9, 100.0], [100.1, 100.2], [100.0, 99.9], [100.0, 100.1]]
CALLABLE = identity(code="")
THEN = {"copy": 16_000.0, "fma": 300_000.0}
AT_REST = {"copy": 16_030.0, "fma": 300_100.0}


def judged(
    times: float, *, new=IDENTITY, canaries=AT_REST, machine=None, policy: Policy | None = None, **changes
) -> Judgement:
    """``times``: the candidate over the record; ``canaries``: those of today, None for none on record."""
    old = session(canaries=THEN if canaries is not None else {})
    now = session("new", canaries=canaries or {}, **(machine or {}))
    case = time_case(BASE, [100.0 * times] * 4, new=new, sessions={"old": old}, now=now, **changes)
    return judge_time(case, policy or Policy()).judgement


# --- code that did not change --------------------------------------------------------------------


def test_half_as_slow_again_with_canaries_at_rest_is_unexplained() -> None:
    found = judged(1.5)
    assert found.verdict is Verdict.UNEXPLAINED
    assert "it takes +50.0 % time: nothing says that the machine did it (canary kernels: copy +0.2 %, fma +0.0 %)" in (
        found.reason
    )
    assert "__constant__ memory" in found.reason


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ({"canaries": {"copy": 16_000.0, "fma": 360_000.0}}, "canary kernels moved, too: fma +20.0 %"),
        ({"machine": {"driver": "590.2"}}, "driver 580.1 -> 590.2"),
        ({"machine": {"power_limit_w": 500}}, "power limit 700 W -> 500 W"),
        ({"machine": {"uuid": "GPU-2"}}, "another GPU of the same model"),
        ({"canaries": None}, "there are no canary kernels on record that could tell"),
        ({"unchanged_shifts": (0.4, 0.4, 0.4, 0.0, 0.0)}, "5 other unchanged workloads moved by +49.2 %, median"),
        ({"disturbances": ("the GPU was throttled",)}, "its rounds were disturbed"),
        ({"disturbances": ("times drifted",), "disturbed_by": 0.15}, "its rounds were disturbed"),
    ],
)
def test_evidence_excuses_it_and_is_named(evidence, words: str) -> None:
    found = judged(1.5, **evidence)
    assert found.verdict is Verdict.ENV_SHIFT
    assert words in found.reason


@pytest.mark.parametrize(
    "weak",
    [
        {"canaries": {"copy": 16_000.0, "fma": 306_000.0}},  # 2 % explain no 50
        {"canaries": {"copy": 16_000.0, "fma": 200_000.0}},  # a canary that became faster explains nothing
        {"unchanged_shifts": (0.4, 0.4, 0.4, 0.4)},  # four are not enough to be most
        {"unchanged_shifts": (0.4, 0.4, 0.0, 0.0, 0.0)},
        {"unchanged_shifts": (0.02,) * 9},
        {"disturbances": ("times drifted",), "disturbed_by": 0.004},
        {"unchanged_shifts": (-0.4,) * 9},
    ],
)
def test_weak_evidence_excuses_nothing(weak) -> None:
    assert judged(1.5, **weak).verdict is Verdict.UNEXPLAINED


@pytest.mark.parametrize(("times", "verdict"), [(1.03, Verdict.ENV_SHIFT), (1.06, Verdict.UNEXPLAINED)])
def test_what_canaries_at_rest_leave_open_is_no_alarm(times: float, verdict: Verdict) -> None:
    found = judged(times)
    assert found.verdict is verdict
    assert ("leave up to 3.0% open" in found.reason) == (verdict is Verdict.ENV_SHIFT)


def test_the_alarm_is_raised_at_the_workload_s_own_share_and_above_its_own_tolerance() -> None:
    assert judged(1.05).verdict is Verdict.UNEXPLAINED
    assert judged(1.05, policy=Policy(alpha=1e-12)).verdict is Verdict.ENV_SHIFT
    assert judged(1.1, policy=Policy(delta=0.2, epsilon=0.4)).verdict is Verdict.UNCHANGED


def test_suites_on_a_machine_at_rest_are_never_unexplained() -> None:
    """Twenty runs of 200 workloads whose recordings differ by more than any that was measured on one GPU (0.26 %)."""
    coins = np.random.default_rng(16)
    now = session("new", canaries=AT_REST)
    for _ in range(20):
        for index in range(1, 201):
            record = noisy(coins, 5, 4, between=0.003, within=0.002)
            (today,) = noisy(coins, 1, 4, between=0.005, within=0.002)
            case = time_case(record, today, new=IDENTITY, sessions={"old": session(canaries=THEN)}, now=now)
            found = judge_time(case, Policy(alpha=Spending().share(index))).judgement
            assert found.verdict is not Verdict.UNEXPLAINED


# --- unpaired rounds on a machine that changed ---------------------------------------------------


def test_a_callable_on_the_machine_of_its_record_is_slower() -> None:
    assert judged(1.06, new=CALLABLE).verdict is Verdict.SLOWER


@pytest.mark.parametrize("machine", [{"driver": "590.2"}, {"power_limit_w": 500}, {"ecc": True}])
def test_on_another_machine_a_callable_is_never_slower(machine) -> None:
    old = session(canaries=THEN, ecc=False)
    for canaries, verdict in (
        ({}, Verdict.ENV_SHIFT),
        (AT_REST, Verdict.INCONCLUSIVE),
        ({"copy": 17_000.0, "fma": 318_000.0}, Verdict.ENV_SHIFT),
    ):
        now = session("new", canaries=canaries, **{"ecc": False, **machine})
        sessions = {"old": old if canaries else session(ecc=False)}
        case = time_case(BASE, [106.0] * 4, new=CALLABLE, sessions=sessions, now=now)
        found = judge_time(case, Policy()).judgement
        assert found.verdict is verdict, found.reason
        assert "+6.0 % against" in found.reason


def test_a_callable_that_is_slower_as_both_canaries_are_is_the_machine_s_doing() -> None:
    found = judged(1.06, new=CALLABLE, canaries={"copy": 17_000.0, "fma": 318_000.0})
    assert found.verdict is Verdict.ENV_SHIFT
    assert "canary kernels moved, too: copy +6.2 %, fma +6.0 %" in found.reason


def test_a_callable_that_is_slower_by_far_more_than_the_canaries_is_slower() -> None:
    assert judged(1.6, new=CALLABLE, canaries={"copy": 16_320.0, "fma": 306_000.0}).verdict is Verdict.SLOWER


def test_a_clock_that_a_callable_lowers_itself_is_no_excuse() -> None:
    clocks = {"old_clock": 1980, "new_clock": 1860}
    found = judged(1.06, new=CALLABLE, **clocks)
    assert found.verdict is Verdict.SLOWER
    assert "the clock is lower by its own doing: canaries rest" in found.reason
    moved = judged(1.06, new=CALLABLE, canaries={"copy": 16_000.0, "fma": 315_000.0}, **clocks)
    assert moved.verdict is Verdict.ENV_SHIFT
    unknown = judged(1.06, new=CALLABLE, canaries=None, **clocks)
    assert unknown.verdict is Verdict.INCONCLUSIVE
    assert "no canary kernels on record could tell" in unknown.reason


def test_a_clock_counts_as_the_machines_where_canaries_show_half_of_its_fall() -> None:
    """Of a fall by 6 %, in time and not in cycles."""
    clocks = {"old_clock": 1980, "new_clock": 1860}
    for slowdown, verdict in ((1.02, Verdict.SLOWER), (1.04, Verdict.ENV_SHIFT)):
        found = judged(1.06, new=CALLABLE, canaries={"copy": 16_000.0, "fma": 300_000.0 * slowdown}, **clocks)
        assert found.verdict is verdict
    rest = judged(1.06, new=CALLABLE, **clocks).reason
    assert "its cycles are within the tolerance, and the clock is lower by its own doing: canaries rest" in rest


def test_what_another_machine_explains_is_told_with_its_causes() -> None:
    moved = {"copy": 17_000.0, "fma": 318_000.0}
    found = judged(1.06, new=CALLABLE, canaries=moved, machine={"driver": "590.2"})
    assert (found.verdict, "driver 580.1 -> 590.2" in found.reason) == (Verdict.ENV_SHIFT, True)
    at_rest = judged(1.06, new=CALLABLE, machine={"driver": "590.2"})
    assert "(driver 580.1 -> 590.2), and canary kernels do not explain it: " in at_rest.reason


def test_the_fall_of_a_clock_is_what_time_and_cycles_differ_by() -> None:
    """A clock lower by 10 % and cycles fewer by 5 %: canaries that are 4.5 % slower show less than half of that."""
    clocks = {"old_clock": 1980, "new_clock": 1780}
    found = judged(1.06, new=CALLABLE, canaries={"copy": 16_000.0, "fma": 313_500.0}, **clocks)
    assert found.verdict is Verdict.SLOWER
    assert found.reason.startswith(
        "proven to be more than 2 % slower; its cycles are within the tolerance, and the clock is lower by its own "
        "doing: canaries rest; "
    )
    shown = judged(1.06, new=CALLABLE, canaries={"copy": 16_000.0, "fma": 318_000.0}, **clocks)
    assert shown.verdict is Verdict.ENV_SHIFT
