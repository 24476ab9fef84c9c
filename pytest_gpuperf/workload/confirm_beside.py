"""Times of the CPU that got worse or better, once more in a fresh process before their test is reported.

The first part of this module runs in the confirming process, the second in the one that gates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.atomic_write import scratch_folder, write_whole
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.early_stop import CheckedOnly
from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge.beside_verdict import decided, judge_host_time, unheard_of
from pytest_gpuperf.judge.policy import CONFIRMATION_ALPHA
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.verdict import Judgement
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
    budgets = sum(one.budget_s for pending in waiting.values() for one in pending)
    limit_s = TIMEOUT_S + 4 * budgets + LIMIT_FACTOR * state.seconds_of_this_test(item)
    with scratch_folder("gpuperf-beside-") as name:
        task = ConfirmTask(folder=Path(name), workloads=(), beside=tuple(waiting))
        problem = run_second(item, worker, task, limit_s)
        for file, pending in zip(task.files(), waiting.values(), strict=True):
            found = _left(file)
            for one in pending:
                replace_judgement(book, settled(one, found.get(one.kind, ()), problem))


def give_up_beside(state: RunState, book: TestBook) -> None:
    """End the wait of a test that was ended before it could be confirmed."""
    for pending in _waiting(state, book).values():
        for one in pending:
            replace_judgement(
                book, unheard_of(one.judgement, "the test was failed or stopped by pytest's own means")
            )  # fmt: skip


def settled(pending: BesidePending, r: tuple[float, ...], problem: str) -> Judgement:
    """The final judgement, from log ratios of a second process; ``problem``: why there are none."""
    if not r:
        return unheard_of(pending.judgement, problem)
    policy = dataclasses.replace(pending.policy.confirming(), alpha_faster=CONFIRMATION_ALPHA)
    second = decided(r, pending.record, policy, stopped=True)
    first = pending.judgement
    return judge_host_time(first.key, first.target, pending.kind, pending.paired, pending.time_ns, second)


def _waiting(state: RunState, book: TestBook) -> dict[Key, list[BesidePending]]:
    keys = [work.key for work in book.workloads.values()]
    return {key: state.pending_beside.pop(key) for key in keys if key in state.pending_beside}


def _left(file: Path) -> Mapping[str, tuple[float, ...]]:
    """What the process found of one workload; nothing where it did not come to it."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, tuple[float, ...]])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
