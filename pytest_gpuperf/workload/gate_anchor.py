"""Gating a workload against its anchor, where its record has moved since: by paired blocks, or by what is on record.

The anchor's machine code runs beside the candidate's, as the record's does.  An unchanged workload costs nothing: how
far its record is from the anchor was measured when the record was taken.
"""

from __future__ import annotations

import dataclasses

import msgspec

from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.judge.comparability import other_arguments
from pytest_gpuperf.judge.drift_verdict import drift_by_steps, drift_of, judge_paired_drift, judge_recorded_drift
from pytest_gpuperf.judge.error_budget import ALPHA, ALPHA_FASTER
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.time_case import TimeCase
from pytest_gpuperf.model.evidence import Anchor
from pytest_gpuperf.model.verdict import Drift, Judgement, Verdict
from pytest_gpuperf.timing.pending_confirmations import AnchorPending
from pytest_gpuperf.workload.baseline_kernel import Opponent, opponent_of
from pytest_gpuperf.workload.timed_rounds import TimedRounds, TimedWorkload, pair_with


@dataclasses.dataclass(frozen=True)
class AnchorPairs:
    """Blocks against the anchor that are to be taken, or were to be: the opponent's code may be refused."""

    opponent: Opponent
    policy: Policy


def anchor_pairs(work: TimedWorkload, state: RunState) -> AnchorPairs | None:
    """Whether the drift is to be measured, and its share of the error rate; ask before the first round is taken.

    None for what is its own anchor, or the anchor's code again, or unchanged and measured when it was recorded.
    """
    record = work.baseline
    if record is None or record.anchor is None or work.identity.same_execution(record.anchor.identity):
        return None
    if work.identity.same_execution(record.identity) and record.anchor.ratio is not None:
        return None
    opponent = anchor_opponent(work)
    state.note_distrust(work.key, opponent.obstacle if opponent.distrusted else "")
    if opponent.refused:
        return AnchorPairs(opponent, Policy())
    if opponent.binary is None:
        return None
    alpha, zone = state.next_share(), work.request.zone
    shared = Policy(delta=zone.delta, epsilon=zone.epsilon, alpha=alpha, alpha_faster=alpha * ALPHA_FASTER / ALPHA)
    return AnchorPairs(opponent, shared)


def anchor_opponent(work: TimedWorkload) -> Opponent:
    """The anchor's machine code, if there is an anchor and it can be run again."""
    record = work.baseline
    if record is None or record.anchor is None:
        return Opponent(None, "the record is its own anchor")
    worker = work.worker
    return opponent_of(
        worker.store, worker.compile_cache, worker.trust, work.key, record.anchor.as_record(), work.request.launch,
        what="anchor",
    )  # fmt: skip


def with_drift(work: TimedWorkload, case: TimeCase, found: TimedRounds, measured: Drift | None = None,
               verdict: Judgement | None = None) -> TimedRounds:  # fmt: skip
    """What was found with the drift since the anchor: as ``measured``, else as the record tells it."""
    anchor = work.baseline.anchor if work.baseline is not None else None
    if anchor is None or found.judgement is None:
        return found
    drift = measured or _recorded_drift(work, anchor, found.judgement)
    if drift is None:
        return found
    if measured is None:
        changed = work.baseline is not None and not work.identity.same_execution(work.baseline.identity)
        verdict = judge_recorded_drift(case, drift, changed=changed)
    judgement = msgspec.structs.replace(found.judgement, drift=drift)
    return dataclasses.replace(found, judgement=judgement, on_drift=verdict)


def pair_with_anchor(
    work: TimedWorkload, case: TimeCase, state: RunState, pairs: AnchorPairs | None, found: TimedRounds
) -> TimedRounds:
    """Measure the drift if that is to be done, with a budget of its own.

    What is beyond twice the tolerance waits for a second process.
    """
    anchor = work.baseline.anchor if work.baseline is not None else None
    if pairs is None or anchor is None:
        return with_drift(work, case, found)
    opponent, request = pairs.opponent, work.request
    if opponent.refused:
        found = with_drift(work, case, found)
        refused = Judgement(key=case.key, target=case.target, kind="time", verdict=Verdict.NOT_COMPARABLE,
                            reason=opponent.obstacle, against="anchor")  # fmt: skip
        return dataclasses.replace(found, on_drift=found.on_drift or refused)
    assert opponent.binary is not None
    try:
        pairing = pair_with(
            work, opponent.binary, pairs.policy, found.rounds[-1].midmean, request.budget_s, request.pair_slot,
            opponent.configuration, opponent.arguments,
        )  # fmt: skip
    except LoadError:
        return with_drift(work, case, found)
    drift, verdict = judge_paired_drift(
        case, anchor, pairs.policy, pairing.paired, seeds=(pairing.seed,), notes=pairing.remarks,
        pair_slot="sustained" if pairing.sustained else "short",
    )  # fmt: skip
    if verdict is not None:
        state.pending_drifts[work.key] = AnchorPending(
            case, anchor, pairs.policy, pairing, verdict, max(request.budget_s, pairing.seconds)
        )
    return with_drift(work, case, found, drift, verdict)


def _recorded_drift(work: TimedWorkload, anchor: Anchor, judged: Judgement) -> Drift | None:
    """None where the anchor did other work and could not be paired: then nothing is known of a drift."""
    tolerance, identity = work.request.zone.delta, work.identity
    if identity.same_execution(anchor.identity):
        return drift_of(anchor, tolerance, 1.0, proven=False)
    if work.baseline is not None and identity.same_execution(work.baseline.identity):
        return drift_of(anchor, tolerance, anchor.ratio, proven=anchor.proven)
    if other_arguments(anchor.identity, identity):
        return None
    return drift_by_steps(anchor, tolerance, judged)
