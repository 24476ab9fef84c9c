"""The front door for times: from what was measured to one verdict.

The order of decisions is fixed: is there a baseline, is it the same work, does the non-inferiority test pass it, what
do unpaired rounds prove.  Where more rounds would help, ``judge_time`` says how many and gives the verdict that stands
if there are none; ``TimeStep.pairing_helps`` says when paired blocks should decide instead.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from pytest_gpuperf.judge import env_shift
from pytest_gpuperf.judge import unpaired as unpaired_rounds
from pytest_gpuperf.judge.comparability import RECORD_ANEW, Comparability, same_work
from pytest_gpuperf.judge.log_times import mean_time_ns
from pytest_gpuperf.judge.machine_evidence import slower_by_the_machine, slower_without_change
from pytest_gpuperf.judge.noninferiority import OMEGA, noninferiority_test
from pytest_gpuperf.judge.paired_verdict import unconfirmed, unheard
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.recording_choice import Recording, choose_recording
from pytest_gpuperf.judge.time_case import TimeCase, TimeStep
from pytest_gpuperf.judge.two_sample import Spread, compare_rounds
from pytest_gpuperf.judge.unpaired import Unpaired, coarse
from pytest_gpuperf.model.evidence import TimeRecord
from pytest_gpuperf.model.tolerance import COARSE
from pytest_gpuperf.model.verdict import UNDECIDED, Judgement, TimeFigures, Verdict


def judge_time(case: TimeCase, policy: Policy) -> TimeStep:
    """Decide as far as the rounds in hand allow.

    Without rounds a workload of equal identity is UNCHANGED and any other one INCONCLUSIVE.  Raises
    ``InvalidTimesError`` if a midmean on either side is no time.
    """
    if case.baseline is not None and case.of_revision:
        return _against_revision(case, case.baseline)
    if case.baseline is None or not case.baseline.rounds:
        reason = f"no time baseline for {case.target}: record one with pytest --update-baselines=new"
        return TimeStep(_judgement(case, Verdict.NEW, reason))
    work = same_work(case.baseline, case.identity, case.timer, case.cache)
    recording = choose_recording(case.baseline, case.sessions, case.session)
    if work.relation == "not comparable":
        return _other_work(case, recording, work, policy)
    if work.relation == "unchanged":
        return TimeStep(_unchanged(case, recording, work, policy))
    if not case.rounds:
        untimed = _judgement(case, Verdict.INCONCLUSIVE, f"no round was taken; {work.reason}")
        return TimeStep(untimed, unpaired_rounds.LOOKS[0], pairing_helps=True)
    return _not_inferior(case, recording, work, policy) or _unpaired(case, recording, work, policy)


def _against_revision(case: TimeCase, baseline: TimeRecord) -> TimeStep:
    """What can be said without times of the other side: all of unchanged work, else that pairs have to decide."""
    work = same_work(baseline, case.identity, case.timer, case.cache)
    if work.relation == "unchanged":
        return TimeStep(_judgement(case, Verdict.UNCHANGED, work.reason))
    if work.relation == "not comparable":
        reason = work.reason.removesuffix(RECORD_ANEW)
        return TimeStep(_judgement(case, Verdict.NOT_COMPARABLE, reason), pairing_helps=work.pairable)
    return TimeStep(_judgement(case, Verdict.INCONCLUSIVE, f"{UNDECIDED}; {work.reason}"), pairing_helps=True)


def confirm_rounds(suspected: Judgement, case: TimeCase, policy: Policy) -> Judgement:
    """The verdict on what unpaired rounds of one process called slower, after rounds of a second.

    ``case`` is that of the first process with the rounds and disturbances of the second; they are judged against
    the same record under ``policy.confirming()``.  Raises ``ValueError`` if the case has no baseline.
    """
    if case.baseline is None:
        raise ValueError(f"{case.key}: there is no baseline that a second process could be held against")
    if case.disturbances:
        known = msgspec.structs.replace(suspected, notes=(*suspected.notes, *case.disturbances))
        return unheard(known, "its rounds were disturbed, so they prove nothing")
    second = judge_time(case, policy.confirming()).judgement
    if second.verdict is Verdict.NOT_COMPARABLE:
        reason = f"slower in one process, and not proven so in a second; {second.reason}"
        return msgspec.structs.replace(suspected, verdict=Verdict.NOT_COMPARABLE, reason=reason, notes=second.notes)
    leans = second.time is None or second.time.ratio is None or second.time.ratio > 1 + coarse(policy).delta
    if second.verdict is Verdict.INCONCLUSIVE and leans:
        return unheard(suspected, "it took too few rounds to tell")
    if second.verdict is not Verdict.SLOWER:
        return unconfirmed(suspected, _not_seen_again(suspected, second, policy))
    work = same_work(case.baseline, case.identity, case.timer, case.cache)
    slower = env_shift.proven_slower(coarse(policy).delta)
    return msgspec.structs.replace(suspected, reason=f"{slower}, in two processes; {work.reason}")


def _not_seen_again(suspected: Judgement, second: Judgement, policy: Policy) -> str:
    """What a second process said instead of SLOWER."""
    if second.verdict is Verdict.INCONCLUSIVE:
        return "slower in one process, undecided in a second"
    if second.verdict is Verdict.ENV_SHIFT:
        return "slower in one process, and in a second it is the machine's doing"
    limits = coarse(policy)
    ratios = [one.time.ratio for one in (suspected, second) if one.time is not None and one.time.ratio is not None]
    if all(limits.delta < ratio - 1 < limits.epsilon for ratio in ratios):
        less = f"less than {env_shift.amount(limits.epsilon)} in a second"
        return f"slower in one process and {less}: it lies between the two tolerances"
    return "slower in one process and not in a second: it differs from process to process"


def _other_work(case: TimeCase, recording: Recording, work: Comparability, policy: Policy) -> TimeStep:
    """SLOWER if rounds prove as much of other work than is on record, else NOT-COMPARABLE: nothing good is proven."""
    notes = _for_information(case, recording)
    judgement = _judgement(case, Verdict.NOT_COMPARABLE, work.reason, notes=notes)
    if not case.rounds:
        return TimeStep(judgement, unpaired_rounds.LOOKS[0], pairing_helps=work.pairable)
    if work.measured_otherwise:
        return TimeStep(judgement, pairing_helps=work.pairable)
    found = _unpaired(case, recording, work, policy)
    return found if found.judgement.verdict is Verdict.SLOWER else dataclasses.replace(found, judgement=judgement)


def _unchanged(case: TimeCase, recording: Recording, work: Comparability, policy: Policy) -> Judgement:
    """Equal code cannot have regressed; what remains is to say whether the environment moved."""
    if not case.rounds:
        return _judgement(case, Verdict.UNCHANGED, f"{work.reason}; not timed")
    if work.measured_otherwise:
        return _judgement(case, Verdict.UNCHANGED, work.reason, notes=_for_information(case, recording))
    spread = compare_rounds(recording.rounds, case.rounds, _omega(recording, policy))
    figures = _figures(case, recording, spread, "identity", policy.delta)
    if spread.exceeds(math.log1p(policy.delta), env_shift.ALPHA):
        verdict, why = slower_without_change(case, recording, spread, policy)
        reason = f"{work.reason}, and it takes {env_shift.percent(spread.difference)} time: {why}"
        return _judgement(case, verdict, reason, figures, recording.notes)
    reason = f"{work.reason}; the time differs by {env_shift.percent(spread.difference)}"
    return _judgement(case, Verdict.UNCHANGED, reason, figures, recording.notes)


def _not_inferior(case: TimeCase, recording: Recording, work: Comparability, policy: Policy) -> TimeStep | None:
    """A pass by the non-inferiority test; None if it proves nothing, the machine changed, or it may be FASTER."""
    spread = compare_rounds(recording.rounds, case.rounds, _omega(recording, policy))
    if recording.machine_changed or spread.difference < -math.log1p(COARSE.delta):
        return None
    old, new = [one.midmean for one in recording.rounds], [one.midmean for one in case.rounds]
    omega = max(policy.omega or OMEGA, unpaired_rounds.LEAST_OMEGA, spread.between)
    test = functools.partial(noninferiority_test, epsilon=policy.epsilon, omega=omega, beta=policy.beta)
    if not test(old, new):
        return None
    same = test(new, old)
    figures = _figures(case, recording, spread, "screen", policy.epsilon)
    verdict, words = (Verdict.SAME, "slower or faster") if same else (Verdict.NOT_SLOWER, "slower")
    reason = f"proven to be less than {env_shift.amount(policy.epsilon)} {words}; {work.reason}"
    return TimeStep(_judgement(case, verdict, reason, figures, recording.notes))


def _unpaired(case: TimeCase, recording: Recording, work: Comparability, policy: Policy) -> TimeStep:
    limits = dataclasses.replace(coarse(policy), omega=_omega(recording, policy))
    found = unpaired_rounds.judge_unpaired(recording.rounds, case.rounds, limits, same_gpu=recording.same_gpu)
    verdict, reason = _verdict(found, limits, recording)
    if verdict is Verdict.SLOWER:
        verdict, words = slower_by_the_machine(case, recording, found.spread, limits)
        reason = "; ".join(filter(None, (reason, words))) if verdict is Verdict.SLOWER else words
    if case.disturbances and verdict in (Verdict.SLOWER, Verdict.FASTER):
        verdict, reason = Verdict.INCONCLUSIVE, f"the rounds were disturbed, so they prove nothing ({reason})"
    figures = _figures(case, recording, found.spread, "unpaired", limits.delta)
    judgement = _judgement(case, verdict, f"{reason}; {work.reason}", figures, recording.notes)
    return TimeStep(judgement, found.rounds_wanted, pairing_helps=True)


def _verdict(found: Unpaired, limits: Policy, recording: Recording) -> tuple[Verdict, str]:
    resolves = f"unpaired rounds resolve about {env_shift.amount(limits.epsilon)}"
    if found.decision is Decision.SLOWER:
        return Verdict.SLOWER, env_shift.proven_slower(limits.delta)
    if found.decision is Decision.FASTER:
        return Verdict.FASTER, f"proven to be more than {env_shift.amount(limits.delta)} faster"
    if found.decision is Decision.NOT_SLOWER:
        return Verdict.NOT_SLOWER, f"proven to be less than {env_shift.amount(limits.epsilon)} slower ({resolves})"
    if not recording.same_gpu:
        return Verdict.INCONCLUSIVE, "the baseline is of another GPU of this model, against which nothing is proven"
    if recording.rounds_are_few:
        return Verdict.INCONCLUSIVE, "the baseline has a single round: record more with pytest --update-baselines"
    return Verdict.INCONCLUSIVE, f"{UNDECIDED} after {found.rounds_used} rounds ({resolves})"


def _omega(recording: Recording, policy: Policy) -> float:
    least = unpaired_rounds.LEAST_OMEGA if recording.same_gpu else unpaired_rounds.OTHER_GPU_OMEGA
    return max(policy.omega or 0.0, least)


def _figures(
    case: TimeCase,
    recording: Recording,
    spread: Spread,
    method: Literal["identity", "screen", "unpaired"],
    tolerance: float,
) -> TimeFigures:
    before, ratio = mean_time_ns(recording.rounds), math.exp(spread.difference)
    cycles = env_shift.cycles_ratio(recording.rounds, case.rounds)
    return TimeFigures(
        before_ns=before, after_ns=before * ratio, ratio=ratio, interval=spread.interval(0.95), level=0.95,
        tolerance=tolerance, method=method, record_ratio=ratio, cycles_ratio=cycles,
    )  # fmt: skip


def _for_information(case: TimeCase, recording: Recording) -> tuple[str, ...]:
    """The two times of what is not compared, so that a reader sees a large loss all the same."""
    if not case.rounds:
        return ()
    before = mean_time_ns(recording.rounds)
    after = mean_time_ns(case.rounds)
    return (f"not compared: {before / 1000:.4g} us in the record, {after / 1000:.4g} us now",)


def _judgement(
    case: TimeCase, verdict: Verdict, reason: str, figures: TimeFigures | None = None, notes: Sequence[str] = ()
) -> Judgement:
    return Judgement(
        key=case.key, target=case.target, kind="time", verdict=verdict, reason=reason, time=figures,
        notes=(*case.disturbances, *case.remarks, *notes),
    )  # fmt: skip
