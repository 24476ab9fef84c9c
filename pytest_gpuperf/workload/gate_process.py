"""Gating a callable against another revision: that revision's own process runs it, and the two take turns."""

from __future__ import annotations

import contextlib
import secrets

from pytest_gpuperf.judge.comparability import other_arguments
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.recording_choice import choose_recording
from pytest_gpuperf.judge.time_case import TimeCase, TimeStep
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.timing.paired_processes import SHORT_NS, pair_processes, zone_of
from pytest_gpuperf.timing.paired_run import Pairing
from pytest_gpuperf.timing.turns import Arrived, OtherSideLost
from pytest_gpuperf.workload.changed_callables import may_have_changed
from pytest_gpuperf.workload.opponent_process import OtherWork, give_up, opponent_for
from pytest_gpuperf.workload.recorded_revision import NotPaired, opponent_revision
from pytest_gpuperf.workload.timed_rounds import ROUNDS_SHARE, TimedWorkload


def pairs_by_commit(work: TimedWorkload, case: TimeCase, step: TimeStep) -> bool:
    """Whether a callable is to run beside that of the commit on its record, after the rounds of ``case``.

    Rounds resolve less, so it does where its code may have changed.  Not where rounds see more than two processes do:
    work of a few microseconds, on the GPU that recorded it.
    """
    asked_for = work.worker.options.pair_callables
    if work.request.launch is not None or case.baseline is None or asked_for == "off":
        return False
    recording = choose_recording(case.baseline, case.sessions, case.session)
    if recording.same_gpu and case.rounds[-1].midmean < SHORT_NS:
        return False
    verdict = step.judgement.verdict
    if asked_for == "always" or verdict not in (Verdict.SAME, Verdict.NOT_SLOWER, Verdict.FASTER):
        return True
    return verdict is not Verdict.FASTER and may_have_changed(work.worker, work.key)


def pair_with_revision(
    work: TimedWorkload, duration_ns: float, left_s: float, policy: Policy
) -> tuple[Pairing, Policy]:
    """Paired blocks of the callable against the revision's, and the policy that they were judged by.

    ``left_s`` is what rounds have left of the budget.  Where they took more than their share, since nobody knew that
    pairs would follow, these have theirs all the same.  Raises ``NotPaired``.
    """
    worker, request, revision = work.worker, work.request, opponent_revision(work.worker, work.key)
    delta, epsilon = zone_of(policy.delta, policy.epsilon, duration_ns)
    policy = Policy(delta=delta, epsilon=epsilon, alpha=policy.alpha, alpha_faster=policy.alpha_faster)
    opponent = None
    try:
        opponent = opponent_for(worker, revision)
        worker.give_memory_back()
        _require_same_work(work, opponent.arrive(work.key))
        pairing = pair_processes(
            worker.device, work.timer, opponent.link, request.workload, policy, seed=secrets.randbits(32),
            reset=request.reset, cache=request.cache, duration_ns=duration_ns,
            budget_s=max(left_s, (1 - ROUNDS_SHARE) * request.budget_s),
        )  # fmt: skip
    except OtherWork as problem:
        raise NotPaired(str(problem)) from None
    except OtherSideLost as problem:
        why = opponent.in_words(problem) if opponent is not None else problem
        give_up(worker.config)
        raise NotPaired(str(why)) from None
    return pairing, policy


def wait_for_opponent(work: TimedWorkload) -> None:
    """Wait until the revision's process has come to the callable; ``pair_with_revision`` says what is in its way."""
    with contextlib.suppress(NotPaired, OtherSideLost):
        opponent_for(work.worker, opponent_revision(work.worker, work.key)).arrive(work.key)


def _require_same_work(work: TimedWorkload, there: Arrived) -> None:
    """Raise ``OtherWork`` if the other side's workload is not this one."""
    differs = other_arguments(there.identity, work.identity)
    if there.leaks:
        raise OtherWork(f"the revision's process ran code that is not its own: {there.leaks[0]}")
    if there.identity.launch != work.identity.launch:
        raise OtherWork(f"the workload was {there.identity.launch} there and is {work.identity.launch}")
    if differs:
        raise OtherWork("; ".join(differs))
