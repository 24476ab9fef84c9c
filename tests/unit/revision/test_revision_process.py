"""The two ends of a revision's process: which messages pass, without the process itself."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.revision import server
from pytest_gpuperf.revision.server import RevisionServer
from pytest_gpuperf.timing.process_opponent import Left, Link, OtherSideLost, Quit, RunTest, TestEnded


class Served:
    """A server in a thread, of two tests that note when they run."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, evidence: bool) -> None:
        self.ran: list[str] = []
        self.breaks = ""
        """The test that loses the GPU."""
        self.state = SimpleNamespace(gpu_lost="", link=None, results=None, give_memory_back=lambda: None)
        to_read, to_write = os.pipe(), os.pipe()
        self.link = Link(to_read[0], to_write[1])
        task = RevisionTask(
            folder=tmp_path, others=(), tree=tmp_path, reading=to_write[0], writing=to_read[1], evidence=evidence
        )
        config: Any = SimpleNamespace(stash=pytest.Stash(), hook=SimpleNamespace(pytest_runtest_protocol=self.run))
        monkeypatch.setattr(server, "foreign_files_of", lambda _: SimpleNamespace(note_reads=lambda: None))
        monkeypatch.setattr(server, "leave_evidence", lambda *_: self.ran.append("evidence"))
        monkeypatch.setattr(stash, "run_of", lambda _: self.state)
        items = [SimpleNamespace(nodeid=name, config=config) for name in ("a", "b")]
        session: Any = SimpleNamespace(items=items, shouldstop=False, shouldfail=False)
        self.server = RevisionServer(config, task)
        self.thread = threading.Thread(target=self.server.pytest_runtestloop, args=(session,))
        self.thread.start()

    def run(self, item: Any, nextitem: Any) -> None:
        self.state.gpu_lost = item.nodeid if item.nodeid == self.breaks else ""
        self.ran.append(f"{item.nodeid}, then {nextitem.nodeid if nextitem is not None else None}")

    def asked(self, node_id: str) -> str:
        self.link.send(RunTest(node_id=node_id))
        return str(self.link.receive(TestEnded, 10.0).why)


def test_all_tests_run_once_before_any_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(tmp_path, monkeypatch, evidence=True)
    assert served.link.receive(Left, 10.0) == Left()
    assert served.ran == ["a, then b", "b, then None", "evidence"]
    assert served.asked("b") == ""
    assert served.asked("c") == "there is no such test"
    assert served.ran[3:] == ["b, then None"]
    served.link.send(Quit())
    served.thread.join(10.0)
    assert not served.thread.is_alive()


def test_without_evidence_only_tests_that_are_asked_for_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(tmp_path, monkeypatch, evidence=False)
    assert served.asked("a") == ""
    assert served.ran == ["a, then None"]
    served.breaks = "b"
    assert served.asked("b") == ""
    served.thread.join(10.0)  # it has lost its GPU, so that another process is to be started
    assert not served.thread.is_alive()


def test_a_process_whose_partner_is_gone_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(tmp_path, monkeypatch, evidence=False)
    served.link.close()
    served.thread.join(10.0)
    assert not served.thread.is_alive()
    with pytest.raises(OtherSideLost):
        Link(os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)).send(Quit())
