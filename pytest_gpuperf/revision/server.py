"""The process that stands for another revision: it runs a test when the process that gates says so.

With ``evidence`` it first runs all of them once, and leaves what they run in a file.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Set

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.model.task import FOUND_FILE, RevisionFound, RevisionTask
from pytest_gpuperf.results import Ended, Results, TestsFound, failure_line, skip_reason
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.timing.process_opponent import (
    PATIENCE_S,
    Left,
    Link,
    OtherSideLost,
    Quit,
    Resume,
    RunTest,
    TestEnded,
)


class RevisionServer:
    """A plugin that ``session.reporting`` registers in such a process."""

    def __init__(self, config: pytest.Config, task: RevisionTask) -> None:
        self._config, self._task = config, task
        self._link = Link(task.reading, task.writing)
        self._failures: dict[str, str] = {}
        foreign_files_of(config).note_reads()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        try:
            if self._task.evidence:
                self._run_all(session)
            self._serve({item.nodeid: item for item in session.items})
        except OtherSideLost:
            pass  # there is nobody to work for
        return True

    def _run_all(self, session: pytest.Session) -> None:
        """Run every test as pytest does, and leave what they run, also if one of them ends the run."""
        try:
            for item, following in itertools.zip_longest(session.items, session.items[1:]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.shouldstop or session.shouldfail:
                    break
        finally:
            leave_evidence(self._config, stash.run_of(self._config).results, self._task)
            self._link.send(Left())
        stash.run_of(self._config).give_memory_back()

    def _serve(self, items: Mapping[str, pytest.Item]) -> None:
        """Run tests that are asked for; a process that has lost its GPU ends, and another is started for the next."""
        state = stash.run_of(self._config)
        state.link = self._link
        while not state.gpu_lost:
            request = self._link.receive(RunTest | Resume | Quit, PATIENCE_S)
            if isinstance(request, Quit):
                return
            if isinstance(request, RunTest):
                self._link.send(TestEnded(why=self._run(items.get(request.node_id), request.node_id)))

    def _run(self, item: pytest.Item | None, node_id: str) -> str:
        """Run a test: why it did not pass; empty if it did."""
        if item is None:
            return "there is no such test"
        self._failures.pop(node_id, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self._failures.get(node_id, "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            why = failure_line(report) or "no word why"
            self._failures.setdefault(report.nodeid, f"its test fails there: {why}")
        elif report.skipped:
            self._failures.setdefault(report.nodeid, f"its test is skipped there: {skip_reason(report)}")


def leave_evidence(config: pytest.Config, book: Results, task: RevisionTask) -> None:
    """Write what this process found for the run that started it; nothing if it was ended before its first test."""
    if book.found is None:
        return
    early = frozenset(one.node_id for one in book.evidence if one.status != "complete" and one.workloads)
    found = RevisionFound(
        tests=tuple(book.evidence), lacking=_lacking(book.found, book.ends, book.failures, early),
        collected=frozenset(book.found.modules), failed=frozenset(book.failures),
        foreign=foreign_files_of(config).lines(),
        device=next((one.device for one in book.evidence if one.device is not None), None),
    )  # fmt: skip
    write_whole(task.folder / FOUND_FILE, msgspec.json.encode(found))


def _lacking(
    found: TestsFound, ends: Mapping[str, Ended], failures: Mapping[str, str], early: Set[str]
) -> dict[str, str]:
    """Why tests and files left no evidence, or not all of it.

    ``early`` are those that came to some of their kernels without a GPU, which pytest counts as skipped.
    """
    lacking = dict.fromkeys(found.failed, "its file could not be collected there")
    lacking |= {node: f"its file skips itself there: {why}" for node, why in found.skipped.items()}
    lacking |= dict.fromkeys(found.tests - found.selected, "its test is left out there, by settings or hooks")
    lacking |= dict.fromkeys(found.selected - ends.keys(), "the run of its tests was ended there before it was over")
    for node, end in ends.items():
        if end.how == "skipped" and node not in early:
            lacking[node] = f"its test is skipped there: {end.reason}"
        elif end.how == "xfailed":
            lacking[node] = f"its test was expected to fail there, and did: {end.reason}"
    return lacking | {node: f"its test fails there: {why}" for node, why in failures.items()}
