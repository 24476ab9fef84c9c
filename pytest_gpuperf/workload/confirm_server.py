"""The second process, on its side: it runs tests on request, and sends what it finds of their suspects."""

from __future__ import annotations

import msgspec
import pytest

from pytest_gpuperf.judge.time_verdict import Confirmation
from pytest_gpuperf.model.task import ConfirmTest
from pytest_gpuperf.process.serving import TestServer
from pytest_gpuperf.revision import pairing
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly
from pytest_gpuperf.timing.process_reference import TestEnded


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

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.items[item.nodeid] = item

    def answer(self, request: ConfirmTest) -> TestEnded:
        run = self.run
        run.store.forget()  # a revision's evidence grows from test to test
        run.link, run.confirming = self.link, request
        if request.other_first is not None:
            pairing.let_first(run, request.other_first)
        return msgspec.structs.replace(self.run_test(self.items[request.node_id]), evidence=None)
