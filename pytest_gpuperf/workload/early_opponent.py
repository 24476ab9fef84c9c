"""The opponent of callables is started before they are reached: it starts, imports and collects while others run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.workload_records import rounds_on
from pytest_gpuperf.timing.turns import OtherSideLost
from pytest_gpuperf.workload.changed_callables import may_have_changed
from pytest_gpuperf.workload.opponent_process import opponent_for
from pytest_gpuperf.workload.recorded_revision import NotPaired, opponent_revision

EARLY: pytest.StashKey[set[str]] = pytest.StashKey()
"""Test modules that an opponent was looked for ahead of their callables."""


def start_early(item: pytest.Item) -> None:
    """After a module's first test, start the opponent that callables of its other tests will be paired with.

    A process takes a second or two to start, to import and to collect, and uses no GPU before it is told which test to
    run.  What is in its way is said when it is asked for.
    """
    config, module = item.config, item.nodeid.partition("::")[0]
    worker, done = stash.worker_of(config), config.stash.setdefault(EARLY, set())
    options, found = worker.options, config.stash[stash.FINDING].found if stash.FINDING in config.stash else None
    applies = options.gates and options.update is None and options.pair_callables != "off" and worker.revision is None
    if not applies or found is None or worker.opened is None or module in done:
        return
    done.add(module)
    with contextlib.suppress(NotPaired, OtherSideLost, BaselineError):
        to_come = (
            key for key in _to_be_paired(worker, module) if key.node_id in found.selected and key.node_id != item.nodeid
        )
        key = next(to_come, None)
        if key is not None:
            opponent_for(worker, opponent_revision(worker, key))


def _to_be_paired(worker: Worker, module: str) -> Iterator[Key]:
    """Callables on record that rounds prove nothing of, or whose code may have changed.  Raises ``BaselineError``.

    None of a module whose tests take times of the CPU: a process that starts would disturb those.
    """
    target = worker.device.facts.slug
    sessions = {one.id: one for one in worker.store.sessions(target, module)}
    tests = worker.store.time_tests(target, module)
    if any(record.beside is not None for records in tests.values() for record in records.values()):
        return
    for test, records in tests.items():
        for name, record in records.items():
            key = Key(module=module, test=test, workload=name)
            if record.identity.launch != "callable":
                continue
            if not rounds_on(worker.device.facts.uuid, record, sessions) or may_have_changed(worker, key):
                yield key
