"""Confirming what was slower: a second process judges nothing, and leaves what it finds for ``second_process``."""

from __future__ import annotations

import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.context.early_stop import CheckedOnly
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.unpaired import LOOKS
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.timing.long_blocks import LONG_NS, rounds_of
from pytest_gpuperf.timing.pending_confirmations import Confirmation, of_pairs
from pytest_gpuperf.timing.rounds import NO_ROUNDS, Rounds
from pytest_gpuperf.workload.baseline_kernel import Opponent
from pytest_gpuperf.workload.checked_run import check_again
from pytest_gpuperf.workload.gate_process import pair_with_revision, wait_for_opponent
from pytest_gpuperf.workload.recorded_revision import NotPaired
from pytest_gpuperf.workload.timed_rounds import (
    FIRST_ROUNDS,
    ROUNDS_SHARE,
    TimedRounds,
    TimedWorkload,
    expected_ns,
    not_loaded,
    opponent_for,
    pair_with,
    take,
)


def confirm_time(work: TimedWorkload, task: ConfirmTask) -> TimedRounds:
    """Pair a workload once more, or take its rounds again, and leave what was found.

    Raises ``CheckedOnly`` after the last workload of the task: what else its test does is of no interest here.
    """
    request = work.request
    if work.key not in task.workloads:
        return TimedRounds(take(work, FIRST_ROUNDS, request.budget_s * ROUNDS_SHARE).rounds)
    return _confirm(work, task, task.workloads.index(work.key), opponent_for(work))


def _confirm(work: TimedWorkload, task: ConfirmTask, number: int, opponent: Opponent) -> TimedRounds:
    """Pair it with ``opponent``, or take its rounds where there is none to pair with, for the file of this number."""
    request = work.request
    if work.key in task.by_process:
        return _confirm_by_processes(work, task, number)
    if opponent.binary is None:
        return _leave_rounds(work, task, number, NO_ROUNDS, opponent.obstacle)
    expected = expected_ns(work) if request.pair_slot == "short" else 0.0
    long = expected >= LONG_NS
    taken = NO_ROUNDS if long else take(work, FIRST_ROUNDS, request.budget_s * ROUNDS_SHARE, duration_ns=expected)
    duration_ns = expected if long else taken.rounds[-1].midmean
    policy = Policy(delta=request.zone.delta, epsilon=request.zone.epsilon).confirming()
    left_s = request.budget_s - taken.seconds
    try:
        pairing = pair_with(
            work, opponent.binary, policy, duration_ns, left_s, request.pair_slot, opponent.configuration,
            opponent.arguments,
        )  # fmt: skip
    except LoadError as problem:
        return _leave_rounds(work, task, number, taken, not_loaded(problem))
    taken = rounds_of(pairing.blocks, work.worker.session.id) if long else taken
    _leave(work, task, number, taken, of_pairs(work.key, work.identity, pairing))
    return TimedRounds(taken.rounds)


def _confirm_by_processes(work: TimedWorkload, task: ConfirmTask, number: int) -> TimedRounds:
    """Pair a callable with another revision's, in a second pair of processes, for the file of this number."""
    request = work.request
    wait_for_opponent(work)  # not while rounds are taken
    taken = take(work, FIRST_ROUNDS, request.budget_s * ROUNDS_SHARE)
    policy = Policy(delta=request.zone.delta, epsilon=request.zone.epsilon).confirming()
    left_s = request.budget_s - taken.seconds
    try:
        pairing, _ = pair_with_revision(work, taken.rounds[-1].midmean, left_s, policy)
    except NotPaired as problem:
        return _leave_rounds(work, task, number, taken, str(problem))
    _leave(work, task, number, taken, of_pairs(work.key, work.identity, pairing))
    return TimedRounds(taken.rounds)


def _leave_rounds(work: TimedWorkload, task: ConfirmTask, number: int, taken: Rounds, obstacle: str) -> TimedRounds:
    """Go on to the last look, or until the budget is spent: the process that asked judges what there is then."""
    for look in LOOKS[LOOKS.index(FIRST_ROUNDS) :]:
        left_s = work.request.budget_s - taken.seconds
        if look > len(taken.rounds) and (left_s > 0 or not taken.rounds):
            taken = taken.followed_by(take(work, look - len(taken.rounds), left_s))
    _leave(work, task, number, taken, Confirmation(
        key=work.key, identity=work.identity, rounds=taken.rounds, disturbed=taken.disturbed, not_paired=obstacle
    ))  # fmt: skip
    return TimedRounds(taken.rounds)


def _leave(work: TimedWorkload, task: ConfirmTask, number: int, taken: Rounds, found: Confirmation) -> None:
    """Check the workload again and write what was found of it; ends the test, by ``CheckedOnly``, if it was the last.

    Raises what the check raises, and leaves nothing then.
    """
    check_again(work.worker, work.request, timed_runs=sum(one.samples for one in taken.rounds))
    files = task.files()
    write_whole(files[number], msgspec.json.encode(found))
    if all(file.exists() for file in files):
        raise CheckedOnly("every workload that waits for its confirmation has been timed")
