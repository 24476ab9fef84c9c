"""A child process that runs tests on request, one after another: its end, and that of the process that asks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.model.evidence import is_below
from pytest_gpuperf.model.task import ConfirmTask, ConfirmTest, RevisionTask
from pytest_gpuperf.process.children import LOG_LINES, RunningChild, errors_in, log_lines
from pytest_gpuperf.results import Ended, may_measure
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.process_reference import Link, OtherSideLost, Resume, RunTest, Started, TestEnded

START_S = 3600.0
"""Bound of a child's start, imports and collection included: for hangs alone."""
GRACE_S = 10.0
"""For the end of a child whose link is closed."""

# --- in the process that asks --------------------------------------------------------------------


class ServingChild:
    """The child, and the link to it."""

    def __init__(self, command: Callable[[Path, int, int], list[str]], cwd: Path, environ: Mapping[str, str]) -> None:
        """``command`` takes a folder for the child's files, and the file descriptors that it reads and writes.

        Raises ``OtherSideLost`` if it cannot be started, and what ``command`` raises.
        """
        to_read, to_write = os.pipe(), os.pipe()
        theirs = to_write[0], to_read[1]
        self.link = Link(to_read[0], to_write[1])
        self._scratch = TemporaryDirectory(prefix="gpuperf-child-")
        folder = Path(self._scratch.name)
        self._log = folder / "log"
        try:
            self._child = RunningChild(command(folder, *theirs), cwd, self._log, environ, theirs)
        except BaseException as problem:
            self.link.close()
            if isinstance(problem, OSError):
                raise OtherSideLost(f"it cannot be started ({problem})") from None
            raise
        finally:
            for one in theirs:
                os.close(one)

    def close(self, *, at_once: bool = False) -> None:
        """End it, which takes a second or two once its link is closed if it waits for a request."""
        self.link.close()
        self._child.end(0.0 if at_once else GRACE_S)
        self._scratch.cleanup()

    def explained(self, problem: OtherSideLost) -> str:
        """How it ended, if it did, and its first error."""
        status = self._child.waited(1.0)
        ended = f" (pytest exit status {status})" if status is not None else ""
        return "".join([str(problem), ended, *(f": {error}" for error in errors_in(log_lines(self._log))[:1])])

    def last_output(self) -> list[str]:
        return log_lines(self._log)[-LOG_LINES:]


# --- in the child --------------------------------------------------------------------------------

HOW = {
    "passed": "", "failed": "its test fails there: {}", "skipped": "its test is skipped there: {}",
    "xfailed": "its test was expected to fail there, and did: {}",
}  # fmt: skip
"""Why a test that ended so left no evidence, or not all of it."""


class TestServer:
    """A plugin of the child, in place of pytest's own loop."""

    __test__ = False

    def __init__(self, config: pytest.Config, task: ConfirmTask | RevisionTask) -> None:
        self.config = config
        self.link = Link(task.reading, task.writing)
        self.items: dict[str, pytest.Item] = {}
        """Its tests, by node id."""

    @property
    def run(self) -> Run:
        return stash.run_of(self.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer requests until the GPU is lost: this process ends then, and another is started for the next."""
        self.items = self.items or {item.nodeid: item for item in session.items}
        _ = self.run.has_gpu  # opens the GPU while the other side collects
        with contextlib.suppress(OtherSideLost):  # there is nobody to work for
            self.link.send(Started(tests=frozenset(node for node, item in self.items.items() if may_measure(item))))
            while not self.run.gpu_lost:
                request = self.link.receive(ConfirmTest | RunTest | Resume)
                if not isinstance(request, Resume):  # of a workload whose test has ended
                    known = request.node_id in self.items
                    self.link.send(self.answer(request) if known else self.unknown(request.node_id))
        return True

    def answer(self, request: Any) -> TestEnded:
        """Run one of its tests."""
        raise NotImplementedError

    def run_test(self, item: pytest.Item, following: pytest.Item | None = None) -> TestEnded:
        """Run a test once more, as if it were the first time."""
        run, node_id = self.run, item.nodeid
        run.results.ends.pop(node_id, None)
        run.results.by_test.pop(node_id, None)
        item.session._setupstate.teardown_exact(item)  # the test before may have announced another one
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if run.opened is not None and not run.gpu_lost:
            run.opened.release_unused()
        end = run.results.ends.get(node_id, Ended("skipped", "it did not run"))
        evidence = run.results.by_test.get(node_id)
        early = evidence is not None and evidence.status != "complete" and bool(evidence.workloads)
        return TestEnded(
            why="" if end.how == "skipped" and early else HOW[end.how].format(end.reason), failed=end.how == "failed",
            evidence=evidence, last=bool(run.gpu_lost),
        )  # fmt: skip

    def unknown(self, node_id: str) -> TestEnded:
        """Why there is no such test; empty if the reason is not known."""
        found = self.run.results.so_far
        module = node_id.partition("::")[0]
        for how, places in (("could not be collected", found.failed), ("skips itself", found.skipped)):
            for place, why in places.items():
                if is_below(node_id, place):
                    return TestEnded(why=f"its file {how} there: {why}")
        why = ""
        if node_id in found.tests:
            why = "its test is left out there, by settings or hooks"
        elif module not in found.modules and (self.config.rootpath / module).is_file():
            why = "its file exists there, but settings or conftests there leave it out"
        return TestEnded(why=why)
