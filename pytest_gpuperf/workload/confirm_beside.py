"""Times of the CPU that got worse or better, once more in fresh processes before their test is reported.

The first part of this module runs in the confirming process, the second in the one that gates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.atomic_write import scratch_folder, write_whole
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.early_stop import CheckedOnly
from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge.beside_verdict import (
    decided,
    judge_host_time,
    least_time_ns,
    told_from_the_record,
    unheard_of,
)
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.timing.pending_confirmations import BesidePending
from pytest_gpuperf.workload.second_process import LIMIT_FACTOR, TIMEOUT_S, replace_judgement, run_second

# --- in the confirming process -------------------------------------------------------------------


def leave_blocks(task: ConfirmTask, state: RunState, key: Key) -> None:
    """Write the log ratios of this workload's blocks; ends the test, by ``CheckedOnly``, if it was the last."""
    if key not in task.beside:
        return
    files = task.files()
    write_whole(files[task.beside.index(key)], msgspec.json.encode(state.confirming_blocks.get(key, {})))
    if all(file.exists() for file in files):
        raise CheckedOnly("every workload that waits for its confirmation has been measured")


# --- in the process that gates -------------------------------------------------------------------


def confirm_beside(item: pytest.Item, worker: Worker, state: RunState, book: TestBook) -> None:
    """Settle what waits for confirmation in one test: its judgements in ``book`` become final."""
    waiting = _waiting(state, book)
    if not waiting:
        return
    later = dict[tuple[Key, str], list[tuple[float, ...]]]()
    while waiting:
        found, problem = _in_another_process(item, worker, state, waiting)
        for key, pending in list(waiting.items()):
            left = list[BesidePending]()
            for one in pending:
                processes = later.setdefault((key, one.kind), [])
                processes.append(found.get(key, {}).get(one.kind, ()))
                judged = settled(one, processes, problem)
                if judged is None:
                    left.append(one)
                else:
                    replace_judgement(book, judged)
            waiting[key] = left
        waiting = {key: left for key, left in waiting.items() if left}


def _in_another_process(
    item: pytest.Item, worker: Worker, state: RunState, waiting: Mapping[Key, Sequence[BesidePending]]
) -> tuple[dict[Key, Mapping[str, tuple[float, ...]]], str]:
    """Log ratios of another process's blocks by workload and kind, and why there are none where there are none."""
    budgets = sum(one.budget_s for pending in waiting.values() for one in pending)
    limit_s = TIMEOUT_S + 4 * budgets + LIMIT_FACTOR * state.seconds_of_this_test(item)
    with scratch_folder("gpuperf-beside-") as name:
        task = ConfirmTask(folder=Path(name), workloads=(), beside=tuple(waiting))
        problem = run_second(item, worker, task, limit_s)
        return {key: _left(file) for key, file in zip(waiting, task.files(), strict=True)}, problem


def give_up_beside(state: RunState, book: TestBook) -> None:
    """End the wait of a test that was ended before it could be confirmed."""
    for pending in _waiting(state, book).values():
        for one in pending:
            replace_judgement(
                book, unheard_of(one.judgement, "the test was failed or stopped by pytest's own means")
            )  # fmt: skip


def settled(pending: BesidePending, processes: Sequence[Sequence[float]], problem: str) -> Judgement | None:
    """The final judgement, from log ratios of further ``processes``; None where one more is to be heard.

    ``problem``: why the last one has none.
    """
    if not processes[-1]:
        return unheard_of(pending.judgement, problem)
    policy = pending.policy.confirming()
    later = [decided(r, pending.record, policy, stopped=True) for r in processes]
    first, least = pending.judgement, least_time_ns(pending.record, pending.policy)
    judged = judge_host_time(
        first.key, first.target, pending.kind, pending.paired, pending.time_ns, least, later
    )  # fmt: skip
    ratios = [one.ratio for one in (pending.paired, *later)]
    is_open = judged.verdict is Verdict.WORSE and not told_from_the_record(ratios, pending.record)
    return None if is_open else judged


def _waiting(state: RunState, book: TestBook) -> dict[Key, list[BesidePending]]:
    keys = [work.key for work in book.workloads.values()]
    return {key: state.pending_beside.pop(key) for key in keys if key in state.pending_beside}


def _left(file: Path) -> Mapping[str, tuple[float, ...]]:
    """What the process found of one workload; nothing where it did not come to it."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, tuple[float, ...]])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
