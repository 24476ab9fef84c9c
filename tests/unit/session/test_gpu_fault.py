"""A process whose GPU is lost to it: when it is watched, what is said, and how a worker ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import Run

from pytest_gpuperf.context import stash
from pytest_gpuperf.process import gpu_fault
from pytest_gpuperf.process.gpu_fault import FAULT, FaultPlugin
from pytest_gpuperf.process.gpu_words import endless_message, launched_lines
from pytest_gpuperf.test_record import TestRecord


class Device:
    """A GPU, and what it was asked."""

    def __init__(self) -> None:
        self.said = ""
        self.asked: list[str] = []
        self.launches = SimpleNamespace(last=["copy", "scale"], forget=lambda: self.asked.append("forget"))

    def fault(self) -> str:
        return self.said


class Watch:
    """A watchdog without a thread."""

    made: list[Watch]

    def __init__(self, opened: Callable[[], Any], limit_s: Callable[[], float], when_endless: Any) -> None:
        self.opened, self.limit_s, self.when_endless = opened, limit_s, when_endless
        self.calls: list[str] = []
        self.begin = lambda: self.calls.append("begin")
        self.end = lambda: self.calls.append("end")
        Watch.made.append(self)


class Watched:
    """A run with its plugin, and one test."""

    def __init__(self, run: Run) -> None:
        self.run, self.device, self.item = run, Device(), run.item("test_copy")
        self.plugin = FaultPlugin(run.config, run.options)

    def ran(self, during: Callable[[], None] = lambda: None, nextitem: Any = "next") -> object:
        protocol = self.plugin.pytest_runtest_protocol(self.item, nextitem)
        next(protocol)
        during()
        with pytest.raises(StopIteration) as end:
            protocol.send("its result")
        return end.value.value


@pytest.fixture
def watched(run: Run, monkeypatch: pytest.MonkeyPatch) -> Watched:
    Watch.made = []
    monkeypatch.setattr(gpu_fault, "Watchdog", Watch)
    return Watched(run.with_options(kernel_timeout_s=60.0))


def test_each_test_begins_with_a_device_that_knows_of_no_other(watched: Watched) -> None:
    watched.item.stash[stash.TEST_RECORD] = TestRecord("a", "b")
    watched.run.state.recorded_ns = 5.0
    assert watched.ran() == "its result"
    assert stash.TEST_RECORD not in watched.item.stash
    assert watched.run.state.recorded_ns == 0.0
    watched.run.worker.opened = watched.device
    watched.ran()
    assert watched.device.asked == ["forget"]
    watched.run.state.gpu_lost = "a::b"
    watched.ran()
    assert watched.device.asked == ["forget", "forget"]  # nothing is asked of it any more


def test_a_gpu_is_watched_from_its_first_use(watched: Watched) -> None:
    watched.ran()
    assert Watch.made == []
    watched.ran(lambda: watched.run.worker.when_opened())
    (watch,) = Watch.made
    assert watch.calls == ["begin", "end"]
    watched.run.worker.opened = watched.device
    assert watch.opened() is watched.device
    assert watch.limit_s() == 60.0
    watched.run.state.recorded_ns = 0.1e9  # a thousand of its launches take longer
    assert watch.limit_s() == pytest.approx(100.0)


def test_a_run_without_times_watches_nothing(run: Run, watched: Watched) -> None:
    counting = Watched(run.with_options(enabled=False, ncu=("full",)))
    run.worker.when_opened = None
    counting.ran()
    assert run.worker.when_opened is None


def test_tests_that_need_the_lost_gpu_are_skipped(watched: Watched) -> None:
    plugin, item = watched.plugin, watched.item
    plugin.pytest_runtest_setup(item)
    watched.run.state.gpu_lost = "a::b"
    with pytest.raises(pytest.skip.Exception) as skip:
        plugin.pytest_runtest_setup(item)
    words = "not measured: the GPU's context is lost (by a::b); -n 1 goes on in a fresh process"
    assert str(skip.value) == words
    item.fixturenames = ["tmp_path"]
    plugin.pytest_runtest_setup(item)
    plugin.pytest_runtest_setup(SimpleNamespace())  # type: ignore[arg-type]  # of another plugin's making


class Left(BaseException):
    """Stands for the end of this process."""


@pytest.mark.parametrize(
    ("worker", "lost", "following", "ends"),
    [(True, True, "next", True), (True, True, None, False), (True, False, "next", False), (False, True, "next", False)],
)
def test_a_worker_that_lost_its_gpu_ends_if_tests_follow(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, *, worker: bool, lost: bool, following: Any, ends: bool
) -> None:
    def leave(status: int) -> None:
        raise Left(status)

    monkeypatch.setattr(os, "_exit", leave)
    if worker:
        watched.run.config.workerinput = {}
    watched.run.state.gpu_lost = "a::b" if lost else ""
    protocol = watched.plugin.pytest_runtest_protocol(watched.item, following)
    next(protocol)
    with pytest.raises(Left if ends else StopIteration):
        protocol.send(None)


def test_the_crash_of_a_worker_that_has_reported_its_fault_is_no_second_failure(watched: Watched) -> None:
    crash: Any = SimpleNamespace(nodeid="a::b", when="???", outcome="failed", longrepr="worker 'gw0' crashed")
    watched.plugin.pytest_handlecrashitem("a::b", crash)
    assert (crash.outcome, crash.longrepr) == ("failed", "worker 'gw0' crashed")
    watched.plugin.pytest_runtest_logreport(SimpleNamespace(nodeid="a::b", when="call", **{FAULT: True}))  # type: ignore[arg-type]
    watched.plugin.pytest_handlecrashitem("a::b", crash)
    assert (crash.when, crash.outcome, crash.longrepr) == ("teardown", "passed", None)


def test_the_message_on_an_endless_kernel_names_launches_and_option() -> None:
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
