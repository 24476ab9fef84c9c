"""A revision's process without the process itself: what its server answers, and the places that it is given."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.device.lock import HELD_VARIABLE
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.task import Revision, RevisionTask
from pytest_gpuperf.process import children
from pytest_gpuperf.results import Ended, Results
from pytest_gpuperf.revision import server
from pytest_gpuperf.revision.process import places_there
from pytest_gpuperf.revision.server import RevisionServer
from pytest_gpuperf.timing.process_reference import Link, RunTest, Started, TestEnded

KERNELS = (WorkloadEvidence(key=Key(module="m.py", test="test_early", workload="work")),)


class Served:
    """A server in a thread; its tests note when they run, and end as ``ends`` says."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran: list[str] = []
        self.ends: dict[str, Ended] = {}
        self.breaks = ""
        """The test that loses the GPU."""
        self.results = Results()
        facts = SimpleNamespace(facts=SimpleNamespace(uuid="GPU-1"))
        self.state = SimpleNamespace(
            gpu_lost="", link=None, results=self.results, opened=None, device=facts, has_gpu=True
        )
        to_read, to_write = os.pipe(), os.pipe()
        self.link = Link(to_read[0], to_write[1])
        revision = Revision(commit="c0", name="c0", archs=())
        task = RevisionTask(folder=tmp_path, revision=revision, reading=to_write[0], writing=to_read[1])
        config: Any = SimpleNamespace(rootpath=tmp_path, hook=SimpleNamespace(pytest_runtest_protocol=self.run))
        foreign = SimpleNamespace(note_reads=lambda: None, lines=lambda: ())
        monkeypatch.setattr(server, "foreign_files_of", lambda _: foreign)
        monkeypatch.setattr(stash, "run_of", lambda _: self.state)
        left = SimpleNamespace(teardown_exact=lambda item: self.ran.append(f"leave for {item.nodeid}"))
        session: Any = SimpleNamespace(_setupstate=left)
        names = ("m.py::test_a", "m.py::test_b", "m.py::test_early")
        session.items = [
            SimpleNamespace(nodeid=name, config=config, session=session, fixturenames=["gpuperf"]) for name in names
        ]
        session.items.append(SimpleNamespace(nodeid="m.py::test_plain", config=config, session=session))
        self.server = RevisionServer(config, task)
        self.thread = threading.Thread(target=self.server.pytest_runtestloop, args=(session,))
        self.thread.start()
        assert self.link.receive(Started, 10.0) == Started(tests=frozenset(names))

    def run(self, item: Any, nextitem: Any) -> None:
        following = nextitem.nodeid if nextitem is not None else None
        self.ran.append(f"{item.nodeid}, then {following}, held {os.environ.get(HELD_VARIABLE, '')}")
        self.state.gpu_lost = item.nodeid if item.nodeid == self.breaks else ""
        self.results.ends[item.nodeid] = self.ends.get(item.nodeid, Ended("passed"))
        module, _, test = item.nodeid.partition("::")
        early = test == "test_early"
        self.results.by_test[item.nodeid] = TestEvidence(
            module=module, test=test, status="static only" if early else "complete", workloads=KERNELS if early else ()
        )

    def asked(self, test: str, **request: Any) -> TestEnded:
        self.link.send(RunTest(node_id=f"m.py::{test}", **request))
        ended: TestEnded = self.link.receive(TestEnded, 10.0)
        return ended


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    made = Served(tmp_path, monkeypatch)
    yield made
    made.link.close()
    made.thread.join(10.0)
    assert not made.thread.is_alive()  # a process whose partner is gone ends


def test_a_test_runs_when_it_is_asked_for_and_its_evidence_is_the_answer(served: Served) -> None:
    ended = served.asked("test_a", following="m.py::test_b")
    assert (ended.why, ended.evidence) == ("", TestEvidence(module="m.py", test="test_a"))
    assert served.state.link is None  # it is to stop at no callable
    served.asked("test_b", how="pair")
    assert served.state.link is not None
    assert served.ran == [
        "leave for m.py::test_a", "m.py::test_a, then m.py::test_b, held ",
        "leave for m.py::test_b", "m.py::test_b, then None, held GPU-1",
    ]  # fmt: skip
    assert HELD_VARIABLE not in os.environ
    served.link.close()
    served.thread.join(10.0)
    assert not served.thread.is_alive()


def test_test_that_failed_there_is_told_from_others(served: Served) -> None:
    """And one that is static only there has its evidence."""
    for end in ("failed", "skipped", "xfailed"):
        served.ends["m.py::test_a"] = Ended(end)
        assert served.asked("test_a").failed is (end == "failed")
    served.ends["m.py::test_early"] = Ended("skipped", "static only: no driver")
    ended = served.asked("test_early")
    assert (ended.why, ended.failed) == ("", False)


def test_a_process_that_has_lost_its_gpu_says_so_and_ends(served: Served) -> None:
    served.breaks = "m.py::test_b"
    assert not served.asked("test_a").last
    assert served.asked("test_b").last
    served.thread.join(10.0)
    assert not served.thread.is_alive()


# --- the places that it is given -------------------------------------------------------------------


@pytest.fixture
def placed(tmp_path: Path) -> Path:
    """A working tree with a link to its tests, and beside it a worktree that has another set of them."""
    for name in ("top/tests/test_a.py", "top/new/test_b.py", "tree/tests/test_a.py", "outside/test_c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "top/t").symlink_to("tests")
    (tmp_path / "tree/t").symlink_to("tests")
    (tmp_path / "way").symlink_to(tmp_path / "top")
    return tmp_path


@pytest.mark.parametrize(("start", "given", "there"), [
    ("top", [], []),
    ("top", ["tests"], ["tests"]), ("top", ["tests/test_a.py::test_one"], ["tests/test_a.py"]),
    ("top", ["tests/test_a.py", "tests/test_a.py::test_one"], ["tests/test_a.py"]),
    ("top", ["t"], ["t"]), ("top", ["t/test_a.py::test_one"], ["t/test_a.py"]),
    ("top", ["tests", "new"], ["tests"]), ("top", ["new"], None),
    ("top/tests", ["test_a.py"], ["tests/test_a.py"]), ("top/tests", ["../t"], ["t"]),
    ("way", ["tests"], ["tests"]), ("way/tests", ["test_a.py"], ["tests/test_a.py"]),
])  # fmt: skip
def test_places_are_those_of_the_worktree(
    placed: Path, monkeypatch: pytest.MonkeyPatch, start: str, given: list[str], there: list[str] | None
) -> None:
    found = places_of(placed, monkeypatch, start, given)
    assert found == (None if there is None else [str(placed / "tree" / name) for name in there])


def test_place_outside_of_the_repository_is_refused(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.UsageError, match=r"outside/test_c\.py lies outside of the repository .*top"):
        places_of(placed, monkeypatch, "top", ["../outside/test_c.py"])


def places_of(placed: Path, monkeypatch: pytest.MonkeyPatch, start: str, given: list[str]) -> list[str] | None:
    monkeypatch.setattr(children, "given_places", lambda _: given)
    config: Any = SimpleNamespace(invocation_params=SimpleNamespace(dir=placed / start))
    revision = Revision(commit="c0", name="c0", archs=(), top=placed / "top", tree=placed / "tree")
    return places_there(config, revision)
