"""The end of one test: which outcome it has, in which order things are told, and what its report carries."""

from __future__ import annotations

import unittest
import zlib
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, MODULE, TEST, Run, judgement, key, static_record, workload

from pytest_gpuperf import stash
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.device.device_errors import DeviceNeeded, LaunchError
from pytest_gpuperf.judge.time_verdict import Suspect
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.session import end_of_test, judge_test
from pytest_gpuperf.test_record import CheckedOnly, CountersMissing, StaticOnly, TestRecord
from pytest_gpuperf.workload import confirm as confirmation

Raised = BaseException | None


@pytest.fixture(autouse=True)
def advised(monkeypatch: pytest.MonkeyPatch) -> list[TestRecord]:
    """Books that causes were looked for in; and the compiler is the one of the samples."""
    books: list[TestRecord] = []
    monkeypatch.setattr(judge_test, "explain_test", lambda worker, book: books.append(book) if worker else None)
    return books


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What became of those that wait for a second process."""
    settled: list[str] = []

    def confirm(item: Any, worker: Any, book: TestRecord) -> None:
        assert worker == stash.run_of(item.config)
        settled.append("confirmed")
        stash.record_of(item).add(workload("copy", judgement(Verdict.SLOWER)))

    def give_up(state: Any, book: TestRecord) -> None:
        assert (bool(state.suspects), book.test) == (True, TEST)
        settled.append("given up")

    monkeypatch.setattr(confirmation, "confirm", confirm)
    monkeypatch.setattr(confirmation, "give_up", give_up)
    return settled


def ended(item: Any, problem: Raised = None, phase: Any = "call") -> Raised:
    """What the end of a test raises; None if it passed."""
    try:
        end_of_test.finish(item, problem, phase)
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as raised:  # noqa: BLE001 whatever it is
        return raised
    return None


def slower_item(run: Run, **marker: Any) -> Any:
    item = run.item(**marker)
    stash.record_of(item).add(workload("copy", judgement(Verdict.SLOWER)))
    return item


# --- outcomes ------------------------------------------------------------------------------------


def test_a_test_with_nothing_against_it_passes_and_is_whole(run: Run, advised: list[TestRecord]) -> None:
    item = run.item()
    assert ended(item) is None
    book = stash.record_of(item)
    assert (book.ended_in, book.whole, book.status) == ("call", True, "complete")
    assert advised == [book]


@pytest.mark.parametrize("phase", ["setup", "call"])
def test_the_phase_that_ends_a_test_is_noted(run: Run, phase: str) -> None:
    item = run.item()
    ended(item, CheckedOnly("no times"), phase)
    assert stash.record_of(item).ended_in == phase


def test_a_test_is_whole_only_if_it_was_gated_to_its_end_on_a_gpu(run: Run, without_gpu: Run) -> None:
    def whole(process: Run, problem: Raised = None, *, subtest_stopped: bool = False) -> bool:
        item = process.item()
        stash.record_of(item).subtest_stopped = subtest_stopped
        ended(item, problem)
        return stash.record_of(item).whole

    assert whole(run)
    assert not whole(run, ValueError())
    assert not whole(run, subtest_stopped=True)
    assert not whole(without_gpu)
    assert not whole(run.with_options(enabled=False, ncu=("full",)))


def test_a_regression_fails_the_test_with_the_gates_message(run: Run) -> None:
    item = slower_item(run)
    raised = ended(item)
    assert isinstance(raised, pytest.fail.Exception)
    assert not raised.pytrace
    assert str(raised).startswith("copy  SLOWER  on nvidia-h200 (time)")


def test_verdicts_of_a_run_that_measures_nothing_are_judged_all_the_same(run: Run, advised: list[TestRecord]) -> None:
    item = slower_item(run.with_options(enabled=False))
    assert isinstance(ended(item), pytest.fail.Exception)
    assert advised == []


def test_what_the_test_raised_comes_before_the_gate(run: Run) -> None:
    problem = AssertionError("wrong")
    assert ended(slower_item(run), problem) is problem


def test_a_skip_of_the_tests_own_does_not_hide_a_regression(run: Run) -> None:
    assert isinstance(ended(slower_item(run), pytest.skip.Exception("later")), pytest.fail.Exception)
    for problem in (pytest.skip.Exception("later"), unittest.SkipTest("later")):
        assert ended(run.item(), problem) is problem


@pytest.mark.parametrize("problem", [CheckedOnly("no times here"), CountersMissing("no counters here")])
def test_a_test_that_wanted_a_time_passes_as_checked_only(run: Run, problem: Exception) -> None:
    item = run.item()
    assert ended(item, problem) is None
    book = stash.record_of(item)
    assert (book.status, book.reason) == ("checked only", str(problem))


@pytest.mark.parametrize("problem", [StaticOnly("needs a GPU: data"), DeviceNeeded("needs a GPU: data")])
def test_a_test_that_needed_a_gpu_is_skipped_as_static_only(without_gpu: Run, problem: Exception) -> None:
    item = without_gpu.item()
    raised = ended(item, problem)
    assert isinstance(raised, pytest.skip.Exception)
    assert str(raised) == "static only: no driver"
    assert stash.record_of(item).reason == "no driver"


def test_the_reason_is_the_tests_own_where_there_is_a_gpu(run: Run) -> None:
    assert str(ended(run.item(), DeviceNeeded("needs a GPU: data\nand more"))) == "static only: needs a GPU: data"


def test_checked_only_does_not_replace_static_only(without_gpu: Run) -> None:
    item = without_gpu.item()
    stash.record_of(item).stop("static only", "no driver")
    assert str(ended(item, CheckedOnly("no times"))) == "static only: no driver"
    assert stash.record_of(item).status == "static only"


def test_a_missing_driver_ends_a_test_with_kernels_early(run: Run, without_gpu: Run) -> None:
    missing = ModuleNotFoundError("No module named 'cupy'", name="cupy")
    assert not end_of_test.stops_early(without_gpu.item(), missing)
    for process, early in ((without_gpu, True), (run, False)):
        item = process.item()
        stash.record_of(item).add_compiled("copy", {"sm_90": static_record()}, COMPILER, (), "")
        assert end_of_test.stops_early(item, missing) is early
        assert not end_of_test.stops_early(item, ValueError("another"))
        assert end_of_test.stops_early(item, CheckedOnly(""))


# --- judging -------------------------------------------------------------------------------------


def test_kernels_are_judged_and_unknown_machine_code_is_kept(run: Run) -> None:
    item = run.item()
    book = stash.record_of(item)
    book.add(workload("copy", static={"sm_90": static_record(cubin="a", block=(32, 1, 1))}, toolchain=COMPILER))
    book.add_compiled("scale", {"sm_90": static_record("c1", "scale", cubin="b")}, COMPILER, (), "")
    book.cubins = {"a": b"machine code"}
    assert ended(item) is None
    assert {name: [each.verdict for each in work.judgements] for name, work in book.workloads.items()} == {
        "copy": [Verdict.NEW], "scale": [Verdict.NEW]
    }  # fmt: skip
    assert book.unrecorded == {"a"}


def test_counters_alone_judge_no_machine_code(run: Run, advised: list[TestRecord]) -> None:
    item = run.with_options(enabled=False, ncu=("full",)).item()
    stash.record_of(item).add(workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER))
    assert ended(item) is None
    assert stash.record_of(item).workloads["copy"].judgements == ()
    assert advised == [stash.record_of(item)]


def test_a_child_looks_for_no_causes(run: Run, advised: list[TestRecord]) -> None:
    task = ConfirmTask(folder=run.config.rootpath, places=())
    assert ended(run.with_options(task=task).item()) is None
    assert advised == []


class Unreadable:
    def __getattr__(self, name: str) -> Any:
        raise BaselineError("baselines/sm_90/x.json is no JSON")


def test_an_unreadable_baseline_fails_the_test_unless_that_failed_by_itself(run: Run) -> None:
    run.worker.store = Unreadable()

    def item() -> Any:
        one = run.item()
        stash.record_of(one).add(workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER))
        return one

    for problem in (None, pytest.skip.Exception("later"), CheckedOnly("no times")):
        raised = ended(item(), problem)
        assert isinstance(raised, pytest.fail.Exception)
        assert (str(raised), raised.pytrace) == ("baselines/sm_90/x.json is no JSON", False)
    own = AssertionError("wrong")
    assert ended(item(), own) is own


# --- confirmation --------------------------------------------------------------------------------


def wait(run: Run) -> None:
    """A workload that was slower waits for a second process."""
    identity = Identity(code="c0" * 32, launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0")
    run.worker.suspects.append(Suspect(judgement(Verdict.SLOWER), identity, lambda found: None, budget_s=1.0))


def test_what_is_slower_is_confirmed_before_the_test_is_judged(run: Run, second: list[str]) -> None:
    wait(run)
    assert isinstance(ended(run.item()), pytest.fail.Exception)
    assert second == ["confirmed"]


@pytest.mark.parametrize(
    ("problem", "became"),
    [
        (pytest.skip.Exception("later"), "confirmed"), (unittest.SkipTest("later"), "confirmed"),
        (pytest.fail.Exception("wrong"), "given up"), (AssertionError("wrong"), "confirmed"),
        (CheckedOnly("no times"), "confirmed"),
    ],
)  # fmt: skip
def test_only_a_test_that_was_failed_on_purpose_is_not_confirmed(
    run: Run, second: list[str], problem: Raised, became: str
) -> None:
    wait(run)
    ended(run.item(), problem)
    assert second == [became]


def test_what_still_waits_when_a_test_is_reported_is_given_up(run: Run, second: list[str]) -> None:
    wait(run)
    end_of_test.attach(run.item(), report())
    assert second == ["given up"]


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


def frames(problem: BaseException) -> list[str]:
    found, frame = [], problem.__traceback__
    while frame is not None:
        found.append(frame.tb_frame.f_code.co_name)
        frame = frame.tb_next
    return found


CODE = """
from pytest_gpuperf.device.device_errors import LaunchError
def f(): g()
def g():
    try: raise KeyError
    except KeyError as cause: raise LaunchError("too many threads") from cause
"""


def test_an_error_about_the_tests_input_ends_at_the_tests_line(run: Run) -> None:
    item, problem = run.item(), raised_by(CODE, "pytest_gpuperf.device.launch")
    item.path = __file__
    assert frames(problem) == ["raised_by", "f", "g"]
    assert ended(item, problem) is problem
    assert isinstance(problem, LaunchError)
    assert frames(problem)[-1] == "raised_by"
    assert problem.__cause__ is None
    assert problem.__suppress_context__


def test_other_errors_keep_their_whole_way(run: Run) -> None:
    item = run.item()
    item.path = __file__
    bug = raised_by("def f(): g()\ndef g(): raise ValueError", "pytest_gpuperf.device.launch")
    ended(item, bug)
    assert frames(bug)[-2:] == ["f", "g"]
    elsewhere = raised_by(CODE, "users_own")
    ended(item, elsewhere)
    assert frames(elsewhere)[-2:] == ["f", "g"]


def test_an_error_that_did_not_pass_the_tests_file_is_left_as_it_is(run: Run) -> None:
    item, problem = run.item(), raised_by(CODE, "pytest_gpuperf.device.launch")
    item.path = "/elsewhere/test_x.py"
    ended(item, problem)
    assert frames(problem)[-2:] == ["f", "g"]


# --- unittest, subtests --------------------------------------------------------------------------


def report(**fields: Any) -> Any:
    return SimpleNamespace(
        **{"failed": False, "skipped": False, "longrepr": None, "sections": [], "outcome": "failed", **fields}
    )


def test_a_subtest_that_stopped_early_is_skipped_and_its_test_goes_on(run: Run) -> None:
    item, said = run.item(), report()
    end_of_test.end_subtest(item, CheckedOnly("no times"), said)
    assert said.outcome == "skipped"
    assert said.longrepr == (str(item.path), 7, "checked only: no times")
    assert (stash.record_of(item).subtest_stopped, stash.record_of(item).ended_in) == (True, "")
    item.location = (MODULE, None, TEST)
    end_of_test.end_subtest(item, CheckedOnly("no times"), said)
    assert said.longrepr[1] == 1


# --- reports -------------------------------------------------------------------------------------


def test_the_evidence_travels_on_the_report(run: Run) -> None:
    item, said = run.item(), report()
    run.worker.measured_peaks = {"copy_bandwidth": 4e12}
    book = stash.record_of(item)
    book.add(workload("copy", judgement(Verdict.SLOWER)))
    book.cubins, book.unrecorded = {"a": b"machine code", "b": b"other"}, {"a"}
    book.whole = True
    book.stop("checked only", "no times")
    end_of_test.attach(item, said)
    assert msgspec.json.decode(said.gpuperf, type=TestEvidence) == TestEvidence(
        module=MODULE, test=TEST, status="checked only", reason="no times", workloads=tuple(book.workloads.values()),
        whole=True,
        cubins={"a": zlib.compress(b"machine code")},
    )  # fmt: skip
    assert not hasattr(said, "gpuperf_status")


def test_the_gpu_and_its_state_travel_with_times_alone(run: Run) -> None:
    item = run.item()
    run.worker.measured_peaks = {"copy_bandwidth": 4e12}
    run.worker.session = "session"
    assert end_of_test.evidence_of(run.worker, stash.record_of(item), item).session is None
    stash.record_of(item).add(SimpleNamespace(key=key(), time=object()))  # type: ignore[arg-type]
    found = end_of_test.evidence_of(run.worker, stash.record_of(item), item)
    assert (found.device, found.session) == (run.worker.device.facts, "session")
    assert found.peaks == {"copy_bandwidth": 4e12}


def test_a_run_that_measures_nothing_reports_nothing(run: Run) -> None:
    said = report()
    end_of_test.attach(run.with_options(enabled=False).item(), said)
    assert not hasattr(said, "gpuperf")


def test_static_only_is_a_status_of_its_own(without_gpu: Run) -> None:
    item, said = without_gpu.item(), report(skipped=True, when="call", outcome="skipped", longrepr="static only")
    stash.record_of(item).stop("static only", "no driver")
    end_of_test.attach(item, said)
    assert (said.gpuperf_status, said.outcome) == ("static only", "skipped")  # nothing was judged
    assert said.user_properties == [("gpuperf.status", "static only")]
    stash.record_of(item).add(workload("copy", judgement(Verdict.UNCHANGED, "static")))
    end_of_test.attach(item, said)
    assert (said.gpuperf_status, said.outcome, said.longrepr) == ("static only", "passed", None)


def test_verdicts_are_properties_of_the_report(run: Run) -> None:
    item, said = run.item(), report()
    item.user_properties = [("own", 1)]
    book = stash.record_of(item)
    book.add(workload("copy", judgement(Verdict.SAME), judgement(Verdict.WORSE, "counters")))
    end_of_test.attach(item, said)
    assert said.user_properties == item.user_properties == [
        ("own", 1), ("gpuperf.copy.nvidia-h200", "SAME"), ("gpuperf.copy.nvidia-h200.counters", "WORSE"),
    ]  # fmt: skip


def test_a_test_that_failed_by_itself_shows_what_the_gate_would_have_said(run: Run) -> None:
    item = slower_item(run)
    said = report(failed=True, longrepr="AssertionError: wrong")
    end_of_test.attach(item, said)
    ((name, text),) = said.sections
    assert (name, text.splitlines()[0]) == ("gpuperf", "copy  SLOWER  on nvidia-h200 (time)")
    again = report(failed=True, longrepr=f"Failed: {text}")
    end_of_test.attach(item, again)
    assert again.sections == []


def test_nothing_is_added_to_a_report_without_a_failure_or_a_regression(run: Run) -> None:
    for item, said in (
        (slower_item(run), report(longrepr="skipped")),
        (slower_item(run), report(failed=True)),
        (run.item(), report(failed=True, longrepr="wrong")),
    ):
        end_of_test.attach(item, said)
        assert said.sections == []
