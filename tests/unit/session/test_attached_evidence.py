"""What a test's report carries beside its verdicts: shared kernels, a lost GPU, memory, parameters, a red signature."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import Run, judgement, workload

from pytest_gpuperf import stash
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.model.device_facts import DeviceMemory
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.revision.process import RUNNING
from pytest_gpuperf.session import end_of_test, judge_test
from pytest_gpuperf.test_record import CheckedOnly


def report(**fields: Any) -> Any:
    usual = {"failed": False, "skipped": False, "longrepr": None, "sections": [], "outcome": "failed", "when": "call"}
    return SimpleNamespace(**{**usual, **fields})


def evidence(said: Any) -> TestEvidence:
    return msgspec.json.decode(said.gpuperf, type=TestEvidence)


@pytest.mark.parametrize("failed", [True, False])
def test_a_failure_shows_who_held_the_memory_and_what_it_has_in_common_with_others(run: Run, failed: bool) -> None:
    item, said = run.item(), report(failed=failed)
    book = stash.record_of(item)
    book.memory, book.red_signature, book.severity = "1 GiB of 2 GiB are free", "spills", 1.5
    end_of_test.attach(item, said)
    assert said.sections == ([("gpuperf: memory of the GPU", "1 GiB of 2 GiB are free")] if failed else [])
    found = getattr(said, "gpuperf_red", None), getattr(said, "gpuperf_severity", None)
    assert found == (("spills", 1.5) if failed else (None, None))


def test_numbers_and_text_among_parameters_travel(run: Run) -> None:
    item, said = run.item(), report()
    item.callspec = SimpleNamespace(params={"n": 8, "tolerance": 0.5, "name": "copy", "kernel": object(), "all": [1]})
    end_of_test.attach(item, said)
    assert evidence(said).parameters == {"n": "8", "tolerance": "0.5", "name": "copy"}
    plain = report()
    end_of_test.attach(run.item("test_b"), plain)
    assert evidence(plain).parameters == {}


def test_a_stopped_test_whose_kernels_were_judged_has_passed(run: Run) -> None:
    item = run.item()
    book = stash.record_of(item)
    book.stop("static only", "no GPU")
    unjudged = report(skipped=True, outcome="skipped", longrepr="no GPU")
    end_of_test.attach(item, unjudged)
    assert unjudged.outcome == "skipped"
    book.add(workload("copy", judgement(Verdict.UNCHANGED, "static")))
    said = report(skipped=True, outcome="skipped", longrepr="no GPU")
    end_of_test.attach(item, said)
    assert (said.outcome, said.longrepr, said.gpuperf_status) == ("passed", None, "static only")


# --- how the test itself ends ----------------------------------------------------------------------


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was judged with which words: the judging itself is another module's."""
    calls: list[Any] = []
    monkeypatch.setattr(judge_test, "judge_test", lambda *given, **more: calls.append((given[2], more)) or "")
    return calls


def ended(item: Any, problem: BaseException | None = None) -> BaseException | None:
    try:
        end_of_test.finish(item, problem, "call")
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as raised:  # noqa: BLE001 whatever it is
        return raised
    return None


def test_a_test_that_breaks_the_gpu_fails_for_that_and_the_process_knows(run: Run, judged: list[Any]) -> None:
    item = run.item()
    launches = SimpleNamespace(last=["copy"])
    run.worker.opened = SimpleNamespace(fault=lambda: "an illegal address", launches=launches, memory=DeviceMemory)
    raised = ended(item, CheckedOnly("no times"))
    assert isinstance(raised, pytest.fail.Exception)
    assert str(raised).startswith("a kernel faulted on the GPU: an illegal address\n  last launched: copy\n")
    book = stash.record_of(item)
    assert book.red_signature == ""
    assert (book.whole, run.state.gpu_lost) == (False, item.nodeid)


def test_a_test_without_memory_has_who_holds_it(run: Run, judged: list[Any]) -> None:
    class OutOfMemoryError(Exception):
        """As CuPy calls its own."""

    item = run.item()
    held = DeviceMemory(total=2 << 30, free=1 << 30, others=1 << 30)
    run.worker.opened = SimpleNamespace(fault=lambda: "", launches=None, memory=lambda: held)
    assert isinstance(ended(item, OutOfMemoryError("none left")), OutOfMemoryError)
    assert stash.record_of(item).memory.startswith("1.00 GiB of 2.00 GiB are free")
    ended(item, ValueError("wrong"))
    assert stash.record_of(item).memory == ""


def test_an_error_of_ours_is_what_failures_have_in_common(run: Run, judged: list[Any]) -> None:
    ours, other = run.item(), run.item("test_b")
    ended(ours, LaunchError("grid is too large\nof test_a"))
    ended(other, ValueError("wrong"))
    assert stash.record_of(ours).red_signature == "LaunchError: grid is too large"
    assert stash.record_of(other).red_signature == ""
    for item, red in ((ours, ("LaunchError: grid is too large", True)), (other, (None, None))):
        said = report(failed=True)
        end_of_test.attach(item, said)
        assert (getattr(said, "gpuperf_red", None), getattr(said, "gpuperf_error", None)) == red


def test_another_revisions_process_is_left_where_there_is_one(run: Run, judged: list[Any]) -> None:
    left: list[str] = []
    ended(run.item())
    run.config.stash[RUNNING] = SimpleNamespace(leave=lambda: left.append("the test"))
    ended(run.item("test_b"))
    assert left == ["the test"]
