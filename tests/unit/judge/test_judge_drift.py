"""The verdict on the drift since the anchor: red beyond twice the tolerance, if more than the tolerance is proven."""

from __future__ import annotations

import math

import msgspec
import pytest
from judge_samples import IDENTITY, time_case

from pytest_gpuperf.judge.block_decision import judge_blocks
from pytest_gpuperf.judge.drift_verdict import (
    drift_by_steps,
    drift_of,
    judge_paired_drift,
    judge_recorded_drift,
)
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.model.evidence import Anchor
from pytest_gpuperf.model.verdict import Judgement, TimeFigures, Verdict

ANCHOR = Anchor(
    identity=IDENTITY, timer="cupti", cache="cold", time_ns=50e3, session="s1", date="2026-11-20T10:00:00Z", steps=2
)
POLICY = Policy(alpha=1e-3)


CASE = time_case([[50e3] * 4], [50.6e3] * 4)


def paired(ratio: float, blocks: int = 40, policy: Policy = POLICY):
    return judge_blocks([math.log(ratio)] * blocks, policy, stopped=True)


def of_pairs(ratio: float, second: float | None = None, blocks: int = 40):
    other = None if second is None else paired(second, policy=POLICY.confirming())
    return judge_paired_drift(CASE, ANCHOR, POLICY, paired(ratio, blocks), other, seeds=(1, 2))


@pytest.mark.parametrize(("ratio", "proven"), [(0.98, False), (1.004, False), (1.006, True), (1.0099, True)])
def test_within_twice_the_tolerance_there_is_a_drift_and_no_verdict(ratio: float, proven: bool) -> None:
    drift, verdict = of_pairs(ratio)
    assert verdict is None
    assert (drift.ratio, drift.proven, drift.exceeds(1)) == (pytest.approx(ratio), proven, proven)
    assert not drift.exceeds(2)


def test_beyond_twice_the_tolerance_it_waits_for_a_second_process() -> None:
    drift, verdict = of_pairs(1.012)
    assert verdict is not None
    assert (verdict.verdict, verdict.against, verdict.kind) == (Verdict.SLOWER, "anchor", "time")
    assert verdict.reason == (
        "1.2 % slower than its anchor of 2026-11-20, by 2 accepted steps and this change; "
        "proven to be more than 0.5 % slower in one process, a second has to confirm it"
    )
    assert drift.exceeds(2)


def test_two_processes_are_red_and_one_against_another_is_not() -> None:
    _, red = of_pairs(1.012, 1.012)
    _, other = of_pairs(1.012, 1.0)
    assert red is not None
    assert other is not None
    assert (red.verdict, red.reason.rpartition("; ")[2]) == (
        Verdict.SLOWER, "proven to be more than 0.5 % slower, in two processes"
    )  # fmt: skip
    assert (other.verdict, other.reason.rpartition(", ")[2]) == (Verdict.INCONCLUSIVE, "and not in a second")


def test_too_few_blocks_prove_no_drift() -> None:
    drift, verdict = of_pairs(1.05, blocks=5)
    assert verdict is None
    assert not drift.proven
    assert of_pairs(1.05, blocks=0)[0].ratio is None


@pytest.mark.parametrize(
    ("ratio", "proven", "red"), [(1.02, True, True), (1.02, False, False), (1.01, True, False), (None, True, False)]
)
def test_a_drift_on_record_is_red_if_it_was_proven(ratio: float | None, proven: bool, red: bool) -> None:
    drift = drift_of(ANCHOR, 0.005, ratio, proven=proven)
    verdict = judge_recorded_drift(CASE, drift, changed=False)
    assert (verdict is not None) is red
    if verdict is not None:
        assert (verdict.verdict, verdict.against) == (Verdict.SLOWER, "anchor")
        assert verdict.reason == (
            "2.0 % slower than its anchor of 2026-11-20, by 2 accepted steps, as was proven when they were accepted"
        )


def step(verdict: Verdict, ratio: float | None) -> Judgement:
    figures = None if ratio is None else TimeFigures(ratio=ratio)
    return Judgement(key=CASE.key, target="nvidia-h200", kind="time", verdict=verdict, time=figures)


def test_what_cannot_be_paired_drifts_by_the_steps_on_record_and_today_s() -> None:

    anchor = msgspec.structs.replace(ANCHOR, ratio=1.05, proven=True)
    today = drift_by_steps(anchor, 0.005, step(Verdict.INCONCLUSIVE, 1.02))
    assert (today.ratio, today.proven) == (pytest.approx(1.071), True)
    assert not drift_by_steps(anchor, 0.005, step(Verdict.FASTER, 0.9)).proven
    unproven = msgspec.structs.replace(anchor, proven=False)
    assert not drift_by_steps(unproven, 0.005, step(Verdict.SLOWER, 1.02)).proven
    assert drift_by_steps(anchor, 0.005, step(Verdict.INCONCLUSIVE, None)).ratio is None
    assert drift_by_steps(ANCHOR, 0.005, step(Verdict.SLOWER, 1.02)).ratio is None


def test_the_figures_of_a_red_drift_are_those_of_its_pairs() -> None:
    first, second = paired(1.012), paired(1.02, policy=POLICY.confirming())
    drift, verdict = judge_paired_drift(
        CASE, ANCHOR, POLICY, first, second, seeds=(1, 2), notes=("quiet",), pair_slot="sustained"
    )
    assert verdict is not None
    assert drift == drift_of(ANCHOR, POLICY.delta, first.ratio, proven=True)
    assert (verdict.key, verdict.target, verdict.notes) == (CASE.key, "nvidia-h200", ("quiet",))
    assert second.blocks > 0
    assert verdict.time == TimeFigures(
        before_ns=pytest.approx(50e3), after_ns=pytest.approx(50.6e3), ratio=first.ratio, interval=first.interval,
        tolerance=0.01, method="paired", pair_slot="sustained", blocks=13, confirm_blocks=second.blocks,
        log_e=first.evidence.log_e_slower,
        log_e_needed=-math.log(1e-3), seeds=(1, 2),
    )  # fmt: skip
    _, waiting = of_pairs(1.012)
    assert waiting is not None
    assert waiting.time is not None
    assert (waiting.time.confirm_blocks, waiting.time.seeds, waiting.time.pair_slot) == (0, (1, 2), "short")
    assert waiting.notes == ()


def test_a_red_drift_without_a_round_of_today_has_no_times() -> None:
    untimed = time_case([[50e3] * 4], [], rounds=())
    _, verdict = judge_paired_drift(untimed, ANCHOR, POLICY, paired(1.012))
    assert verdict is not None
    assert verdict.time is not None
    assert (verdict.time.before_ns, verdict.time.after_ns, verdict.time.seeds) == (None, None, ())


def test_a_drift_of_unchanged_work_is_that_of_its_accepted_steps() -> None:
    by_steps = "1.2 % slower than its anchor of 2026-11-20, by 2 accepted steps"
    for case, words in (
        (time_case([[50e3] * 4], [50.6e3] * 4, new=IDENTITY), f"{by_steps}; "),
        (CASE, f"{by_steps} and this change; "),
        (time_case([[50e3] * 4], [50.6e3] * 4, baseline=None), f"{by_steps} and this change; "),
    ):
        _, verdict = judge_paired_drift(case, ANCHOR, POLICY, paired(1.012))
        assert verdict is not None
        assert verdict.reason.startswith(words)


def test_a_drift_on_record_says_whose_it_is_and_by_how_much() -> None:
    drift = drift_of(ANCHOR, 0.005, 1.02, proven=True)
    assert (drift.date, drift.steps, drift.tolerance, drift.ratio, drift.proven) == (
        "2026-11-20T10:00:00Z", 2, 0.005, 1.02, True
    )  # fmt: skip
    verdict = judge_recorded_drift(CASE, drift, changed=True)
    assert verdict is not None
    assert (verdict.key, verdict.target, verdict.kind) == (CASE.key, "nvidia-h200", "time")
    assert verdict.time == TimeFigures(ratio=1.02, tolerance=0.01, method="identity")
    assert " and this change, as was proven" in verdict.reason
    assert drift_by_steps(ANCHOR, 0.005, step(Verdict.SLOWER, 1.02)).tolerance == 0.005
