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
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.model.task import ConfirmTask, OpponentTask
from pytest_gpuperf.revision.recorded import NotPaired, revision_for
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.process_opponent import Link, OtherSideLost, Quit, Ready, Resume, RunTest, TestEnded

START_S = 300.0
"""For its start, imports and collection included, and for a test to reach its workload, compilation included."""
GRACE_S = 10.0
"""For its end."""


class RevisionProcess:
    """One revision's process; it waits at a workload in the middle of a test, or between two tests."""

    def __init__(self, config: pytest.Config, worker: Run, revision: Revision) -> None:
        """Start it.  Raises ``OtherSideLost`` if it cannot be started."""
        self._folder = scratch_folder("gpuperf-opponent-")
        self._log = Path(self._folder.name) / "log"
        self._test = ""
        """Node id of the test that it is in; empty between two."""
        self._at: Ready | None = None
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

    def arrive(self, key: Key) -> Ready:
        """Let it reach a workload, and wait there.  Raises ``OtherSideLost``, ``NotPaired`` where its test does not."""
        self.set_out(key.node_id)
        found: Ready | TestEnded = self._at or self._next()
        while isinstance(found, Ready):
            if found.workload == key.workload:
                return found
            found = self._next()
        raise NotPaired(found.why or "its test passes there and does not reach this workload")

    def set_out(self, node_id: str) -> None:
        """Let it run this test as far as its first callable, without waiting for it.  Raises ``OtherSideLost``."""
        if self._test != node_id:
            self.leave()
            self.link.send(RunTest(node_id=node_id))
            self._test = node_id

    def leave(self) -> None:
        """Let it end its test: it has no work in flight then, and holds no arrays.  Raises ``OtherSideLost``."""
        while self._test:
            self._next()

    def _next(self) -> Ready | TestEnded:
        """The next workload of its test, or how that ends."""
        if self._at is not None:
            self.link.send(Resume())
            self._at = None
        found: Ready | TestEnded = self.link.receive(Ready | TestEnded, START_S)
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

    def explained(self, problem: OtherSideLost) -> str:
        """How it ended, if it did, and its first error."""
        status = self._child.waited(1.0)
        ended = f" (pytest exit status {status})" if status is not None else ""
        errors = errors_in(log_lines(self._log))
        return f"{problem}{ended}{f': {errors[0]}' if errors else ''}"


RUNNING: pytest.StashKey[tuple[str, RevisionProcess]] = pytest.StashKey()
"""The one that runs, and the commit that it stands for."""


def process_for(worker: Run, revision: Revision) -> RevisionProcess:
    """This process's partner, started at its first use.  Raises ``OtherSideLost``."""
    config = worker.config
    if RUNNING in config.stash and config.stash[RUNNING][0] != revision.commit:
        give_up(config)
    if RUNNING not in config.stash:
        config.stash[RUNNING] = revision.commit, RevisionProcess(config, worker, revision)
        config.add_cleanup(functools.partial(give_up, config))
    return config.stash[RUNNING][1]


def set_out_early(config: pytest.Config) -> None:
    """In a process that confirms callables, start the partner: both reach the test at the same time.

    A problem is reported when it is waited for.
    """
    task = config.stash[stash.OPTIONS].task
    if not isinstance(task, ConfirmTask) or not task.by_process or not task.together:
        return
    worker, key = stash.run_of(config), task.by_process[0]
    if worker.has_gpu:
        with contextlib.suppress(NotPaired, OtherSideLost):
            process_for(worker, revision_for(worker, key)).set_out(key.node_id)


def leave_test(config: pytest.Config) -> None:
    """Let the partner end its test, at the end of this process's: it holds no memory then."""
    if RUNNING in config.stash:
        try:
            config.stash[RUNNING][1].leave()
        except OtherSideLost:
            give_up(config)


def give_up(config: pytest.Config) -> None:
    """End the partner; the next callable starts another one."""
    if RUNNING in config.stash:
        process = config.stash[RUNNING][1]
        del config.stash[RUNNING]
        process.close()
