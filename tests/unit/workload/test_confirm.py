"""What becomes of a suspect by what a second process finds, leaves out or cannot say; no process is started."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from pytest_gpuperf.device.device_errors import LockError
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import ConfirmTest, SuspectPlace
from pytest_gpuperf.model.time_record import CALLABLE, Identity
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly, TestRecord
from pytest_gpuperf.timing.process_reference import OtherSideLost, Started, TestEnded
from pytest_gpuperf.workload import confirm
from pytest_gpuperf.workload.confirm_server import send_finding

KEY = Key(module="test_a.py", test="test_a", workload="copy")
CODE = Identity(code="c0" * 32, launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0")
PAIRED = msgspec.structs.replace(CODE, launch=CALLABLE)
Settle = Callable[[Sequence[Confirmation]], Judgement | None]


def judged(verdict: Verdict, reason: str = "proven slower", kind: EvidenceKind = "time") -> Judgement:
    return Judgement(key=KEY, target="nvidia-h200", kind=kind, verdict=verdict, reason=reason)


def confirmed(_: Sequence[Confirmation]) -> Judgement:
    return judged(Verdict.SLOWER, "in two processes")


class Test:
    """One test at its end, and what its confirming processes answer."""

    __test__ = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.record = TestRecord("test_a.py::test_a")
        self.requests: list[ConfirmTest] = []
        self.sections: list[str] = []
        self.answers: list[list[Confirmation | TestEnded | BaseException]] = []
        """To each request, in their order; then the test ends."""
        self.processes = 0
        self.no_process: Exception | None = None
        self.lock: Any = contextlib.nullcontext
        self.item: Any = SimpleNamespace(
            nodeid="test_a.py::test_a",
            config=SimpleNamespace(stash=pytest.Stash(), invocation_params=SimpleNamespace(dir="here")),
            add_report_section=lambda when, name, text: self.sections.append(text),
        )  # fmt: skip
        self.run: Any = Run(self.item.config, Options())
        self.run.give_memory_back, self.run.child_environment = (lambda: None), dict
        self.run.device = SimpleNamespace(lock=lambda: self.lock())
        self.link = self.child = self
        monkeypatch.setattr(confirm, "ServingChild", self._start)

    def _start(self, *_: object) -> Any:
        if self.no_process is not None:
            raise self.no_process
        self.processes += 1
        return self.child

    def send(self, request: ConfirmTest) -> None:
        self.requests.append(request)
        self._left = iter(self.answers.pop(0) if self.answers else ())

    def receive(self, kind: object, limit_s: float) -> Any:
        answer = Started() if kind is Started else next(self._left, TestEnded(why=""))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def explained(self, problem: OtherSideLost) -> str:
        return f"{problem} (pytest exit status 3)"

    def last_output(self) -> list[str]:
        return ["E   MemoryError"]

    def close(self, *, at_once: bool) -> None:
        self.at_once = at_once

    def settled(
        self, verdict: Verdict = Verdict.SLOWER, final_verdict: Settle = confirmed, identity: Identity = CODE
    ) -> Judgement:
        """The verdict on a workload's time, which was this and waited."""
        waiting = judged(verdict)
        self.record.add(WorkloadEvidence(key=KEY, judgements=(judged(Verdict.SAME, "", "static"), waiting)))
        self.record.suspects.append(Suspect(waiting, identity, final_verdict, budget_s=1.0))
        confirm.confirm(self.item, self.run, self.record)
        assert not self.record.suspects
        static, time = self.record.workloads["copy"].judgements
        assert static.verdict is Verdict.SAME
        return time


@pytest.fixture
def test(monkeypatch: pytest.MonkeyPatch) -> Test:
    return Test(monkeypatch)


def finding(kind: EvidenceKind = "time", **fields: Any) -> Confirmation:
    return Confirmation(place=SuspectPlace(key=KEY, kind=kind), **{"identity": CODE, "time_ns": 5.0, **fields})


def test_what_a_second_process_finds_settles_it(test: Test) -> None:
    test.answers = [[finding()]]
    seen: list[Confirmation] = []
    found = test.settled(final_verdict=lambda left: seen.extend(left) or confirmed(left))
    assert (found.verdict, found.reason) == (Verdict.SLOWER, "in two processes")
    assert seen == [finding()]
    assert [[one.key for one in request.places] for request in test.requests] == [[KEY]]


@pytest.mark.parametrize(("identity", "processes", "counted"), [(CODE, 1, 0), (PAIRED, 3, 3)])
def test_callables_alone_want_fresh_processes(test: Test, identity: Identity, processes: int, counted: int) -> None:
    test.answers = [[finding(identity=identity)] for _ in range(3)]
    for _ in range(3):
        test.settled(identity=identity)
    assert (test.processes, test.run.confirmed) == (processes, counted)


def test_an_acquittal_is_no_confirmed_test(test: Test) -> None:
    test.answers = [[finding(identity=PAIRED)]]
    acquitted = judged(Verdict.INCONCLUSIVE)
    assert test.settled(identity=PAIRED, final_verdict=lambda _: acquitted).verdict is Verdict.INCONCLUSIVE
    assert test.run.confirmed == 0


@pytest.mark.parametrize(("enough", "reason"), [
    (3, "in two processes"), (9, "not confirmed: the second process did not reach this workload"),
])  # fmt: skip
def test_further_processes_are_asked_until_it_is_settled(test: Test, enough: int, reason: str) -> None:
    test.answers = [[finding(time_ns=float(number), identity=PAIRED)] for number in range(3)]
    found = test.settled(identity=PAIRED, final_verdict=lambda left: confirmed(left) if len(left) == enough else None)
    assert ((*found.notes, found.reason)[0], len(test.requests)) == (reason, min(enough, 4))


LOST = OtherSideLost("the other process has ended")
UNSETTLED: dict[str, tuple[dict[str, Any], str]] = {
    "not reached": ({}, "the second process did not reach this workload"),
    "failed": ({"answers": [[TestEnded(why="its test fails there: ValueError", failed=True, last=True)]]},
               "in a second process: its test fails there: ValueError"),
    "ended": ({"answers": [[LOST]]}, "a second process: the other process has ended (pytest exit status 3)"),
    "not started": ({"no_process": LOST}, "a second process: the other process has ended"),
    "no GPU": ({"lock": Mock(side_effect=LockError("taken"))}, "a second process could not be started (taken)"),
    "other code": ({"answers": [[finding(identity=msgspec.structs.replace(CODE, code="c1" * 32))]]},
                   "a second process ran other code or other arguments: seed random inputs"),
    "obstacle": ({"answers": [[finding(problem="its baseline was removed")]]},
                 "a second process could not pair the two: its baseline was removed"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNSETTLED)
@pytest.mark.parametrize(("was", "verdict"), [(Verdict.SLOWER, Verdict.SLOWER), (Verdict.BETTER, Verdict.SAME)])
def test_unconfirmed_loss_stands_and_gain_does_not(test: Test, case: str, was: Verdict, verdict: Verdict) -> None:
    given, why = UNSETTLED[case]
    vars(test).update({name: list(one) if name == "answers" else one for name, one in given.items()})
    found = test.settled(was)
    assert found.verdict is verdict
    assert (*found.notes, found.reason)[0] == f"not confirmed: {why}"
    assert test.sections == (["E   MemoryError"] if case == "ended" else [])
    assert test.run.second_process is None or case in ("not reached", "other code", "obstacle")


def test_fresh_process_is_asked_where_one_that_ran_other_tests_is_silent(test: Test) -> None:
    test.answers = [[finding()], [TestEnded(why="its test fails there: a group exists already")], [finding()]]
    assert [test.settled().reason, test.settled().reason, test.processes] == [*["in two processes"] * 2, 2]


def test_process_that_was_interrupted_in_a_test_is_ended_at_once(test: Test) -> None:
    test.answers = [[KeyboardInterrupt()]]
    with pytest.raises(KeyboardInterrupt):
        test.settled()
    assert (test.at_once, test.run.second_process) == (True, None)


def test_only_so_many_callables_are_confirmed(test: Test) -> None:
    test.run.confirmed = confirm.MOST_CONFIRMED
    why = "20 tests were confirmed by fresh processes already; run this test alone"
    assert test.settled(identity=PAIRED).notes == (f"not confirmed: {why}",)
    assert test.requests == []


def test_a_test_that_was_ended_keeps_its_loss(test: Test) -> None:
    test.record.add(WorkloadEvidence(key=KEY, judgements=(judged(Verdict.SLOWER),)))
    test.record.suspects.append(Suspect(judged(Verdict.SLOWER), CODE, confirmed, budget_s=1.0))
    confirm.give_up(test.record)
    (found,) = test.record.workloads["copy"].judgements
    assert found.notes == ("not confirmed: the test failed or was stopped before its end",)


def test_a_test_ends_with_its_last_finding(test: Test) -> None:
    host, sent = finding(kind="host"), []
    test.run.link = SimpleNamespace(send=sent.append)
    test.run.confirming = ConfirmTest(node_id="test_a.py::test_a", places=(finding().place, host.place))
    send_finding(test.run, finding())
    send_finding(test.run, finding(kind="memory"))  # nobody asked
    with pytest.raises(CheckedOnly):
        send_finding(test.run, host)
    assert sent == [finding(), host]
