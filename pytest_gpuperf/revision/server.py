"""The process of another revision runs a test on request of the process that gates; this module is a plugin there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.device.lock import HELD_VARIABLE
from pytest_gpuperf.model.evidence import is_below
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.results import Ended, may_measure
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.timing.process_reference import Link, OtherSideLost, Resume, RunTest, Started, TestEnded

HOW = {
    "passed": "", "failed": "its test fails there: {}", "skipped": "its test is skipped there: {}",
    "xfailed": "its test was expected to fail there, and did: {}",
}  # fmt: skip
"""Why a test that ended so left no evidence, or not all of it."""


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(args: list[str], parser: pytest.Parser) -> Generator[None]:
    """Leave out options of plugins and conftests that this side lacks, each with the word after it if it is loose."""
    yield
    known, unknown = parser.parse_known_and_unknown_args(args)
    loose, options = {*unknown, *known.file_or_dir}, {word for word in unknown if word.startswith("-")}
    pairs = zip(["", *args], list(args), strict=False)
    args[:] = [word for before, word in pairs if word not in options and not (before in options and word in loose)]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if isinstance(task := config.stash[stash.OPTIONS].task, RevisionTask):
        config.pluginmanager.register(RevisionServer(config, task), "gpuperf-revision")


class RevisionServer:
    """Runs the tests that are asked for, in place of pytest's own loop."""

    def __init__(self, config: pytest.Config, task: RevisionTask) -> None:
        self._config = config
        self._link = Link(task.reading, task.writing)
        foreign_files_of(config).note_reads()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        _ = stash.run_of(self._config).has_gpu  # opens the GPU while the other side collects
        with contextlib.suppress(OtherSideLost):  # there is nobody to work for
            self._link.send(Started(tests=frozenset(node for node, item in items.items() if may_measure(item))))
            self._serve(items)
        return True

    def _serve(self, items: Mapping[str, pytest.Item]) -> None:
        """Run tests that are asked for; a process that has lost its GPU ends, and another is started for the next."""
        while not stash.run_of(self._config).gpu_lost:
            request = self._link.receive(RunTest | Resume)
            if isinstance(request, RunTest):
                known = request.node_id in items
                self._link.send(self._ran(items, request) if known else self._unknown(request.node_id))

    def _ran(self, items: Mapping[str, pytest.Item], request: RunTest) -> TestEnded:
        run, node_id, item = stash.run_of(self._config), request.node_id, items[request.node_id]
        results = run.results
        results.ends.pop(node_id, None)
        results.by_test.pop(node_id, None)
        run.link, run.describes = self._link if request.how == "pair" else None, request.how == "describe"
        os.environ |= {} if run.describes else {HELD_VARIABLE: run.device.facts.uuid}
        item.session._setupstate.teardown_exact(item)  # the test before may have announced another one
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=items.get(request.following))
        os.environ.pop(HELD_VARIABLE, None)
        if run.opened is not None and not run.gpu_lost:
            run.opened.release_unused()
        end, evidence = results.ends.get(node_id, Ended("skipped", "it did not run")), results.by_test.get(node_id)
        early = evidence is not None and evidence.status != "complete" and bool(evidence.workloads)
        return TestEnded(
            why="" if end.how == "skipped" and early else HOW[end.how].format(end.reason), failed=end.how == "failed",
            evidence=evidence, last=bool(run.gpu_lost), foreign=foreign_files_of(self._config).lines(),
        )  # fmt: skip

    def _unknown(self, node_id: str) -> TestEnded:
        """Why there is no such test; empty if the reason is not known."""
        found = stash.run_of(self._config).results.so_far
        module = node_id.partition("::")[0]
        for how, places in (("could not be collected", found.failed), ("skips itself", found.skipped)):
            for place, why in places.items():
                if is_below(node_id, place):
                    return TestEnded(why=f"its file {how} there: {why}")
        why = ""
        if node_id in found.tests:
            why = "its test is left out there, by settings or hooks"
        elif module not in found.modules and (self._config.rootpath / module).is_file():
            why = "its file exists there, but settings or conftests there leave it out"
        return TestEnded(why=why)
