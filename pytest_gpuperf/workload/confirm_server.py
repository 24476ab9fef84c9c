"""The second process, on its side: it runs tests on request, and sends what it finds of their suspects."""

from __future__ import annotations

import msgspec
import pytest

from pytest_gpuperf.judge.time_verdict import Confirmation
from pytest_gpuperf.model.task import ConfirmTask, ConfirmTest
from pytest_gpuperf.process.serving import TestServer
from pytest_gpuperf.revision import pairing
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly
from pytest_gpuperf.timing.process_reference import Link, Started, TestEnded


def send_finding(run: Run, finding: Confirmation) -> None:
    """Send a finding to the process that gates; ends the test, by ``CheckedOnly``, if it was the last."""
    waiting = run.confirming
    if waiting is None or run.link is None or finding.place not in waiting.places:
        return
    run.link.send(finding)
    rest = tuple(one for one in waiting.places if one != finding.place)
    run.confirming = msgspec.structs.replace(waiting, places=rest)
    if not rest:
        raise CheckedOnly("every workload that waits for its confirmation has been measured")


class ConfirmServer(TestServer):
    """Confirms the suspects of one test after another, also of a test that a setting or a splitter leaves out here."""

    def __init__(self, config: pytest.Config, task: ConfirmTask) -> None:
        super().__init__(config, Link(task.reading, task.writing))
        self._items: dict[str, pytest.Item] = {}

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self._items[item.nodeid] = item

    def serve(self, session: pytest.Session) -> None:  # noqa: ARG002 it has noted all tests, the session the chosen ones
        self.link.send(Started())
        while not self.run.gpu_lost:
            request = self.link.receive(ConfirmTest)
            known = request.node_id in self._items
            self.link.send(self._confirmed(request) if known else self.unknown(request.node_id))

    def _confirmed(self, request: ConfirmTest) -> TestEnded:
        run = self.run
        run.store.forget()  # a revision's evidence grows from test to test
        run.link, run.confirming = self.link, request
        if request.other_first is not None:
            pairing.let_first(run, request.other_first)
        return msgspec.structs.replace(self.run_test(self._items[request.node_id]), evidence=None)
