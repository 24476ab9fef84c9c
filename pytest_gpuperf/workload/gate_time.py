"""Gating a workload's time: rounds, the screen, paired blocks, and what waits for a second process.

``judge`` decides; here is what is measured for it, in which order, and what goes with the verdict.  What is slower,
paired or not, waits for its confirmation by ``second_process`` at the end of its test.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping

import msgspec

from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.judge.canary_shift import canary_shifts, has_comparable_canaries
from pytest_gpuperf.judge.error_budget import ALPHA, ALPHA_FASTER
from pytest_gpuperf.judge.paired_verdict import judge_pairs
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.recording_choice import choose_recording
from pytest_gpuperf.judge.time_case import TimeCase, TimeStep
from pytest_gpuperf.judge.time_verdict import judge_time
from pytest_gpuperf.model.evidence import Session, TimeRecord
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.timing.long_blocks import LONG_NS, rounds_of
from pytest_gpuperf.timing.machine_profile import omega_of
from pytest_gpuperf.timing.paired_run import Pairing
from pytest_gpuperf.timing.pending_confirmations import PairedPending, UnpairedPending, not_comparable
from pytest_gpuperf.timing.rounds import NO_ROUNDS, Rounds
from pytest_gpuperf.workload.baseline_kernel import Opponent
from pytest_gpuperf.workload.explained_verdict import explained, short_of_time, with_obstacle
from pytest_gpuperf.workload.gate_process import pair_with_revision, pairs_by_commit
from pytest_gpuperf.workload.pair_with_itself import pair_with_itself
from pytest_gpuperf.workload.record_time import one_round
from pytest_gpuperf.workload.recorded_revision import NotPaired
from pytest_gpuperf.workload.timed_rounds import (
    FIRST_ROUNDS,
    ROUNDS_SHARE,
    UNCHANGED_S,
    TimedRounds,
    TimedWorkload,
    expected_ns,
    not_loaded,
    opponent_for,
    pair_with,
    take,
    take_again,
)


@dataclasses.dataclass(frozen=True)
class BaselineComparison:
    """What a workload's rounds are judged against, and how strictly."""

    work: TimedWorkload
    baseline: TimeRecord | None
    sessions: Mapping[str, Session]
    """Those on record, by id."""
    session: Session
    """The machine as it is now."""
    policy: Policy
    unchanged_shifts: tuple[float, ...] = ()
    """Of the other unchanged workloads of this process so far (``TimeCase``)."""

    def case(self, taken: Rounds) -> TimeCase:
        work = self.work
        return TimeCase(
            key=work.key, target=work.target, baseline=self.baseline, sessions=self.sessions, identity=work.identity,
            timer=work.worker.timer.name, cache=work.request.cache, session=self.session, rounds=taken.rounds,
            disturbances=taken.disturbed, disturbed_by=taken.disturbed_by, remarks=taken.notes,
            unchanged_shifts=self.unchanged_shifts, of_revision=work.worker.revision is not None,
        )  # fmt: skip

    def judge(self, taken: Rounds) -> TimeStep:
        """The verdict on the rounds in hand."""
        return judge_time(self.case(taken), self.policy)


def gate_time(work: TimedWorkload, state: RunState) -> TimedRounds:
    """Take rounds, and paired blocks where they help, until the judge wants no more or the budget is spent."""
    options, request = work.worker.options, work.request
    compared = _comparison(work)
    known = compared.judge(NO_ROUNDS)
    unchanged = known.judgement.verdict is Verdict.UNCHANGED
    if options.changed_only and unchanged:
        return TimedRounds((), known.judgement)
    asked_for = unchanged and options.pair_all
    only_looked_at = unchanged and not asked_for
    if only_looked_at and work.worker.revision is not None:  # which has no times to compare with
        brief = one_round(work)
        pair_with_itself(work, state, brief.rounds)
        return TimedRounds(brief.rounds, known.judgement)
    tested = known.pairing_helps or asked_for
    sustained = request.pair_slot == "sustained"  # then rounds alone prove nothing: they do not show what power does
    if tested:
        alpha = state.next_share()  # of a false SLOWER; the rate of a false FASTER is shared out alike
        policy = dataclasses.replace(compared.policy, alpha=alpha, alpha_faster=alpha * ALPHA_FASTER / ALPHA)
        compared = dataclasses.replace(compared, policy=policy)
    elif unchanged:
        policy = dataclasses.replace(compared.policy, alpha=state.next_unchanged_share())
        compared = dataclasses.replace(compared, policy=policy, unchanged_shifts=_shifts_of_others(work, state))
    opponent = opponent_for(work) if tested else Opponent(None)
    state.note_distrust(work.key, opponent.obstacle if opponent.distrusted else "")
    compared = _with_canaries(compared, state)
    pairs = opponent.binary is not None and not opponent.other_parameters and tested and not sustained
    expected = expected_ns(work) if pairs else 0.0
    if expected >= LONG_NS:  # its launches in the blocks are its rounds
        found = decide_by_pairs(compared, state, opponent, NO_ROUNDS, known, expected)
        pair_with_itself(work, state, found.rounds)
        return found
    by_process = request.launch is None and work.worker.revision is not None
    share = ROUNDS_SHARE if opponent.binary or by_process else 1
    rounds_s = UNCHANGED_S if only_looked_at else math.inf
    taken = take(work, FIRST_ROUNDS, request.budget_s * share, rounds_s=rounds_s, duration_ns=expected)
    step = compared.judge(taken)
    if only_looked_at:
        undisturbed = compared.judge(dataclasses.replace(taken, disturbed=()))
        if undisturbed.judgement.verdict is Verdict.UNEXPLAINED:
            compared, taken = once_more(compared, state, taken)
            step = compared.judge(taken)
        _note_unchanged(compared, state, step)
    if step.pairing_helps and (by_process or pairs_by_commit(work, compared.case(taken), step)):
        found = decide_by_processes(compared, state, taken, step)
    elif opponent.binary is not None and (step.pairing_helps or asked_for or sustained):
        found = decide_by_pairs(compared, state, opponent, taken, step, taken.rounds[-1].midmean)
    else:
        obstacle = opponent.obstacle if step.pairing_helps or sustained else ""
        found = _less_comparable(state, opponent, decide_by_rounds(compared, state, taken, step, obstacle))
    pair_with_itself(work, state, taken.rounds)
    return found


def decide_by_rounds(
    compared: BaselineComparison, state: RunState, taken: Rounds, step: TimeStep, obstacle: str
) -> TimedRounds:
    """Go on with rounds alone; ``obstacle`` is why there are no pairs.  What is slower waits for a second process."""
    work, budget_s = compared.work, compared.work.request.budget_s
    while step.rounds_wanted > len(taken.rounds) and taken.seconds < budget_s:
        taken = taken.followed_by(take(work, step.rounds_wanted - len(taken.rounds), budget_s - taken.seconds))
        step = compared.judge(taken)
    judgement = with_obstacle(explained(work, compared.baseline, step.judgement), obstacle)
    if obstacle and work.worker.revision is not None:  # there is no time of it that rounds could be compared with
        why = f"it cannot be paired with {work.worker.revision.name}: {obstacle}; {step.judgement.reason}"
        judgement = not_comparable(judgement, why)
    if judgement.verdict is Verdict.SLOWER:
        time_s = max(budget_s, taken.seconds)  # long work takes more than its budget, there as here
        state.pending[work.key] = UnpairedPending(compared.case(taken), compared.policy, judgement, time_s)
    return TimedRounds(taken.rounds, judgement, taken.disturbed)


def decide_by_pairs(
    compared: BaselineComparison, state: RunState, opponent: Opponent, taken: Rounds, step: TimeStep, duration_ns: float
) -> TimedRounds:
    """Let the baseline's own machine code run beside the candidate's.  What is slower waits for a second process.

    Where no rounds were ``taken``, those of the candidate's launches in the blocks stand for them.
    """
    work, request, zone = compared.work, compared.work.request, compared.work.request.zone
    assert opponent.binary is not None
    policy = Policy(
        delta=zone.delta, epsilon=zone.epsilon, alpha=compared.policy.alpha, alpha_faster=compared.policy.alpha_faster
    )
    left_s = request.budget_s - taken.seconds
    try:
        pairing = pair_with(
            work, opponent.binary, policy, duration_ns, left_s, request.pair_slot, opponent.configuration,
            opponent.arguments,
        )  # fmt: skip
    except LoadError as problem:
        if not taken.rounds:
            taken = take(work, FIRST_ROUNDS, left_s, duration_ns=duration_ns)
            step = compared.judge(taken)
        return decide_by_rounds(compared, state, taken, step, not_loaded(problem))
    if not taken.rounds:
        taken = rounds_of(pairing.blocks, work.worker.session.id)
    return _decided(compared, state, taken, pairing, policy, left_s)


def decide_by_processes(compared: BaselineComparison, state: RunState, taken: Rounds, step: TimeStep) -> TimedRounds:
    """Let another revision's callable run beside the candidate's, each in its process.

    What is slower waits for a second pair of processes.
    """
    left_s, policy = compared.work.request.budget_s - taken.seconds, compared.policy
    try:
        pairing, policy = pair_with_revision(compared.work, taken.rounds[-1].midmean, left_s, policy)
    except NotPaired as problem:
        return decide_by_rounds(compared, state, taken, step, str(problem))
    return _decided(compared, state, taken, pairing, policy, left_s)


def _decided(
    compared: BaselineComparison, state: RunState, taken: Rounds, pairing: Pairing, policy: Policy, left_s: float
) -> TimedRounds:
    """The verdict on a pairing; ``left_s`` is what the rounds ``taken`` had left of the budget."""
    work, request = compared.work, compared.work.request
    notes = (*pairing.remarks, *short_of_time(pairing, policy, request.budget_s, request.budget_s - left_s))
    judge = functools.partial(
        judge_pairs, policy=policy, first=pairing.paired, seeds=(pairing.seed,), notes=notes,
        pair_slot="sustained" if pairing.sustained else "short", slow_launches=pairing.slow_launches,
    )  # fmt: skip
    step = judge(compared.case(taken))
    if step.judgement.verdict is Verdict.UNEXPLAINED:
        compared, taken = once_more(compared, state, taken)
        step = judge(compared.case(taken))
    case = compared.case(taken)
    judgement = explained(work, compared.baseline, step.judgement)
    if step.confirmation_wanted:
        state.pending[work.key] = PairedPending(
            case, policy, pairing, judgement, max(request.budget_s, pairing.seconds)
        )
    return TimedRounds(taken.rounds, judgement, taken.disturbed)


def once_more(compared: BaselineComparison, state: RunState, first: Rounds) -> tuple[BaselineComparison, Rounds]:
    """What its ``first`` rounds call slower with no cause but a disturbance, with rounds and canaries taken again."""
    again = take_again(compared.work, first, FIRST_ROUNDS)
    worker, session = compared.work.worker, compared.session
    session = msgspec.structs.replace(session, canaries=worker.canaries_now() or session.canaries)
    state.note_canaries(canary_shifts(_sessions_of(compared), session))
    return dataclasses.replace(compared, session=session), again


def _less_comparable(state: RunState, opponent: Opponent, found: TimedRounds) -> TimedRounds:
    """Nothing but SLOWER is proven by rounds of a kernel that takes other parameters than the record's.

    Nor by rounds against a record whose machine code is refused: who wrote the one may have written the other.
    """
    judgement = found.judgement
    if not (opponent.other_parameters or opponent.refused) or judgement is None:
        return found
    reason = opponent.obstacle
    if opponent.other_parameters:
        reason += ": record the baseline anew with pytest --update-baselines if that is intended"
    pending = state.pending.get(judgement.key)
    if isinstance(pending, UnpairedPending):
        state.pending[judgement.key] = dataclasses.replace(pending, not_comparable=reason)
        return found
    return dataclasses.replace(found, judgement=not_comparable(judgement, reason))


def _shifts_of_others(work: TimedWorkload, state: RunState) -> tuple[float, ...]:
    return tuple(shift for key, shift in state.unchanged_shifts.items() if key != work.key)


def _note_unchanged(compared: BaselineComparison, state: RunState, step: TimeStep) -> None:
    """Keep how far an unchanged workload moved from a record of this very GPU."""
    baseline, figures = compared.baseline, step.judgement.time
    if baseline is None or figures is None or figures.record_ratio is None:
        return
    if choose_recording(baseline, compared.sessions, compared.session).same_gpu:
        state.unchanged_shifts[compared.work.key] = math.log(figures.record_ratio)


def _comparison(work: TimedWorkload) -> BaselineComparison:
    """Against the record, with the whole of the error rates: a share is taken where a verdict can be red."""
    worker, zone = work.worker, work.request.zone
    policy = Policy(
        delta=zone.delta, epsilon=zone.epsilon, alpha=ALPHA, alpha_faster=ALPHA_FASTER,
        omega=omega_of(worker.device.facts.uuid, worker.timer.name),
    )  # fmt: skip
    sessions = {session.id: session for session in worker.store.sessions(work.target, work.key.module)}
    return BaselineComparison(work, work.baseline, sessions, worker.session, policy)


def _with_canaries(compared: BaselineComparison, state: RunState) -> BaselineComparison:
    """With the canaries of this process, where the workload's record has some to compare them with.

    Asked for before any round, so that what they find is the GPU's doing and not the workload's.
    """
    known = _sessions_of(compared)
    if not any(has_comparable_canaries(one, compared.session) for one in known):
        return compared
    session = msgspec.structs.replace(compared.session, canaries=compared.work.worker.canaries)
    state.note_canaries(canary_shifts(known, session))
    return dataclasses.replace(compared, session=session)


def _sessions_of(compared: BaselineComparison) -> list[Session]:
    """Those that the record's rounds are of."""
    named = {one.session for one in compared.baseline.rounds} if compared.baseline is not None else set()
    return [compared.sessions[name] for name in named & compared.sessions.keys()]
