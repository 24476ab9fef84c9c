"""A second opinion: what was slower is timed once more in a fresh process, before its test is reported.

Where a cubin was placed in one process cannot be randomised away inside it, so no test fails on the word of one.
``confirm_time`` is what the other process does, and ``timing.pending_confirmations`` makes a verdict of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

import msgspec
import pytest

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.child_process import LOG_LINES, errors_in, log_lines, run_task
from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.device.device_errors import LockTimeout, LockUnavailable
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.judge.paired_verdict import slower_here_alone, unheard
from pytest_gpuperf.judge.process_pairs import (
    MOST_PAIRS,
    disproven_by_pairs,
    in_pairs,
    lean_slower,
    proven_by_pairs,
)
from pytest_gpuperf.judge.two_sample import process_spread
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.timing.pending_confirmations import (
    Confirmation,
    PairedPending,
    PendingConfirmation,
    is_not_slower,
    ratios_of,
    settled,
)
from pytest_gpuperf.timing.until_decided import LEANING_BUDGETS

TIMEOUT_S = 120.0
"""Least bound of a confirming process, besides what its workloads may take."""
LIMIT_FACTOR = 3.0
"""By so much longer than here its start, imports included, and its test may take."""


def confirm(item: pytest.Item, worker: Worker, state: RunState, book: TestBook) -> None:
    """Settle what waits for confirmation in one test: its judgements in ``book`` become final."""
    pending = _waiting(state, book)
    if not pending:
        return
    if state.confirmations_left < 1:
        limit = worker.options.confirmations
        confirmed = numbered(limit, "regression", "of this process was confirmed", "of this process were confirmed")
        why = f"{confirmed} already (--gpuperf-confirmations={limit}); run this one by itself"
        if limit == 0:
            why = "--gpuperf-confirmations=0 allows none"
        judged = [unheard(one.judgement, why) for one in pending]
    else:
        limit_s = time_limit_s(pending, len(book.workloads)) + LIMIT_FACTOR * state.seconds_of_this_test(item)
        judged = _confirmed(item, worker, pending, limit_s)
        state.confirmations_left -= any(one.verdict is Verdict.SLOWER for one in judged)
    for judgement in judged:
        replace_judgement(book, judgement)


def give_up(state: RunState, book: TestBook) -> None:
    """End the wait of a test that was ended before it could be confirmed."""
    for pending in _waiting(state, book):
        replace_judgement(book, unheard(pending.judgement, "the test was failed or stopped by pytest's own means"))


def _waiting(state: RunState, book: TestBook) -> list[PendingConfirmation]:
    """Take over what waits of one test."""
    keys = [work.key for work in book.workloads.values()]
    return [state.pending.pop(key) for key in keys if key in state.pending]


def time_limit_s(pending: Sequence[PendingConfirmation], workloads: int) -> float:
    """Seconds for what the second process of a test with so many ``workloads`` measures.

    Those not ``pending`` take rounds.  Callables that it leaves undecided have some budgets each.  Its start and the
    test itself come on top.
    """
    budgets = [one.budget_s * (LEANING_BUDGETS if _is_by_processes(one) else 1) for one in pending]
    return TIMEOUT_S + sum(budgets) + max(0, workloads - len(budgets)) * max(budgets)


def _confirmed(
    item: pytest.Item, worker: Worker, pending: Sequence[PendingConfirmation], limit_s: float
) -> list[Judgement]:
    found, problem = _seen_by_second(item, worker, pending, limit_s)
    judged = []
    for one, seen in zip(pending, found, strict=True):
        if seen is None:
            judged.append(unheard(one.judgement, problem))
        elif _is_by_processes(one):
            judged.append(_over_pairs(item, worker, one, seen, limit_s))
        else:
            judged.append(settled(one, seen))
    return judged


def _is_by_processes(pending: PendingConfirmation) -> TypeGuard[PairedPending]:
    """Whether it is a callable that was paired with another revision's process."""
    return isinstance(pending, PairedPending) and not pending.case.identity.code


def _over_pairs(
    item: pytest.Item, worker: Worker, pending: PairedPending, second: Confirmation, limit_s: float
) -> Judgement:
    """Settle a callable by a second pair of processes, and by more where processes may well be so far apart.

    The gating process is no fresh one: it had the GPU first, and other tests may have run in it.  So where a pair of
    fresh ones is not slower, the word of another such pair outvotes it, unless what processes of the record are apart
    says that one is enough, or the two are slower by more than the tolerance in the mean.
    """
    baseline, pairs = pending.case.baseline, [second]
    assert baseline is not None
    spread = process_spread(baseline.rounds)
    while (judged := settled(pending, pairs[-1])).verdict is Verdict.SLOWER:
        ratios = ratios_of(pending, pairs)
        if len(ratios) >= MOST_PAIRS or proven_by_pairs(ratios, pending.policy.delta, spread):
            told = () if len(pairs) == 1 else (in_pairs(ratios),)
            return msgspec.structs.replace(judged, notes=(*judged.notes, *told))
        (another,), problem = _seen_by_second(item, worker, [pending], limit_s)
        if another is None:
            return unheard(pending.judgement, problem)
        pairs.append(another)
    if judged.verdict is not Verdict.INCONCLUSIVE:
        return judged
    disproven = disproven_by_pairs(ratios_of(pending, pairs)[1:], pending.policy.epsilon, spread)
    if not disproven and len(pairs) == 1 and is_not_slower(pending, second):
        (another,), problem = _seen_by_second(item, worker, [pending], limit_s)
        if another is not None:
            pairs.append(another)
            fresh = ratios_of(pending, pairs)[1:]
            disproven = is_not_slower(pending, another) and not lean_slower(fresh, pending.policy.delta)
            problem = f"a third pair of processes found x{fresh[-1]:.3f}"
        judged = msgspec.structs.replace(judged, reason=f"{judged.reason}; {problem}")
    return slower_here_alone(judged, ratios_of(pending, pairs)[1:], pending.policy.epsilon) if disproven else judged


def _seen_by_second(
    item: pytest.Item, worker: Worker, pending: Sequence[PendingConfirmation], limit_s: float
) -> tuple[list[Confirmation | None], str]:
    """What a second process finds of each workload, None where it leaves nothing; and why, where that is so."""
    with scratch_folder("gpuperf-confirm-") as name:
        paired = tuple(one.case.key for one in pending if _is_by_processes(one))
        task = ConfirmTask(folder=Path(name), workloads=tuple(one.case.key for one in pending), by_process=paired,
                           together=_room_for_two(worker))  # fmt: skip
        problem = run_second(item, worker, task, limit_s)
        found = [_left(file) for file in task.files()]
    return found, problem


def _room_for_two(worker: Worker) -> bool:
    """Whether two more processes may hold what this test held at its most."""
    memory = worker.device.memory()
    return 2 * memory.peak <= memory.free + memory.unused


def _left(file: Path) -> Confirmation | None:
    """What the process found of one workload; None where it did not come to it."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Confirmation)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def run_second(item: pytest.Item, worker: Worker, task: ConfirmTask, limit_s: float) -> str:
    """Run the confirming process; why it left nothing, if it leaves nothing."""
    log = task.folder / "log"
    worker.give_memory_back()  # the child needs as much memory as this test did
    try:
        with worker.device.lock():  # not by the child: what it would wait for others is not its own time
            status = run_task(item.config, task, task.folder, log, limit_s, ["-x"], worker.child_environment())
    except (LockTimeout, LockUnavailable) as error:
        problem = f"a second process did not get the GPU ({error})"
    except OSError as error:
        problem = f"a second process could not be started ({error})"
    else:
        if status == 0:
            return "the second process did not come to this workload"
        came_to = f"was not done after {limit_s:.0f} s" if status is None else f"failed (pytest exit status {status})"
        problem = f"the second process {came_to}"
    lines = log_lines(log)
    errors = errors_in(lines)
    item.add_report_section("call", "gpuperf confirmation", "\n".join(lines[-LOG_LINES:]))
    return f"{problem}: {errors[0]}" if errors else problem


def replace_judgement(book: TestBook, judgement: Judgement) -> None:
    """Put a final judgement in the place of the one that waited."""
    work = book.workloads[judgement.key.workload]
    judgements = tuple(judgement if one.kind == judgement.kind else one for one in work.judgements)
    book.add(msgspec.structs.replace(work, judgements=judgements))
