"""The run loop of a process that stands for another revision: tests are run when the other process says so."""

from __future__ import annotations

import pytest

from pytest_gpuperf.context.tests_found import failure_line, skip_reason
from pytest_gpuperf.model.task import OpponentTask
from pytest_gpuperf.timing.process_opponent import PATIENCE_S, Link, OtherSideLost, Quit, Resume, RunTest, TestEnded


class OpponentLoop:
    """A plugin that ``plugin`` registers in such a process."""

    def __init__(self, task: OpponentTask) -> None:
        self.link = Link(task.reading, task.writing)
        self.waiting = False
        """Whether a test of this process is being run, and may be asked for turns."""
        self._failures: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        try:
            while not isinstance(request := self.link.receive(RunTest | Resume | Quit, PATIENCE_S), Quit):
                if isinstance(request, RunTest):
                    self.link.send(TestEnded(why=self._run(items.get(request.node_id), request.node_id)))
        except OtherSideLost:
            return True  # there is nobody to work for
        return True

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
