"""The process that runs another revision's tests beside this one: started at its first use, one for the whole run."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.context.child_command import revision_command
from pytest_gpuperf.context.child_process import RunningChild, errors_in, log_lines
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.model.task import OpponentTask
from pytest_gpuperf.timing.turns import Arrived, GoOn, Link, OtherSideLost, Quit, RunTest, TestEnded

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
        self._waits = False
        """Whether it waits at a workload of that test."""
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
        if self._test != key.node_id:
            self.leave()
            self.link.send(RunTest(node_id=key.node_id))
            self._test = key.node_id
        while isinstance(found := self._next(), Arrived):
            if found.workload == key.workload:
                return found
        raise OtherWork(found.why or "its test passes there and does not come to this workload")

    def leave(self) -> None:
        """Let it come to the end of its test: it has no work in flight then, and holds no arrays.

        Raises ``OtherSideLost``.
        """
        while self._test:
            self._next()

    def _next(self) -> Arrived | TestEnded:
        """Where it comes to next in its test, or how that ends."""
        if self._waits:
            self.link.send(GoOn())
            self._waits = False
        found: Arrived | TestEnded = self.link.receive(Arrived | TestEnded, START_S)
        self._waits = isinstance(found, Arrived)
        if isinstance(found, TestEnded):
            self._test = ""
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
