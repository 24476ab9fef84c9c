"""The way from rounds to a verdict on time."""

from __future__ import annotations

import dataclasses
import math

import pytest
from judge_samples import EDITED, IDENTITY, KEY, identity, rounds, session, time_case

from pytest_gpuperf.judge import unpaired
from pytest_gpuperf.judge.canary_shift import canary_shifts
from pytest_gpuperf.judge.log_times import InvalidTimesError
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.time_case import TimeStep
from pytest_gpuperf.judge.time_verdict import judge_time
from pytest_gpuperf.model.evidence import Identity, Session
from pytest_gpuperf.model.verdict import Verdict

BASE = [[100.0, 100.1], [99.9, 100.0], [100.1, 100.2], [100.0, 99.9], [100.0, 100.1]]
RESTLESS = [[100.0] * 2, [101.0] * 2, [99.0] * 2, [100.8] * 2, [99.2] * 2]
POLICY = Policy()
PROFILED = Policy(omega=0.001, delta=0.01, epsilon=0.02)
"""On a machine with a profile, at a tolerance at which the screen can pass what is equal."""


def judged(*, policy: Policy = POLICY, candidate: list[float] | None = None, **changes: object) -> TimeStep:
    return judge_time(time_case(BASE, [100.0] * 4 if candidate is None else candidate, **changes), policy)  # type: ignore[arg-type]


def test_no_baseline_is_new() -> None:
    step = judged(baseline=None)
    assert step.judgement.verdict is Verdict.NEW
    assert "--update-baselines=new" in step.judgement.reason
    assert step.rounds_wanted == 0


def test_equal_identity_is_unchanged_and_reports_the_shift() -> None:
    step = judged(new=IDENTITY, candidate=[100.3] * 4)
    assert step.judgement.verdict is Verdict.UNCHANGED
    assert "+0.3 %" in step.judgement.reason
    assert step.judgement.time is not None
    assert step.judgement.time.method == "identity"
    assert (step.rounds_wanted, step.pairing_helps) == (0, False)


def test_equal_identity_is_never_slower_but_a_shift_of_the_environment() -> None:
    step = judged(new=IDENTITY, candidate=[103.0] * 4)
    assert step.judgement.verdict is Verdict.ENV_SHIFT
    assert "clocks, temperature" in step.judgement.reason
    assert judged(new=IDENTITY, candidate=[200.0] * 4).judgement.verdict is Verdict.ENV_SHIFT


def test_a_faster_environment_stays_unchanged() -> None:
    assert judged(new=IDENTITY, candidate=[90.0] * 4).judgement.verdict is Verdict.UNCHANGED


def test_an_environment_shift_names_the_driver_and_the_power_limit() -> None:
    step = judged(new=IDENTITY, candidate=[105.0] * 4, now=session("new", driver="590.2", power_limit_w=500))
    assert "driver 580.1 -> 590.2, power limit 700 W -> 500 W" in step.judgement.reason


def with_canaries(now: dict[str, float], **changes: object) -> dict[str, object]:
    """A session on record with canaries of 16 and 300 us, and one of today."""
    old = session(canaries={"copy": 16_000.0, "fma": 300_000.0})
    return {"sessions": {"old": old}, "now": session("new", canaries=now, **changes)}


def test_an_environment_shift_says_which_canaries_moved_too() -> None:
    step = judged(new=IDENTITY, candidate=[103.0] * 4, **with_canaries({"copy": 16_010.0, "fma": 309_000.0}))
    assert step.judgement.reason.endswith("runs on this GPU (canary kernels moved, too: fma +3.0 %)")
    note = "the plugin's own kernels take another time than when the baseline was recorded: fma +3.0 %"
    assert note in step.judgement.notes


@pytest.mark.parametrize("fma", [297_500.0, 300_000.0, 302_500.0])
def test_the_screen_acquits_while_canaries_are_where_they_were(fma: float) -> None:
    step = judged(policy=PROFILED, **with_canaries({"copy": 16_000.0, "fma": fma}))
    assert step.judgement.verdict is Verdict.SAME
    assert not step.pairing_helps


@pytest.mark.parametrize("fma", [294_000.0, 306_000.0])
def test_the_screen_is_not_asked_where_a_canary_moved(fma: float) -> None:
    """A machine that became 2 % faster hides a kernel that became 2 % slower."""
    step = judged(policy=PROFILED, **with_canaries({"copy": 16_000.0, "fma": fma}))
    assert step.pairing_helps


@pytest.mark.parametrize("other", [{"timer": "graph"}, {"toolchain": "nvrtc 13.1.0"}, {"uuid": "GPU-2"}])
def test_canaries_of_another_timer_compiler_or_gpu_are_not_compared(other: dict[str, str]) -> None:
    shifts = canary_shifts([session(canaries={"fma": 300_000.0})], session("new", canaries={"fma": 330_000.0}, **other))
    assert shifts == {}


def test_of_several_sessions_the_one_counts_that_a_canary_moved_the_most_from() -> None:
    known = [session(name, canaries={"fma": time}) for name, time in (("a", 300.0), ("b", 310.0), ("c", 299.0))]
    assert canary_shifts(known, session("new", canaries={"fma": 300.0, "copy": 1.0})) == {
        "fma": pytest.approx(math.log(300 / 310))
    }


def test_equal_identity_needs_no_round() -> None:
    step = judged(new=IDENTITY, candidate=[], rounds=())
    assert step.judgement.verdict is Verdict.UNCHANGED
    assert step.judgement.reason.endswith("not timed")


def test_changed_code_without_a_round_asks_for_rounds() -> None:
    step = judged(rounds=())
    assert step.judgement.verdict is Verdict.INCONCLUSIVE
    assert step.rounds_wanted == 2


def test_other_work_is_not_comparable_but_its_times_are_shown() -> None:
    step = judged(new=identity(arguments=("int32=8",)), candidate=[101.0] * 4)
    assert step.judgement.verdict is Verdict.NOT_COMPARABLE
    assert step.judgement.notes == ("not compared: 0.1 us in the record, 0.101 us now",)
    assert judged(timer="graph", rounds=()).judgement.notes == ()


def test_other_work_that_is_proven_slower_than_the_record_is_no_silent_pass() -> None:
    other = identity(arguments=("int32=8",))
    found = judged(new=other, candidate=[160.0] * 4).judgement
    assert found.verdict is Verdict.SLOWER
    assert "the workload changed: 2 arguments became 1" in found.reason
    assert judged(new=other, candidate=[60.0] * 4).judgement.verdict is Verdict.NOT_COMPARABLE
    assert judged(new=other, candidate=[160.0] * 4, timer="graph").judgement.verdict is Verdict.NOT_COMPARABLE


def test_with_a_machine_profile_the_screen_passes_what_is_equal() -> None:
    step = judged(policy=PROFILED)
    assert step.judgement.verdict is Verdict.SAME
    assert step.judgement.time is not None
    assert step.judgement.time.method == "screen"
    assert step.judgement.time.tolerance == 0.02


def test_what_the_screen_finds_slightly_faster_is_not_slower() -> None:
    assert judged(policy=PROFILED, candidate=[99.0] * 4).judgement.verdict is Verdict.NOT_SLOWER


def test_without_a_profile_it_takes_unpaired_rounds_and_says_how_coarse_they_are() -> None:
    step = judged()
    assert step.judgement.verdict is Verdict.NOT_SLOWER
    assert "unpaired rounds resolve about 5 %" in step.judgement.reason
    assert step.judgement.time is not None
    assert (step.judgement.time.method, step.judgement.time.tolerance) == ("unpaired", 0.02)
    assert step.pairing_helps


@pytest.mark.parametrize("policy", [POLICY, PROFILED])
def test_ten_percent_slower_is_slower(policy: Policy) -> None:
    step = judged(policy=policy, candidate=[110.0, 110.1])
    assert step.judgement.verdict is Verdict.SLOWER
    figures = step.judgement.time
    assert figures is not None
    assert figures.ratio == pytest.approx(1.1, abs=0.002)
    assert figures.before_ns == pytest.approx(100.03, abs=0.05)
    assert figures.after_ns == pytest.approx(110.05, abs=0.05)
    assert figures.interval is not None
    assert 1.08 < figures.interval[0] < 1.1 < figures.interval[1] < 1.12


@pytest.mark.parametrize("policy", [POLICY, PROFILED])
def test_ten_percent_faster_is_faster_though_the_screen_would_acquit_it(policy: Policy) -> None:
    assert judged(policy=policy, candidate=[90.0] * 4).judgement.verdict is Verdict.FASTER


def test_in_the_zone_more_rounds_are_asked_for_and_the_verdict_stands_until_then() -> None:
    step = judge_time(time_case(RESTLESS, [103.0] * 2), POLICY)
    assert (step.judgement.verdict, step.rounds_wanted) == (Verdict.INCONCLUSIVE, 4)
    last = judge_time(time_case(RESTLESS, [103.0] * 16), POLICY)
    assert (last.judgement.verdict, last.rounds_wanted) == (Verdict.INCONCLUSIVE, 0)
    assert "after 16 rounds" in last.judgement.reason


def test_another_gpu_is_never_slower() -> None:
    step = judged(candidate=[150.0] * 16, now=session("new", uuid="GPU-2"))
    assert step.judgement.verdict is Verdict.INCONCLUSIVE
    assert "another GPU of this model" in step.judgement.reason
    assert "the baseline was recorded on another GPU of this model" in step.judgement.notes


def test_another_gpu_and_equal_code_that_is_much_slower_is_a_shift() -> None:
    step = judged(new=IDENTITY, candidate=[150.0] * 4, now=session("new", uuid="GPU-2"))
    assert step.judgement.verdict is Verdict.ENV_SHIFT
    assert "another GPU of the same model" in step.judgement.reason
    assert judged(new=IDENTITY, candidate=[104.0] * 4, now=session("new", uuid="GPU-2")).judgement.verdict is (
        Verdict.UNCHANGED
    )


@pytest.mark.parametrize("now", [session("new", driver="590.2"), session("new", uuid="GPU-2")])
def test_the_screen_is_skipped_on_another_machine(now: Session) -> None:
    step = judged(policy=PROFILED, now=now)
    assert step.judgement.time is not None
    assert step.judgement.time.method == "unpaired"


def test_only_the_rounds_of_this_gpu_are_compared_with_if_there_are_any() -> None:
    case = time_case(BASE, [100.0] * 4)
    assert case.baseline is not None
    elsewhere = rounds([[150.0, 150.0]] * 5, session="elsewhere")
    mixed = type(case.baseline)(
        identity=IDENTITY, timer="cupti", cache="cold", rounds=(*case.baseline.rounds, *elsewhere)
    )
    sessions = {"old": session(), "elsewhere": session("elsewhere", uuid="GPU-2")}
    step = judged(baseline=mixed, sessions=sessions)
    assert step.judgement.time is not None
    assert step.judgement.time.ratio == pytest.approx(1.0, abs=0.001)
    assert "another GPU" not in " ".join(step.judgement.notes)


def test_a_round_of_an_unknown_session_counts_as_another_gpus() -> None:
    assert judged(candidate=[150.0] * 16, sessions={}).judgement.verdict is Verdict.INCONCLUSIVE


def test_disturbed_rounds_prove_no_gain() -> None:
    assert judged(candidate=[50.0] * 4).judgement.verdict is Verdict.FASTER
    found = judged(candidate=[50.0] * 4, disturbances=("times drifted",)).judgement
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "proven to be more than 2 % faster" in found.reason


def test_a_record_without_rounds_is_as_good_as_none() -> None:
    found = judge_time(time_case([], [100.0] * 4), POLICY).judgement
    assert (found.verdict, found.reason) == (
        Verdict.NEW, "no time baseline for nvidia-h200: record one with pytest --update-baselines=new",
    )  # fmt: skip


def test_disturbed_rounds_prove_nothing_against_a_kernel() -> None:
    step = judged(candidate=[110.0] * 4, disturbances=("the GPU was throttled (power cap)",))
    assert step.judgement.verdict is Verdict.INCONCLUSIVE
    assert "proven to be more than 2 % slower" in step.judgement.reason
    assert "the GPU was throttled (power cap)" in step.judgement.notes
    assert judged(disturbances=("throttled",)).judgement.verdict is Verdict.NOT_SLOWER


def test_slower_in_time_and_not_in_cycles_is_the_clock_where_a_canary_is_slower_too() -> None:
    moved = with_canaries({"copy": 16_000.0, "fma": 330_000.0})
    step = judged(candidate=[110.0] * 4, old_clock=1980, new_clock=1800, **moved)
    assert step.judgement.verdict is Verdict.ENV_SHIFT
    assert "clock cycles" in step.judgement.reason
    assert judged(candidate=[110.0] * 4, old_clock=1980, new_clock=1975).judgement.verdict is Verdict.SLOWER
    assert judged(candidate=[130.0] * 4, old_clock=1980, new_clock=1800).judgement.verdict is Verdict.SLOWER
    assert step.judgement.time is not None
    assert step.judgement.time.cycles_ratio == pytest.approx(1.1 * 1800 / 1980, rel=1e-3)
    unread = judged(candidate=[110.0] * 4, old_clock=1980).judgement
    assert unread.verdict is Verdict.SLOWER
    assert unread.time is not None
    assert unread.time.cycles_ratio is None


@pytest.mark.parametrize("clocks", [{"old_clock": 0, "new_clock": 1980}, {"old_clock": 1980, "new_clock": 0}])
@pytest.mark.parametrize("new", [IDENTITY, EDITED])
def test_a_clock_that_was_read_as_nothing_is_not_compared(new: Identity, clocks: dict[str, int]) -> None:
    figures = judged(new=new, **clocks).judgement.time
    assert figures is not None
    assert figures.cycles_ratio is None


def test_a_compiler_change_is_named_beside_the_verdict() -> None:
    step = judged(candidate=[110.0] * 4, new=identity(code="bb", toolchain="nvrtc 13.1.2"))
    assert step.judgement.verdict is Verdict.SLOWER
    assert "the compiler changed from nvrtc 13.0.88 to nvrtc 13.1.2" in step.judgement.reason


def test_a_baseline_of_one_process_or_one_round_says_so() -> None:
    one = judge_time(time_case([[100.0, 100.1]], [100.0] * 4), POLICY)
    assert "one process" in " ".join(one.judgement.notes)
    few = judge_time(time_case([[100.0]], [100.0]), POLICY)
    assert few.judgement.verdict is Verdict.INCONCLUSIVE
    assert "a single round" in few.judgement.reason
    assert few.judgement.time is not None
    assert few.judgement.time.interval is None


def test_a_larger_tolerance_makes_ten_percent_acceptable() -> None:
    step = judged(policy=Policy(delta=0.1, epsilon=0.2), candidate=[110.0] * 4)
    assert step.judgement.verdict is Verdict.SAME
    assert "less than 20 % slower or faster" in step.judgement.reason


def test_ecc_and_mig_are_named_when_they_changed() -> None:
    step = judge_time(
        time_case(BASE, [110.0] * 4, sessions={"old": session(ecc=True, mig=False)},
                  now=session("new", ecc=False, mig=True)), POLICY)  # fmt: skip
    assert "since the baseline was recorded: ECC off, MIG on" in step.judgement.notes


def test_a_bad_time_is_refused() -> None:
    with pytest.raises(InvalidTimesError):
        judged(candidate=[math.nan] * 4)


def test_a_smaller_share_of_alpha_needs_more_evidence() -> None:
    shared = Policy(alpha=1e-12)
    assert judged(policy=shared, candidate=[105.0] * 2).judgement.verdict is Verdict.INCONCLUSIVE
    assert judged(candidate=[105.0] * 2, new=EDITED).judgement.verdict is Verdict.SLOWER


def test_unchanged_code_under_another_timer_is_unchanged_and_its_times_are_not_compared() -> None:
    step = judged(new=IDENTITY, candidate=[300.0] * 4, timer="graph")
    assert step.judgement.verdict is Verdict.UNCHANGED
    assert step.judgement.time is None
    assert "the timer changed from cupti to graph" in step.judgement.reason
    assert step.judgement.notes == ("not compared: 0.1 us in the record, 0.3 us now",)


def test_changed_code_and_other_work_can_be_paired_under_another_timer() -> None:
    assert judged(timer="graph").judgement.verdict is Verdict.NOT_COMPARABLE
    assert judged(timer="graph").pairing_helps
    assert judged(new=identity(arguments=()), timer="graph").pairing_helps


def test_a_judgement_says_whose_it_is() -> None:
    judgement = judged().judgement
    assert (judgement.key, judgement.target, judgement.kind) == (KEY, "nvidia-h200", "time")


def test_figures_have_their_level_and_the_ratio_to_the_record() -> None:
    figures = judged(new=IDENTITY, candidate=[103.0] * 4).judgement.time
    assert figures is not None
    assert (figures.level, figures.tolerance) == (0.95, 0.005)
    assert figures.record_ratio == figures.ratio == pytest.approx(1.0297, abs=1e-4)


def test_without_a_round_it_says_so_and_that_pairs_would_decide() -> None:
    step = judged(rounds=())
    assert step.judgement.reason == "no round was taken; the source and its machine code changed"
    assert (step.rounds_wanted, step.pairing_helps) == (2, True)


def test_what_keeps_times_from_being_compared_is_the_reason() -> None:
    reason = judged(new=identity(arguments=("int32=8",))).judgement.reason
    assert reason.startswith("the workload changed: 2 arguments became 1: record the baseline anew")


@pytest.mark.parametrize(("candidate", "words"), [(100.0, "slower or faster; the"), (99.0, "slower; the")])
def test_what_passes_the_noninferiority_test_says_what_is_proven(candidate: float, words: str) -> None:
    reason = judged(policy=PROFILED, candidate=[candidate] * 4).judgement.reason
    assert reason == f"proven to be less than 2 % {words} source and its machine code changed"


def test_a_smaller_beta_lets_less_pass() -> None:
    strict = judged(policy=dataclasses.replace(PROFILED, beta=1e-6)).judgement
    assert strict.time is not None
    assert strict.time.method == "unpaired"


def test_notes_on_the_record_travel_with_every_verdict() -> None:
    one_process = [[100.0, 100.1, 99.9]]
    note = "the baseline comes from one process: how processes differ is assumed, not measured"
    for new, policy in ((IDENTITY, POLICY), (EDITED, PROFILED), (EDITED, POLICY)):
        assert note in judge_time(time_case(one_process, [100.0] * 4, new=new), policy).judgement.notes


def test_against_another_gpu_the_interval_has_what_gpus_differ_by() -> None:
    here, there = (judged(now=session("new", uuid=uuid)).judgement.time for uuid in ("GPU-1", "GPU-2"))
    assert here is not None
    assert there is not None
    assert here.interval is not None
    assert there.interval is not None
    assert here.interval[1] - here.interval[0] < 0.03
    assert there.interval[1] - there.interval[0] > 0.1


def test_inconclusive_says_why_more_rounds_would_not_help() -> None:
    elsewhere = judged(candidate=[150.0] * 16, now=session("new", uuid="GPU-2")).judgement.reason
    assert elsewhere.startswith("the baseline is of another GPU of this model, against which nothing is proven; ")
    few = judge_time(time_case([[100.0]], [100.0]), POLICY).judgement.reason
    assert few.startswith("the baseline has a single round: record more with pytest --update-baselines; ")


def test_a_shift_of_the_clock_is_told_in_percent() -> None:
    moved = with_canaries({"copy": 16_000.0, "fma": 330_000.0})
    reason = judged(candidate=[110.0] * 4, old_clock=1980, new_clock=1800, **moved).judgement.reason
    assert reason.startswith("+10.0 % in time and within the tolerance in clock cycles: the SM clock differs from the")


@pytest.mark.parametrize(
    ("then", "now", "named"),
    [
        ({"ecc": False}, {"ecc": True}, "ECC on"),
        ({"ecc": True}, {"ecc": False}, "ECC off"),
        ({"mig": True}, {"mig": False}, "MIG off"),
        ({"ecc": True, "mig": True}, {"ecc": True, "mig": True}, ""),
        ({"ecc": None, "mig": True}, {"ecc": True, "mig": None}, ""),
    ],
)
def test_a_setting_of_the_gpu_is_named_when_it_is_known_to_have_changed(
    then: dict[str, bool], now: dict[str, bool], named: str
) -> None:
    notes = judged(sessions={"old": session(**then)}, now=session("new", **now)).judgement.notes
    assert [note for note in notes if note.startswith("since")] == (
        [f"since the baseline was recorded: {named}"] if named else []
    )


def test_a_change_since_several_sessions_is_named_once() -> None:
    case = time_case(BASE, [100.0] * 4)
    assert case.baseline is not None
    two = (*case.baseline.rounds, *rounds([[100.0, 100.1]], session="later"))
    record = type(case.baseline)(identity=IDENTITY, timer="cupti", cache="cold", rounds=two)
    sessions = {"old": session(), "later": session("later")}
    notes = judged(baseline=record, sessions=sessions, now=session("new", driver="590.2")).judgement.notes
    assert notes == ("since the baseline was recorded: driver 580.1 -> 590.2",)


def test_other_work_that_was_not_timed_asks_for_the_first_rounds() -> None:
    other = identity(code="bb", arguments=("float32[2048] align=512", "int32=7"))
    step = judge_time(time_case(BASE, [], new=other, rounds=()), POLICY)
    assert (step.judgement.verdict, step.rounds_wanted, step.pairing_helps) == (
        Verdict.NOT_COMPARABLE, unpaired.LOOKS[0], True
    )  # fmt: skip
