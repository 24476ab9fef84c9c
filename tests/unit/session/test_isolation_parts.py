"""A process whose GPU is lost to it: who watches, what is said, and how the tests that follow are run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from isolation_samples import Device, Ended, Fresh, Isolated, Watch
from run_samples import Run

from pytest_gpuperf.context import stash
from pytest_gpuperf.session import isolation
from pytest_gpuperf.session.isolation import EXIT_ENDED, NOTES, endless_message, launched_lines
from pytest_gpuperf.test_record import TestRecord

LOST = "tests/test_copy.py::test_before"


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Statuses with which this process would have ended."""
    statuses: list[int] = []

    def leave(status: int) -> None:
        statuses.append(status)
        raise Ended

    monkeypatch.setattr(os, "_exit", leave)
    return statuses


@pytest.fixture
def isolated(run: Run, monkeypatch: pytest.MonkeyPatch) -> Isolated:
    Watch.made = []
    monkeypatch.setattr(isolation, "ReplacedProcess", Fresh)
    monkeypatch.setattr(isolation, "GpuWatch", Watch)
    return Isolated(run.with_options(kernel_timeout_s=60.0))


# --- a test ----------------------------------------------------------------------------------------


def test_each_test_begins_with_a_device_that_knows_of_no_other(isolated: Isolated) -> None:
    isolated.item.stash[stash.TEST_RECORD] = TestRecord("a", "b")
    isolated.run.state.recorded_ns = 5.0
    assert isolated.ran() == "its result"
    assert stash.TEST_RECORD not in isolated.item.stash
    assert isolated.run.state.recorded_ns == 0.0
    isolated.run.worker.opened = isolated.device
    isolated.ran()
    assert isolated.device.asked == ["forget", "begin_peak", "fault"]
    isolated.run.state.gpu_lost = LOST
    isolated.ran(nextitem=None)
    assert isolated.device.asked == ["forget", "begin_peak", "fault", "forget"]  # nothing is asked of it any more


def test_a_gpu_is_watched_from_its_first_use(isolated: Isolated) -> None:
    isolated.ran()
    assert Watch.made == []
    isolated.ran(lambda: isolated.run.worker.when_opened())
    (watch,) = Watch.made
    assert watch.calls == ["begin", "end"]
    isolated.ran()
    assert watch.calls == ["begin", "end", "begin", "end"]
    isolated.run.worker.opened = isolated.device
    assert watch.opened() is isolated.device
    assert watch.limit_s() == 60.0
    isolated.run.state.recorded_ns = 0.1e9  # a thousand of its launches take longer
    assert watch.limit_s() == pytest.approx(100.0)


def test_a_run_without_times_watches_nothing(run: Run, isolated: Isolated) -> None:
    counting = Isolated(run.with_options(enabled=False, ncu=("full",)))
    run.worker.when_opened = None
    counting.ran()
    assert run.worker.when_opened is None


# --- a GPU that is lost ----------------------------------------------------------------------------


def test_the_tests_after_a_fault_run_in_a_fresh_process(isolated: Isolated) -> None:
    isolated.ran(isolated.faults)
    assert isolated.fresh.config is isolated.run.config
    assert isolated.run.state.gpu_lost == isolated.item.nodeid
    assert isolated.fresh.went_on == [(f"{isolated.item.nodeid} broke the GPU for this process",)]
    assert isolated.device.asked == ["fault", "teardown"]


@pytest.mark.parametrize("why", ["no fault", "the last test", "a failure ends it", "it is stopped", "impossible"])
def test_else_the_process_stays(isolated: Isolated, why: str) -> None:
    isolated.item.session.shouldfail = why == "a failure ends it"
    isolated.item.session.shouldstop = why == "it is stopped"
    isolated.fresh.possible = why != "impossible"
    isolated.ran(isolated.faults if why != "no fault" else lambda: None, None if why == "the last test" else "next")
    assert isolated.fresh.went_on == []
    assert isolated.run.state.gpu_lost == ("" if why == "no fault" else isolated.item.nodeid)


def test_where_it_stays_tests_that_need_the_gpu_are_skipped(isolated: Isolated) -> None:
    plugin, item = isolated.plugin, isolated.item
    plugin.pytest_runtest_setup(item)
    isolated.run.state.gpu_lost = LOST
    with pytest.raises(pytest.skip.Exception) as skip:
        plugin.pytest_runtest_setup(item)
    assert str(skip.value) == f"not measured: {LOST} broke the GPU for this process, and it cannot be replaced"
    item.fixturenames = ["tmp_path"]
    plugin.pytest_runtest_setup(item)
    plugin.pytest_runtest_setup(SimpleNamespace())  # type: ignore[arg-type]  # of another plugin's making


def broken(*_: object) -> None:
    raise RuntimeError("an illegal address")


def test_ends_of_fixtures_on_a_lost_gpu_are_no_error(isolated: Isolated) -> None:
    isolated.item.session._setupstate.teardown_exact = broken
    isolated.ran(isolated.faults)
    assert len(isolated.fresh.went_on) == 1


# --- a kernel that does not end --------------------------------------------------------------------


def test_an_endless_kernel_is_told_as_the_failure_of_its_test(
    isolated: Isolated, ended: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    def endless() -> None:
        if not Watch.made:
            isolated.run.worker.when_opened()
        with pytest.raises(Ended):
            Watch.made[0].when_endless(isolated.device, 61.4)

    isolated.plugin._endless(isolated.device, 61.4)  # no test runs
    assert (ended, isolated.fresh.went_on) == ([], [])
    isolated.ran(endless)
    ((why, (call, teardown)),) = isolated.fresh.went_on
    assert why == f"{isolated.item.nodeid}: a kernel does not end"
    words = endless_message(isolated.device, 61.4)  # type: ignore[arg-type]
    assert (call.nodeid, call.when, call.outcome, call.longrepr) == (isolated.item.nodeid, "call", "failed", words)
    assert 0 < call.duration < 60
    assert (teardown.nodeid, teardown.when, teardown.outcome) == (isolated.item.nodeid, "teardown", "passed")
    assert ended == [EXIT_ENDED] == [70]
    assert capsys.readouterr().err == f"gpuperf: {isolated.item.nodeid}: {words}\n"
    assert isolated.registered["unconfigured"]
    isolated.fresh.possible = False
    isolated.run.config._ensure_unconfigure = broken  # somebody else's error
    isolated.ran(endless)
    assert (len(isolated.fresh.went_on), ended) == (1, [70, 70])


def test_what_it_says_names_the_launches_and_the_option() -> None:
    device: Any = Device()
    assert endless_message(device, 61.4) == (
        "nothing came back from the GPU for 61 s: a kernel does not end\n"
        "  last launched: copy\n"
        "  before that: scale\n"
        "Its process was ended. A loop that waits for what no thread does, a barrier that not all threads reach, or "
        "blocks that wait for blocks that have no room yet do not end; if it only takes this long, give it "
        "--gpuperf-kernel-timeout=SECONDS"
    )
    device.launches.last = []
    assert launched_lines(device) == ["  none of its launches was this plugin's"]


# --- workers of pytest-xdist -----------------------------------------------------------------------


def test_a_worker_leaves_its_report_and_ends(run: Run, isolated: Isolated, tmp_path: Path, ended: list[int]) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    worker = Isolated(run, **{NOTES: str(notes)})
    assert worker.registered == {}
    with pytest.raises(Ended):
        worker.ran(worker.faults)
    assert ended == [70]
    (note,) = notes.iterdir()
    assert json.loads(note.read_text()) == {
        "nodeid": worker.item.nodeid, "when": "call", "place": "a",
        "longrepr": "after this test the GPU was lost to its process: an illegal address",
    }  # fmt: skip
    run.state.gpu_lost = ""
    with pytest.raises(Ended):
        worker.ran(lambda: worker.plugin._endless(worker.device, 61.0))  # type: ignore[arg-type]
    assert ended == [70, 70]


@pytest.mark.parametrize("notes", [{}, {NOTES: "/nowhere"}])
def test_a_worker_without_a_folder_for_notes_ends_all_the_same(
    run: Run, isolated: Isolated, ended: list[int], notes: dict[str, str]
) -> None:
    worker = Isolated(run, id="gw0", **notes)
    with pytest.raises(Ended):
        worker.ran(worker.faults)
    assert ended == [70]


def test_the_controller_lets_a_crash_be_what_its_worker_said(isolated: Isolated) -> None:
    node = SimpleNamespace(workerinput={})
    report: Any = SimpleNamespace(nodeid="crashed", longrepr="worker 'gw0' crashed")
    isolated.plugin.pytest_handlecrashitem("a::b", report)
    isolated.plugin.pytest_configure_node(node)
    folder = Path(node.workerinput[NOTES])
    isolated.plugin.pytest_configure_node(node)
    assert (Path(node.workerinput[NOTES]), folder.is_dir()) == (folder, True)  # one for all workers
    isolated.plugin.pytest_handlecrashitem("a::b", report)
    assert report.longrepr == "worker 'gw0' crashed"
    isolation._note(folder, "a::b").write_text('{"longrepr": "a kernel does not end"}')
    isolated.run.config.hook.pytest_report_from_serializable = lambda config, data: SimpleNamespace(**data)
    isolated.plugin.pytest_handlecrashitem("a::c", report)
    assert report.longrepr == "worker 'gw0' crashed"
    isolated.plugin.pytest_handlecrashitem("a::b", report)
    assert (report.longrepr, report.nodeid) == ("a kernel does not end", "crashed")
