"""What becomes of a suspect by what a second process finds, leaves out or cannot say; no process is started."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.device.device_errors import LockError
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import ConfirmTask, SuspectPlace
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly, TestRecord
from pytest_gpuperf.workload import confirm

KEY = Key(module="test_a.py", test="test_a", workload="copy")
CODE = Identity(code="c0" * 32, launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0")
Settle = Callable[[Sequence[Confirmation]], Judgement | None]


def judged(verdict: Verdict, reason: str = "proven slower", kind: EvidenceKind = "time") -> Judgement:
    return Judgement(key=KEY, target="nvidia-h200", kind=kind, verdict=verdict, reason=reason)


def confirmed(_: Sequence[Confirmation]) -> Judgement:
    return judged(Verdict.SLOWER, "in two processes")


class Test:
    """One test at its end, and what its confirming processes leave."""

    __test__ = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.record = TestRecord("test_a.py", "test_a")
        self.tasks: list[ConfirmTask] = []
        self.sections: list[str] = []
        self.left: list[list[Confirmation]] = []
        """Of each process, in their order."""
        self.status: int | None = 0
        self.log = ""
        self.lock: Any = contextlib.nullcontext
        self.item: Any = SimpleNamespace(
            nodeid="test_a.py::test_a", config=SimpleNamespace(stash=pytest.Stash()),
            add_report_section=lambda when, name, text: self.sections.append(text),
        )  # fmt: skip
        self.run: Any = Run(SimpleNamespace(stash=pytest.Stash()), Options())  # type: ignore[arg-type]
        self.run.give_memory_back, self.run.child_environment = (lambda: None), dict
        self.run.device = SimpleNamespace(lock=lambda: self.lock())
        monkeypatch.setattr(confirm, "run_task", self._run)

    def _run(self, config: object, task: ConfirmTask, log: Any, *_: object) -> int | None:
        self.tasks.append(task)
        log.write_text(self.log)
        for one in self.left.pop(0) if self.left else ():
            with contextlib.suppress(CheckedOnly):
                confirm.write_result(task, one)
        return self.status

    def settled(self, verdict: Verdict = Verdict.SLOWER, final_verdict: Settle = confirmed, **fields: Any) -> Judgement:
        """The verdict on a workload's time, which was this and waited."""
        waiting = judged(verdict)
        self.record.add(WorkloadEvidence(key=KEY, judgements=(judged(Verdict.SAME, "", "static"), waiting)))
        self.run.suspects.append(Suspect(waiting, CODE, final_verdict, budget_s=1.0, **fields))
        confirm.confirm(self.item, self.run, self.record)
        assert not self.run.suspects
        static, time = self.record.workloads["copy"].judgements
        assert static.verdict is Verdict.SAME
        return time


@pytest.fixture
def test(monkeypatch: pytest.MonkeyPatch) -> Test:
    return Test(monkeypatch)


def taken() -> Any:
    raise LockError("it is taken")


def finding(kind: EvidenceKind = "time", **fields: Any) -> Confirmation:
    return Confirmation(place=SuspectPlace(key=KEY, kind=kind), **{"identity": CODE, "time_ns": 5.0, **fields})


def test_what_a_second_process_finds_settles_it(test: Test) -> None:
    test.left = [[finding()]]
    seen: list[Confirmation] = []
    found = test.settled(final_verdict=lambda left: seen.extend(left) or confirmed(left))
    assert (found.verdict, found.reason) == (Verdict.SLOWER, "in two processes")
    assert seen == [finding()]
    (task,) = test.tasks
    assert [one.key for one in task.places] == [KEY]
    assert test.run.confirmed == 1


def test_an_acquittal_is_no_confirmed_test(test: Test) -> None:
    test.left = [[finding()]]
    assert test.settled(final_verdict=lambda _: judged(Verdict.INCONCLUSIVE)).verdict is Verdict.INCONCLUSIVE
    assert test.run.confirmed == 0


@pytest.mark.parametrize(("enough", "reason"), [
    (3, "in two processes"), (9, "not confirmed: the second process did not reach this workload"),
])  # fmt: skip
def test_further_processes_are_asked_until_it_is_settled(test: Test, enough: int, reason: str) -> None:
    test.left = [[finding(time_ns=float(number))] for number in range(3)]
    found = test.settled(final_verdict=lambda left: confirmed(left) if len(left) == enough else None)
    assert ((*found.notes, found.reason)[0], len(test.tasks)) == (reason, min(enough, 4))


UNSETTLED: dict[str, tuple[dict[str, Any], str]] = {
    "not reached": ({}, "the second process did not reach this workload"),
    "failed": ({"status": 3}, "the second process failed (pytest exit status 3)"),
    "failed with an error": ({"status": 1, "log": "E   MemoryError: too large\n"},
                             "the second process failed (pytest exit status 1): MemoryError: too large"),
    "hung": ({"status": None}, "the second process was not done after 12* s"),
    "no GPU": ({"lock": taken}, "a second process could not be started (it is taken)"),
    "other code": ({"left": [[finding(identity=msgspec.structs.replace(CODE, code="c1" * 32))]]},
                   "a second process ran other code or other arguments: seed random inputs"),
    "obstacle": ({"left": [[finding(problem="its baseline was removed")]]},
                 "a second process could not pair the two: its baseline was removed"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNSETTLED)
@pytest.mark.parametrize(("was", "verdict"), [(Verdict.SLOWER, Verdict.SLOWER), (Verdict.BETTER, Verdict.SAME)])
def test_unconfirmed_loss_stands_and_gain_does_not(test: Test, case: str, was: Verdict, verdict: Verdict) -> None:
    given, why = UNSETTLED[case]
    vars(test).update({name: list(one) if name == "left" else one for name, one in given.items()})
    found = test.settled(was)
    assert found.verdict is verdict
    assert fnmatch.fnmatchcase((*found.notes, found.reason)[0], f"not confirmed: {why}")
    assert test.sections == ([test.log.rstrip()] if test.status != 0 else [])


def test_only_so_many_tests_are_confirmed(test: Test) -> None:
    test.run.confirmed = confirm.MOST_CONFIRMED
    why = "20 tests of this process were confirmed already; run this test alone"
    assert test.settled().notes == (f"not confirmed: {why}",)
    assert test.tasks == []


def test_a_test_that_was_ended_keeps_its_loss(test: Test) -> None:
    test.record.add(WorkloadEvidence(key=KEY, judgements=(judged(Verdict.SLOWER),)))
    test.run.suspects.append(Suspect(judged(Verdict.SLOWER), CODE, confirmed, budget_s=1.0))
    confirm.give_up(test.run, test.record)
    (found,) = test.record.workloads["copy"].judgements
    assert found.notes == ("not confirmed: the test failed or was stopped before its end",)


def test_a_confirming_process_ends_with_its_last_finding(tmp_path: Any) -> None:
    host = finding(kind="host")
    task = ConfirmTask(folder=tmp_path, places=(finding().place, host.place))
    confirm.write_result(task, finding())
    confirm.write_result(task, finding(kind="memory"))  # nobody asked
    with pytest.raises(CheckedOnly):
        confirm.write_result(task, host)
    assert [msgspec.json.decode(file.read_bytes(), type=Confirmation) for file in task.files()] == [finding(), host]
