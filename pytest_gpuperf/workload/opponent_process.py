"""The process that runs another revision's tests beside this one: started at its first use, one for the whole run."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

import pytest

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.child_command import revision_command
from pytest_gpuperf.context.child_process import RunningChild, errors_in, log_lines
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.model.task import ConfirmTask, OpponentTask
from pytest_gpuperf.timing.turns import Arrived, GoOn, Link, OtherSideLost, Quit, RunTest, TestEnded
from pytest_gpuperf.workload.recorded_revision import NotPaired, opponent_revision

START_S = 300.0
"""For its start, imports and collection included, and for a test to come to its workload, compilation included."""
GRACE_S = 10.0
"""For its end."""


class OpponentProcess:
    """One revision's process; it waits in the middle of a test for its turns, or between two tests."""

    def __init__(self, config: pytest.Config, worker: Worker, revision: Revision) -> None:
        """Start it.  Raises ``OtherSideLost`` if it cannot be started."""
        self._folder = scratch_folder("gpuperf-opponent-")
        self._log = Path(self._folder.name) / "log"
        self._test = ""
        """Node id of the test that it is in; empty between two."""
        self._at: Arrived | None = None
        """The workload of that test at which it waits."""
        to_read, to_write = os.pipe(), os.pipe()
        self.link = Link(to_read[0], to_write[1])
        task = OpponentTask(
            folder=Path(self._folder.name), top=revision.top, others=revision.others, tree=revision.tree,
            reading=to_write[0], writing=to_read[1],
        )  # fmt: skip
        command = revision_command(config, task, task.folder, worker.options.against_python, revision.archs)
        try:
            if command is None:
                raise OtherSideLost(f"{revision.name} has none of these test files")
            start = revision.tree / os.path.relpath(config.invocation_params.dir.resolve(), revision.top)
            self._child = RunningChild(
                command, start if start.is_dir() else revision.tree, self._log, worker.child_environment(),
                (task.reading, task.writing),
            )  # fmt: skip
        except OSError as problem:
            raise OtherSideLost(f"it cannot be started ({problem})") from None
        finally:
            os.close(task.reading)
            os.close(task.writing)

    @property
    def pid(self) -> int:
        return self._child.pid

    def arrive(self, key: Key) -> Arrived:
        """Let it come to a workload, and wait there for its turns.  Raises ``OtherSideLost`` where it does not."""
        self.set_out(key.node_id)
        found: Arrived | TestEnded = self._at or self._next()
        while isinstance(found, Arrived):
            if found.workload == key.workload:
                return found
            found = self._next()
        raise OtherWork(found.why or "its test passes there and does not come to this workload")

    def set_out(self, node_id: str) -> None:
        """Let it run this test as far as its first callable, without waiting for it.  Raises ``OtherSideLost``."""
        if self._test != node_id:
            self.leave()
            self.link.send(RunTest(node_id=node_id))
            self._test = node_id

    def leave(self) -> None:
        """Let it come to the end of its test: it has no work in flight then, and holds no arrays.

        Raises ``OtherSideLost``.
        """
        while self._test:
            self._next()

    def _next(self) -> Arrived | TestEnded:
        """Where it comes to next in its test, or how that ends."""
        if self._at is not None:
            self.link.send(GoOn())
            self._at = None
        found: Arrived | TestEnded = self.link.receive(Arrived | TestEnded, START_S)
        if isinstance(found, TestEnded):
            self._test = ""
        else:
            self._at = found
        return found

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OtherSideLost):
            self.link.send(Quit())
        self._child.end(0.0 if self._test else GRACE_S)
        self.link.close()
        self._folder.cleanup()

    def in_words(self, problem: OtherSideLost) -> str:
        """How it ended, if it did, and what it said."""
        status = self._child.waited(1.0)
        ended = f" (pytest exit status {status})" if status is not None else ""
        errors = errors_in(log_lines(self._log))
        return f"{problem}{ended}{f': {errors[0]}' if errors else ''}"


class OtherWork(OtherSideLost):
    """The revision's test does not come to the workload, or to another one of its name; its process is fine."""


OPPONENT: pytest.StashKey[tuple[str, OpponentProcess]] = pytest.StashKey()
"""The one that runs, and the commit that it stands for."""


def opponent_for(worker: Worker, revision: Revision) -> OpponentProcess:
    """This process's opponent, started at its first use.  Raises ``OtherSideLost``."""
    config = worker.config
    if OPPONENT in config.stash and config.stash[OPPONENT][0] != revision.commit:
        give_up(config)
    if OPPONENT not in config.stash:
        config.stash[OPPONENT] = revision.commit, OpponentProcess(config, worker, revision)
        config.add_cleanup(functools.partial(give_up, config))
    return config.stash[OPPONENT][1]


def set_out_early(config: pytest.Config) -> None:
    """Where a process is to pair callables, start their opponent: both come to the test at the same time.

    What is in its way is said when it is waited for.
    """
    task = config.stash[stash.OPTIONS].task
    if not isinstance(task, ConfirmTask) or not task.by_process or not task.together:
        return
    worker, key = stash.worker_of(config), task.by_process[0]
    if worker.has_gpu:
        with contextlib.suppress(NotPaired, OtherSideLost):
            opponent_for(worker, opponent_revision(worker, key)).set_out(key.node_id)


def leave_opponent(config: pytest.Config) -> None:
    """Let the opponent come to the end of its test, at the end of this process's: it holds no memory then."""
    if OPPONENT in config.stash:
        try:
            config.stash[OPPONENT][1].leave()
        except OtherSideLost:
            give_up(config)


def give_up(config: pytest.Config) -> None:
    """End the opponent; the next callable starts another one."""
    if OPPONENT in config.stash:
        opponent = config.stash[OPPONENT][1]
        del config.stash[OPPONENT]
        opponent.close()
