"""The end of one test: which outcome it has, in which order things are told, and what its report carries."""

from __future__ import annotations

import unittest
import zlib
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, MODULE, TEST, Run, judgement, static_record, workload

from pytest_gpuperf import stash
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.device.device_errors import DeviceNeeded, LaunchError
from pytest_gpuperf.judge.time_verdict import Suspect
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.revision.process import RUNNING
from pytest_gpuperf.session import end_of_test, judge_test
from pytest_gpuperf.test_record import CheckedOnly, CountersMissing, StaticOnly, TestRecord
from pytest_gpuperf.workload import confirm as confirmation

Raised = BaseException | None
FAILED = pytest.fail.Exception


@pytest.fixture(autouse=True)
def advised(monkeypatch: pytest.MonkeyPatch) -> list[TestRecord]:
    """Tests that causes were looked for in."""
    tests: list[TestRecord] = []
    monkeypatch.setattr(judge_test, "explain_test", lambda run, test, estimates: tests.append(test))
    return tests


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What became of those that wait for a second process."""
    settled: list[str] = []

    def confirm(item: Any, run: Any, test: TestRecord) -> None:
        settled.append("confirmed")
        test.add(workload("copy", judgement(Verdict.SLOWER)))

    monkeypatch.setattr(confirmation, "confirm", confirm)
    monkeypatch.setattr(confirmation, "give_up", lambda run, test: settled.append("given up"))
    return settled


def ended(item: Any, problem: Raised = None, phase: Any = "call") -> Raised:
    """What the end of a test raises; None if it passed."""
    try:
        end_of_test.finish(item, problem, phase)
    except (Exception, pytest.skip.Exception, FAILED) as raised:  # noqa: BLE001 whatever it is
        return raised
    return None


def slower_item(run: Run) -> Any:
    item = run.item()
    stash.record_of(item).add(workload("copy", judgement(Verdict.SLOWER)))
    return item


# --- outcomes ------------------------------------------------------------------------------------

WRONG, LATER = AssertionError("wrong"), pytest.skip.Exception("later")
OUTCOMES: dict[str, tuple[bool, bool, Raised, Raised | str, str]] = {
    # whether it is slower, whether there is a GPU, what it raised; then what is raised, and its status
    "passed": (False, True, None, None, "complete"),
    "passed without a GPU": (False, False, None, None, "complete"),
    "failed": (False, True, WRONG, WRONG, "complete"),
    "skipped": (False, True, LATER, LATER, "complete"),
    "slower": (True, True, None, "copy  SLOWER  on nvidia-h200 (time)", "complete"),
    "slower and failed": (True, True, WRONG, WRONG, "complete"),
    "slower and skipped": (True, True, LATER, "copy  SLOWER  on nvidia-h200 (time)", "complete"),
    "slower and skipped by unittest": (True, True, unittest.SkipTest("x"), "copy  SLOWER  on ", "complete"),
    "wanted a time": (False, True, CheckedOnly("no times"), None, "checked only"),
    "wanted counters": (False, True, CountersMissing("no counters"), None, "checked only"),
    "wanted a GPU": (False, False, StaticOnly("data"), "static only: no driver", "static only"),
    "wanted data": (False, True, DeviceNeeded("data\nmore"), "static only: needs a GPU: data", "static only"),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_outcome(run: Run, without_gpu: Run, advised: list[TestRecord], case: str) -> None:
    is_slower, has_gpu, problem, outcome, status = OUTCOMES[case]
    process = run if has_gpu else without_gpu
    item = slower_item(process) if is_slower else process.item()
    raised = ended(item, problem)
    if isinstance(outcome, str):
        assert isinstance(raised, pytest.skip.Exception if status == "static only" else FAILED)
        assert str(raised).startswith(outcome)
    else:
        assert raised is outcome
    test = stash.record_of(item)
    assert (test.ended_in, test.status) == ("call", status)
    assert advised == [test]


def test_fixture_that_stops_early_skips_its_test(run: Run) -> None:
    item = run.item()
    assert str(ended(item, CheckedOnly("no times"), "setup")) == "checked only: no times"
    assert stash.record_of(item).ended_in == "setup"


def test_failed_measurement_fails_a_test_that_caught_it(run: Run) -> None:
    problem = ValueError("reset")
    for raised in (None, LATER, CheckedOnly("no times")):
        item = run.item()
        stash.record_of(item).note_failure(CheckedOnly("no times"))
        stash.record_of(item).note_failure(problem)
        stash.record_of(item).note_failure(WRONG)
        assert ended(item, raised) is problem
    assert ended(item, WRONG) is WRONG


def test_checked_only_does_not_replace_static_only(without_gpu: Run) -> None:
    item = without_gpu.item()
    stash.record_of(item).stop("static only", "no driver")
    assert str(ended(item, CheckedOnly("no times"))) == "static only: no driver"


def test_missing_driver_ends_a_test_with_kernels_early(run: Run, without_gpu: Run) -> None:
    missing = ModuleNotFoundError("No module named 'cupy'", name="cupy")
    assert not end_of_test.stops_early(without_gpu.item(), missing)
    for process, early in ((without_gpu, True), (run, False)):
        item = process.item()
        stash.record_of(item).add_compiled("copy", {"sm_90": static_record()}, COMPILER, (), "")
        assert end_of_test.stops_early(item, missing) is early
        assert not end_of_test.stops_early(item, ValueError("another"))


# --- judging -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gates", [True, False])
def test_kernels_are_judged_and_unknown_machine_code_is_kept(run: Run, gates: bool) -> None:
    item = run.item() if gates else run.with_options(enabled=False, ncu=("full",)).item()
    test = stash.record_of(item)
    test.add(workload("copy", static={"sm_90": static_record(cubin="a", block=(32, 1, 1))}, toolchain=COMPILER))
    test.add_compiled("scale", {"sm_90": static_record("c1", "scale", cubin="b")}, COMPILER, (), "")
    test.cubins = {"a": b"machine code"}
    assert ended(item) is None
    judged = {name: [each.verdict for each in work.judgements] for name, work in test.workloads.items()}
    assert judged == ({"copy": [Verdict.NEW], "scale": [Verdict.NEW]} if gates else {"copy": []})
    assert test.unrecorded == ({"a"} if gates else set())


def test_child_and_plain_run_look_for_no_causes(run: Run, advised: list[TestRecord]) -> None:
    task = ConfirmTask(folder=run.config.rootpath, places=())
    assert ended(run.with_options(task=task).item()) is None
    assert isinstance(ended(slower_item(run.with_options(enabled=False, task=None))), FAILED)
    assert advised == []


class Unreadable:
    def __getattr__(self, name: str) -> Any:
        raise BaselineError("baselines/sm_90/x.json is no JSON")


@pytest.mark.parametrize("problem", [None, LATER, CheckedOnly("no times"), WRONG])
def test_unreadable_baseline_fails_the_test_unless_that_failed_by_itself(run: Run, problem: Raised) -> None:
    run.worker.store = Unreadable()
    raised = ended(run.item(), problem)
    assert raised is problem or isinstance(raised, FAILED)
    assert str(raised) == ("wrong" if problem is WRONG else "baselines/sm_90/x.json is no JSON")


# --- confirmation, a lost GPU ----------------------------------------------------------------------


def wait(run: Run) -> None:
    """A workload that was slower waits for a second process."""
    identity = Identity(code="c0" * 32, launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0")
    run.worker.suspects.append(Suspect(judgement(Verdict.SLOWER), identity, lambda found: None, budget_s=1.0))


@pytest.mark.parametrize(
    ("problem", "became"),
    [(None, "confirmed"), (LATER, "confirmed"), (FAILED("wrong"), "given up"), (WRONG, "confirmed"),
     (CheckedOnly("no times"), "confirmed")],
)  # fmt: skip
def test_slower_workload_is_confirmed_unless_its_test_failed_on_purpose(
    run: Run, second: list[str], problem: Raised, became: str
) -> None:
    wait(run)
    raised = ended(run.item(), problem)
    assert second == [became]
    assert isinstance(raised, FAILED | AssertionError)


def test_waiting_workload_is_given_up_when_its_test_is_reported(run: Run, second: list[str]) -> None:
    wait(run)
    end_of_test.attach(run.item(), report())
    assert second == ["given up"]


def test_test_that_breaks_the_gpu_fails_for_that_and_the_process_knows(run: Run) -> None:
    item = run.item()
    launches = SimpleNamespace(last=["copy"])
    run.worker.opened = SimpleNamespace(fault=lambda: "an illegal address", launches=launches)
    raised = ended(item, CheckedOnly("no times"))
    assert isinstance(raised, FAILED)
    assert str(raised).startswith("a kernel faulted on the GPU: an illegal address\n  last launched: copy\n")
    assert run.worker.gpu_lost == item.nodeid


def test_process_of_another_revision_is_left(run: Run) -> None:
    left: list[str] = []
    run.config.stash[RUNNING] = SimpleNamespace(pairs=True, ended=lambda: left.append("the test"))
    ended(run.item())
    assert left == ["the test"]


# --- errors of ours ------------------------------------------------------------------------------


def raised_by(code: str, name: str) -> BaseException:
    """What ``code`` raises in a module of this name, called from here."""
    scope: dict[str, Any] = {"__name__": name}
    exec(code, scope)
    try:
        scope["f"]()
    except Exception as problem:  # noqa: BLE001 whatever it is
        return problem
    raise AssertionError("it raises")


CODE = """
from pytest_gpuperf.device.device_errors import LaunchError
def f(): g()
def g():
    try: raise KeyError
    except KeyError as cause: raise LaunchError("too many threads") from cause
"""
BUG = "def f(): g()\ndef g(): raise ValueError"


@pytest.mark.parametrize(
    ("code", "module", "path", "is_cut"),
    [
        (CODE, "pytest_gpuperf.device.launch", __file__, True),
        (BUG, "pytest_gpuperf.device.launch", __file__, False),
        (CODE, "users_own", __file__, False),
        (CODE, "pytest_gpuperf.device.launch", "/elsewhere/test_x.py", False),
    ],
)
def test_error_about_the_tests_input_ends_at_its_line(
    run: Run, code: str, module: str, path: str, is_cut: bool
) -> None:
    item, problem = run.item(), raised_by(code, module)
    item.path = path
    assert ended(item, problem) is problem
    names, frame = [], problem.__traceback__
    while frame is not None:
        names.append(frame.tb_frame.f_code.co_name)
        frame = frame.tb_next
    assert names[names.index("raised_by") + 1 :][:2] == ([] if is_cut else ["f", "g"])
    red = {CODE: "LaunchError: too many threads", BUG: ""}[code]
    assert stash.record_of(item).red_signature == red
    assert (problem.__cause__ is None) == (isinstance(problem, LaunchError) or code == BUG)


# --- reports -------------------------------------------------------------------------------------


def report(**fields: Any) -> Any:
    usual = {"failed": False, "skipped": False, "longrepr": None, "sections": [], "outcome": "failed", "when": "call"}
    return SimpleNamespace(**{**usual, **fields})


def test_subtest_that_stopped_early_is_skipped_and_its_test_goes_on(run: Run) -> None:
    item, said = run.item(), report()
    for location, line in ((6, 7), (None, 1)):
        item.location = (MODULE, location, TEST)
        end_of_test.end_subtest(item, CheckedOnly("no times"), said)
        assert (said.outcome, said.longrepr) == ("skipped", (str(item.path), line, "checked only: no times"))
    assert (stash.record_of(item).subtest_stopped, stash.record_of(item).ended_in) == (True, "")
    other = report()
    end_of_test.end_subtest(item, WRONG, other)
    assert other == report()


def test_evidence_travels_on_the_report(run: Run) -> None:
    item, said = run.item(), report()
    test = stash.record_of(item)
    test.add(workload("copy", judgement(Verdict.SAME), judgement(Verdict.WORSE, "counters")))
    test.cubins, test.unrecorded = {"a": b"machine code", "b": b"other"}, {"a"}
    test.stop("checked only", "no times")
    item.user_properties.append(("own", 1))
    end_of_test.attach(item, said)
    assert msgspec.json.decode(said.gpuperf, type=TestEvidence) == TestEvidence(
        module=MODULE, test=TEST, status="checked only", reason="no times", workloads=tuple(test.workloads.values()),
        cubins={"a": zlib.compress(b"machine code")},
    )  # fmt: skip
    assert said.user_properties == item.user_properties == [
        ("own", 1), ("gpuperf.copy.nvidia-h200", "SAME"), ("gpuperf.copy.nvidia-h200.counters", "WORSE"),
    ]  # fmt: skip
    plain = report()
    end_of_test.attach(run.with_options(enabled=False).item(), plain)
    assert not hasattr(plain, "gpuperf")


def test_stopped_test_whose_kernels_were_judged_has_passed(run: Run) -> None:
    item, place = run.item(), (end_of_test.__file__, 1, "static only: no GPU")
    test = stash.record_of(item)
    test.stop("static only", "no GPU")
    unjudged = report(skipped=True, outcome="skipped", longrepr=place)
    end_of_test.attach(item, unjudged)
    assert (unjudged.outcome, unjudged.longrepr) == ("skipped", (str(item.path), 7, "static only: no GPU"))
    test.add(workload("copy", judgement(Verdict.UNCHANGED, "static")))
    said = report(skipped=True, outcome="skipped", longrepr=place)
    end_of_test.attach(item, said)
    assert (said.outcome, said.longrepr, said.gpuperf_status) == ("passed", None, "static only")
    assert said.user_properties[0] == ("gpuperf.status", "static only")


def test_failure_shows_what_the_gate_would_have_said(run: Run) -> None:
    item = slower_item(run)
    test = stash.record_of(item)
    test.red_signature, test.severity = "spills", 1.5
    said = report(failed=True, longrepr="AssertionError: wrong")
    end_of_test.attach(item, said)
    ((name, text),) = said.sections
    assert (name, text.splitlines()[0]) == ("gpuperf", "copy  SLOWER  on nvidia-h200 (time)")
    assert (said.gpuperf_red, said.gpuperf_severity) == ("spills", 1.5)
    for other in (report(failed=True, longrepr=f"Failed: {text}"), report(failed=True)):
        end_of_test.attach(item, other)
        assert other.sections == []
    green = report(longrepr="skipped")
    end_of_test.attach(item, green)
    assert (green.sections, hasattr(green, "gpuperf_red")) == ([], False)
