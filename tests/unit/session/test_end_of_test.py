"""The end of one test: which outcome it has, in which order things are told, and what its report carries."""

from __future__ import annotations

import zlib
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, MODULE, TEST, Run, judgement, static_record, workload

from pytest_gpuperf import stash
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.revision.process import RUNNING
from pytest_gpuperf.session import end_of_test, judge_test
from pytest_gpuperf.test_record import CheckedOnly, StaticOnly, TestRecord
from pytest_gpuperf.workload import confirm as confirmation

Raised = BaseException | None
FAILED = pytest.fail.Exception


@pytest.fixture(autouse=True)
def unexplained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_test, "explain_test", lambda run, test, estimates: None)


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


def test_a_pairs_other_process_ends_the_test_too(run: Run) -> None:
    """It holds no memory when a second process confirms."""
    ends: list[str] = []
    partner: Any = SimpleNamespace(pairs=True, ended=lambda: ends.append("there"))
    run.config.stash[RUNNING] = partner
    ended(run.item())
    assert ends == ["there"]


def test_a_test_that_stops_early_is_judged_by_what_it_reached(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[bool] = []
    monkeypatch.setattr(judge_test, "judge_test", lambda run, test: judged.append(test.whole) or "")
    ended(run.item())
    ended(run.item(), CheckedOnly("no times"))
    assert judged == [True, False]


def test_early_stops(run: Run, without_gpu: Run) -> None:
    """In a fixture, after another one, with why there is no GPU, and by a missing driver once there is a kernel."""
    item = run.item()
    assert str(ended(item, CheckedOnly("no times"), "setup")) == "checked only: no times"
    assert stash.record_of(item).ended_in == "setup"
    item = without_gpu.item()
    stash.record_of(item).stop("static only", "no driver")
    assert str(ended(item, CheckedOnly("no times"))) == "static only: no driver"
    assert str(ended(without_gpu.item(), StaticOnly("data"))) == "static only: no driver"
    missing = ModuleNotFoundError("No module named 'cupy'", name="cupy")
    assert not end_of_test.stops_early(without_gpu.item(), missing)
    for process, early in ((without_gpu, True), (run, False)):
        item = process.item()
        stash.record_of(item).add_compiled("copy", {"sm_90": static_record()}, COMPILER, (), "")
        assert end_of_test.stops_early(item, missing) is early
        assert not end_of_test.stops_early(item, ValueError("another"))


# --- confirmation ----------------------------------------------------------------------------------


def waiting_item(run: Run) -> Any:
    item: Any = run.item()
    stash.record_of(item).suspects.append(item)
    return item


def test_slower_workload_of_no_failed_test_is_confirmed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    second: list[str] = []

    def confirm(item: Any, run: Any, test: TestRecord) -> None:
        second.append("confirmed")
        test.add(workload("copy", judgement(Verdict.SLOWER)))

    monkeypatch.setattr(confirmation, "confirm", confirm)
    monkeypatch.setattr(confirmation, "give_up", lambda test: second.append("given up"))
    for problem in (None, LATER, WRONG, CheckedOnly("no times"), FAILED("wrong")):
        assert isinstance(ended(waiting_item(run), problem), FAILED | AssertionError)
    end_of_test.attach(waiting_item(run), report())
    assert second == [*["confirmed"] * 4, "given up", "given up"]


# --- reports -------------------------------------------------------------------------------------


def report(**fields: Any) -> Any:
    usual = {"failed": False, "skipped": False, "longrepr": None, "sections": [], "outcome": "failed", "when": "call"}
    return SimpleNamespace(**{**usual, **fields})


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
        properties={"own": "1"}, cubins={"a": zlib.compress(b"machine code")}, whole=True,
    )  # fmt: skip
    assert said.user_properties == item.user_properties == [
        ("own", 1), ("gpuperf.copy.nvidia-h200", "SAME"), ("gpuperf.copy.nvidia-h200.counters", "WORSE"),
    ]  # fmt: skip


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
