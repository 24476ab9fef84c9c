"""From paired decisions to a verdict: slower takes two processes."""

from __future__ import annotations

import dataclasses
import math

import msgspec
import numpy as np
import pytest
from judge_samples import EDITED, IDENTITY, KEY, identity, session, time_case

from pytest_gpuperf.judge.block_decision import Paired, judge_blocks
from pytest_gpuperf.judge.block_scores import process_of
from pytest_gpuperf.judge.paired_verdict import judge_pairs, unconfirmed
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.time_case import TimeStep
from pytest_gpuperf.model.verdict import UNDECIDED, Verdict

POLICY = Policy(alpha=1e-3)
CALLABLE = identity(code="")
BASE = [[100.0, 100.1]] * 5
CASE = time_case(BASE, [100.0, 100.1] * 2, new=EDITED)


def pairs(r: float, count: int = 40, policy: Policy = POLICY) -> Paired:
    return judge_blocks([r] * count, policy, stopped=True)


def confirming(r: float, count: int = 40) -> Paired:
    return pairs(r, count, POLICY.confirming())


def judged(first: Paired, second: Paired | None = None) -> TimeStep:
    return judge_pairs(CASE, POLICY, first, second)


@pytest.mark.parametrize("r", [0.02, 0.0075])
def test_slower_in_one_process_asks_for_a_second(r: float) -> None:
    step = judged(pairs(r))
    assert step.judgement.verdict is Verdict.SLOWER
    assert step.confirmation_wanted


def test_slower_in_two_processes_is_slower_with_all_its_figures() -> None:
    step = judged(pairs(0.02), confirming(0.02))
    assert step.judgement.verdict is Verdict.SLOWER
    assert not step.confirmation_wanted
    assert "in two processes" in step.judgement.reason
    figures = step.judgement.time
    assert figures is not None
    assert (figures.method, figures.blocks, figures.confirm_blocks) == ("paired", 13, 9)
    assert figures.ratio == pytest.approx(math.exp(0.02))
    assert figures.interval == pytest.approx((math.exp(0.02), math.exp(0.02)))
    assert figures.log_e is not None
    assert figures.log_e_needed == pytest.approx(math.log(1000))
    assert figures.log_e >= figures.log_e_needed


@pytest.mark.parametrize(
    ("second", "verdict", "words"),
    [
        (confirming(0.0), Verdict.INCONCLUSIVE, "not in a second"),
        (confirming(0.0, 5), Verdict.INCONCLUSIVE, "undecided in a second after 5 blocks"),
        (confirming(0.02, 5), Verdict.SUSPECT, "undecided in a second after 5 blocks"),
        (confirming(0.02, 0), Verdict.SUSPECT, "undecided in a second after 0 blocks"),
    ],
)
def test_what_a_second_process_does_not_confirm(second: Paired, verdict: Verdict, words: str) -> None:
    """Inconclusive where it says otherwise; a suspect where it leans to slower too, or has nothing to say."""
    step = judged(pairs(0.02), second)
    assert step.judgement.verdict is verdict
    assert words in step.judgement.reason


def test_what_lies_between_the_tolerances_in_both_processes_is_not_laid_to_its_place() -> None:
    """Both are true of it: slower by more than *delta*, which one process proves, and by less than *epsilon*."""
    passed = judge_blocks([0.004] + [0.0075] * 20, POLICY.confirming())
    assert passed.decision is Decision.SAME
    reason = judged(pairs(0.0075), passed).judgement.reason
    assert reason.startswith(
        "proven to be more than 0.5 % slower in one process and less than 1 % in a second: it lies between the two;"
    )
    assert "where it is placed decides" in judged(pairs(0.02), passed).judgement.reason


@pytest.mark.parametrize(
    ("ratio", "words"), [(1.5, "where it is placed"), (1.75, "lies between the two"), (2.0, "where it is placed")]
)
def test_at_the_tolerances_themselves_it_does_not_lie_between_them(ratio: float, words: str) -> None:
    policy = Policy(delta=0.5, epsilon=1.0)
    first, second = (dataclasses.replace(one, ratio=ratio) for one in (pairs(0.02), confirming(0.0)))
    assert words in judge_pairs(CASE, policy, first, second).judgement.reason


@pytest.mark.parametrize(
    ("gain", "apart", "verdict"),
    [
        (0.013, 0.013, Verdict.NOT_SLOWER),  # as of a library's product, whose time depends on the power it draws
        (0.013, 0.0006, Verdict.FASTER),
        (0.25, 0.013, Verdict.FASTER),
        (0.0, 0.013, Verdict.SAME),
    ],
)
def test_a_callable_is_faster_by_more_than_its_processes_are_apart(gain: float, apart: float, verdict: Verdict) -> None:
    recorded = [[100.0 * math.exp(one * apart)] for one in (-1.0, 1.0, 0.0, -1.2, 1.2)]
    case = time_case(recorded, [100.0] * 4, new=CALLABLE)
    judgement = judge_pairs(case, POLICY, pairs(-gain)).judgement
    assert judgement.verdict is verdict
    told = "but not by more than two that run the same may be apart"
    assert (told in judgement.reason) is (verdict is Verdict.NOT_SLOWER)


def test_a_faster_callable_of_another_revision_has_no_processes_on_record() -> None:
    case = time_case([[100.0]], [100.0] * 4, new=CALLABLE, of_revision=True)
    assert judge_pairs(case, POLICY, pairs(-0.013)).judgement.verdict is Verdict.FASTER


@pytest.mark.parametrize(
    ("first", "verdict", "reason"),
    [
        (pairs(-0.02), Verdict.FASTER, "proven to be more than 0.5 % faster"),
        (pairs(0.0), Verdict.SAME, "proven to be less than 1 % slower or faster"),
        (judge_blocks([-0.012, 0.0] * 20, POLICY), Verdict.NOT_SLOWER, "proven to be less than 1 % slower"),
        (pairs(0.0, 5), Verdict.INCONCLUSIVE, f"{UNDECIDED} after 5 blocks"),
        (pairs(0.0, 1), Verdict.INCONCLUSIVE, f"{UNDECIDED} after 1 block"),
        (judge_blocks([], POLICY, stopped=True), Verdict.INCONCLUSIVE, f"{UNDECIDED} after 0 blocks"),
    ],
)
def test_other_decisions_need_no_second_process(first: Paired, verdict: Verdict, reason: str) -> None:
    step = judged(first)
    assert step.judgement.verdict is verdict
    assert not step.confirmation_wanted
    assert step.judgement.reason == f"{reason}; the source and its machine code changed"


def test_slower_than_the_record_and_not_when_paired_is_the_environment() -> None:
    not_slower = judge_blocks([-0.012, 0.0] * 20, POLICY)
    found = judge_pairs(time_case(BASE, [110.0] * 4, new=EDITED), POLICY, not_slower).judgement
    assert (not_slower.decision, found.verdict) == (Decision.NOT_SLOWER, Verdict.ENV_SHIFT)


def test_slower_than_the_record_and_equal_when_paired_is_the_environment() -> None:
    step = judge_pairs(time_case(BASE, [110.0] * 4, new=EDITED), POLICY, pairs(0.001))
    assert step.judgement.verdict is Verdict.ENV_SHIFT
    assert step.judgement.reason.startswith("+9.9 % against the record and proven to be less than 1 % slower")
    figures = step.judgement.time
    assert figures is not None
    assert figures.record_ratio == pytest.approx(1.0995, abs=1e-4)
    assert figures.after_ns == pytest.approx(110.0)
    assert figures.before_ns == pytest.approx(110.0 / math.exp(0.001))  # as it runs today, not as recorded


@pytest.mark.parametrize(("r", "verdict"), [(0.02, Verdict.SLOWER), (-0.02, Verdict.FASTER)])
def test_a_machine_that_became_slower_too_hides_nothing_that_the_pairs_prove(r: float, verdict: Verdict) -> None:
    step = judge_pairs(time_case(BASE, [150.0] * 4, new=EDITED), POLICY, pairs(r), confirming(r))
    assert step.judgement.verdict is verdict


def test_slower_than_another_gpu_s_record_is_not_worth_a_word_below_what_gpus_differ_by() -> None:
    case = time_case(BASE, [103.0] * 4, new=EDITED, now=session("new", uuid="GPU-2"))
    step = judge_pairs(case, POLICY, pairs(0.0))
    assert step.judgement.verdict is Verdict.SAME
    assert "the baseline was recorded on another GPU of this model" in step.judgement.notes


def test_what_the_pairs_explain_is_no_shift_of_the_environment() -> None:
    loose = Policy(delta=0.02, epsilon=0.05, alpha=1e-9)
    case = time_case(BASE, [104.7] * 4, new=EDITED)
    assert judge_pairs(case, loose, pairs(0.0, policy=loose)).judgement.verdict is Verdict.ENV_SHIFT
    assert judge_pairs(case, loose, pairs(0.045, 30, loose)).judgement.verdict is Verdict.SAME


def test_a_suspect_without_a_second_process_is_inconclusive_and_says_why() -> None:
    judgement = unconfirmed(judged(pairs(0.02)).judgement, "the second process failed")
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.reason.startswith("suspected slower, not confirmed: the second process failed; proven to be more")


def test_seeds_and_notes_travel_with_the_verdict() -> None:
    judgement = judge_pairs(CASE, POLICY, pairs(0.0), seeds=(7, 8), notes=("1 of 20 blocks were discarded",)).judgement
    assert judgement.time is not None
    assert judgement.time.seeds == (7, 8)
    assert judgement.notes == ("1 of 20 blocks were discarded",)


def test_the_cause_and_the_disturbances_travel_with_the_verdict() -> None:
    case = time_case(BASE, [100.0] * 4, new=EDITED, disturbances=("the GPU was throttled",))
    step = judge_pairs(case, POLICY, pairs(0.02), confirming(0.02))
    assert step.judgement.reason.endswith("the source and its machine code changed")
    assert step.judgement.notes == ("the GPU was throttled",)


def test_without_a_block_there_is_no_ratio() -> None:
    figures = judged(judge_blocks([], POLICY, stopped=True)).judgement.time
    assert figures is not None
    assert figures.ratio is None


def test_without_a_baseline_nothing_can_be_paired() -> None:
    with pytest.raises(ValueError, match="no baseline"):
        judge_pairs(time_case(BASE, [1.0], new=IDENTITY, baseline=None), POLICY, pairs(0.0))


def test_pairs_under_another_timer_are_not_held_against_the_record() -> None:
    step = judge_pairs(time_case(BASE, [150.0] * 4, new=EDITED, timer="graph"), POLICY, pairs(0.0))
    assert step.judgement.verdict is Verdict.SAME
    assert step.judgement.time is not None
    assert step.judgement.time.record_ratio is None
    assert "the timer changed from cupti to graph" in step.judgement.notes[0]


def test_a_judgement_says_whose_it_is_and_by_which_tolerance() -> None:
    judgement = judged(pairs(0.0)).judgement
    assert (judgement.key, judgement.target, judgement.kind) == (KEY, "nvidia-h200", "time")
    figures = judgement.time
    assert figures is not None
    assert (figures.tolerance, figures.level, figures.confirm_blocks) == (0.005, 0.95, 0)


def test_how_the_blocks_were_taken_is_told() -> None:
    short, sustained = (
        judge_pairs(CASE, POLICY, pairs(0.0), **slot).judgement.time for slot in ({}, {"pair_slot": "sustained"})
    )
    assert short is not None
    assert sustained is not None
    assert (short.pair_slot, sustained.pair_slot) == ("short", "sustained")


def test_pairs_without_rounds_have_a_ratio_and_no_times() -> None:
    figures = judge_pairs(time_case(BASE, [], new=EDITED, rounds=()), POLICY, pairs(0.0)).judgement.time
    assert figures is not None
    assert (figures.before_ns, figures.after_ns, figures.record_ratio) == (None, None, None)
    assert figures.ratio == 1.0


def test_who_draws_the_blocks_is_told_each_ratio_and_e_value() -> None:
    values = [[0.02] * 12 + [0.0] * 4, [0.0] * 16, [0.01] * 16]
    first = judge_blocks(values, POLICY, stopped=True)
    figures = judged(first).judgement.time
    assert figures is not None
    assert figures.block_ratios == (1.0202, 1.0, 1.01005)
    expected = process_of(16).log_e_many(np.array([12, 12, 28]), np.array([1, 2, 3]))
    assert figures.log_e_path == tuple(float(f"{one:.4g}") for one in expected)
    without = judged(judge_blocks([], POLICY, stopped=True)).judgement.time
    assert without is not None
    assert (without.block_ratios, without.log_e_path) == ((), ())


def test_a_baseline_with_arguments_of_its_own_says_so() -> None:
    other = msgspec.structs.replace(EDITED, arguments=("float32[2048] align=512", "int32=7"))
    reason = judge_pairs(time_case(BASE, [100.0] * 4, new=other), POLICY, pairs(0.0)).judgement.reason
    assert reason == (
        "proven to be less than 1 % slower or faster; the source and its machine code changed; argument 1 was "
        "float32[1024] align=512 and is float32[2048] align=512; the baseline ran with its own"
    )
    renamed = msgspec.structs.replace(other, code=IDENTITY.code, source=IDENTITY.source)
    reason = judge_pairs(time_case(BASE, [100.0] * 4, new=renamed), POLICY, pairs(0.0)).judgement.reason
    assert "; the machine code is that of the baseline; argument 1 was " in reason


@pytest.mark.parametrize(("log_e", "verdict"), [(0.5, Verdict.SUSPECT), (-0.5, Verdict.INCONCLUSIVE)])
def test_the_least_evidence_of_a_second_process_is_what_it_leans_to(log_e: float, verdict: Verdict) -> None:
    second = confirming(0.02, 5)
    leaning = dataclasses.replace(second.evidence, log_e_slower=log_e)
    found = judged(pairs(0.02), dataclasses.replace(second, evidence=leaning)).judgement
    assert found.verdict is verdict


def test_where_the_place_decides_is_told_in_a_sentence() -> None:
    reason = judged(pairs(0.02), confirming(0.0)).judgement.reason
    assert reason.startswith("proven to be more than 0.5 % slower in one process and not in a second: where it is ")
