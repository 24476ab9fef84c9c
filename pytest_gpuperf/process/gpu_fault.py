"""A kernel that breaks the GPU for its process, or never ends, fails its own test; no other fails for it.

After a fault nothing runs on the GPU in this process any more.  A worker of pytest-xdist ends then, and pytest-xdist
starts another; without workers the tests that follow are skipped as not measured.  An endless kernel ends its process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, NoReturn

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.xdist_groups import without_group
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.formatting import harmless
from pytest_gpuperf.options import Options
from pytest_gpuperf.process.gpu_words import endless_message

TIMES_RECORDED = 1000
"""Launches of its recorded time that a workload may wait for, where they take longer than the limit."""
FIXTURES = {"cuda_kernel", "gpu", "gpuperf"}
NOT_MEASURED = "not measured: the GPU's context is lost (by {}); -n 1 goes on in a fresh process"
FAULT = "gpuperf_fault"
"""Attribute of a report that says that the GPU is lost to its process."""
POLL_S = 1.0
ANSWER_S = 5.0
"""For the question whether the GPU is idle; a driver that another thread holds up does not answer."""


class FaultPlugin:
    """A plugin that ``start_of_run`` registers in every process of an active run."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._config = config
        self._timeout_s = options.kernel_timeout_s
        self._watches = options.times
        self._watch: Watchdog | None = None
        self._item: pytest.Item | None = None
        self._more = False
        """Whether a test follows."""
        self._began = 0.0
        self._reported: set[str] = set()
        """Tests whose report says that the GPU was lost, in the controller of pytest-xdist."""

    @property
    def _device(self) -> Device | None:
        """The GPU, if this process has used one."""
        worker = self._config.stash.get(stash.RUN, None)
        return worker.opened if worker is not None else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        self._item, self._began, self._more = item, time.perf_counter(), nextitem is not None
        device, state = self._device, stash.run_of(self._config)
        state.recorded_ns = 0.0
        if device is not None:
            device.launches.forget()
        if self._watch is not None:
            self._watch.begin()
        elif self._watches:  # not before: a comparison with a revision changes the options that its worker is made of
            stash.run_of(self._config).when_opened = self._start_watch
        try:
            ended = yield
        finally:
            if self._watch is not None:
                self._watch.end()
            self._item = None
            if stash.TEST_RECORD in item.stash:  # pytest keeps its tests to the end of the run
                del item.stash[stash.TEST_RECORD]
        self._leave_worker()
        return ended

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        lost = stash.run_of(self._config).gpu_lost
        if lost and FIXTURES & set(getattr(item, "fixturenames", ())):
            pytest.skip(NOT_MEASURED.format(lost))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        """Fail the test at its end where its fault was not seen before."""
        yield
        device, state = self._device, stash.run_of(self._config)
        if device is not None and not state.gpu_lost and (fault := device.fault()):
            state.gpu_lost = item.nodeid
            pytest.fail(f"after this test the GPU was lost to its process: {fault}", pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and stash.run_of(self._config).gpu_lost == item.nodeid:
            setattr(report, FAULT, True)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown" and report.passed:
            self._leave_worker()  # the controller makes this report of the crash that it sees
        if hasattr(report, FAULT):
            self._reported.add(without_group(self._config, report.nodeid))

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """A worker that ended for its GPU has reported its test already."""
        report.nodeid = without_group(self._config, crashitem)
        if report.nodeid in self._reported:
            report.when, report.outcome, report.longrepr = "teardown", "passed", None

    def _leave_worker(self) -> None:
        """End a worker of pytest-xdist that has lost its GPU, if tests are to follow: another one is started."""
        if self._more and hasattr(self._config, "workerinput") and stash.run_of(self._config).gpu_lost:
            os._exit(pytest.ExitCode.TESTS_FAILED)

    def _start_watch(self) -> None:
        """In the middle of a test, the first that uses a GPU: without one there is nothing to watch."""
        self._watch = Watchdog(lambda: self._device, self._limit_s, self._endless)
        self._watch.begin()

    def _limit_s(self) -> float:
        """Seconds for which a call may wait for the GPU: more for a workload that is known to take long."""
        return max(self._timeout_s, TIMES_RECORDED * stash.run_of(self._config).recorded_ns / 1e9)

    def _endless(self, device: Device, seconds: float) -> None:
        """In the watchdog's thread: fail the test, and end the process, as nothing can end the kernel."""
        item = self._item
        if item is not None:
            self._end(item, harmless(endless_message(device, seconds)))

    def _end(self, item: pytest.Item, words: str) -> NoReturn:
        if hasattr(self._config, "workerinput"):  # the report goes to the controller, which starts another worker
            report = pytest.TestReport(
                nodeid=item.nodeid, location=item.location, keywords=dict.fromkeys(item.keywords, 1),
                outcome="failed", longrepr=words, when="call", duration=time.perf_counter() - self._began,
            )  # fmt: skip
            setattr(report, FAULT, True)
            item.ihook.pytest_runtest_logreport(report=report)
            os._exit(pytest.ExitCode.TESTS_FAILED)
        with contextlib.suppress(Exception):
            self._config._ensure_unconfigure()  # whatever captures the output gives it back
        words = f"FAILED {item.nodeid}: {words}\nThe run ends here; -n 1 goes on in a fresh process."
        print(f"\ngpuperf: {words}", file=sys.stderr, flush=True)
        os._exit(pytest.ExitCode.TESTS_FAILED)


class Watchdog:
    """A thread that notices when the GPU does not come back: an endless kernel would hold the whole run.

    It looks at the main thread once a second.  Where that has not moved and nothing was launched or answered for as
    long as the limit, the GPU is asked, and only then: a query while a graph is captured would void the capture.
    """

    def __init__(
        self, opened: Callable[[], Device | None], limit_s: Callable[[], float],
        when_endless: Callable[[Device, float], None],
    ) -> None:  # fmt: skip
        """``opened`` is the GPU if the process has used one, ``limit_s`` the seconds for which a call may wait for it.

        ``when_endless`` is called in this thread, with the seconds that were waited.
        """
        self._opened, self._limit_s, self._when_endless = opened, limit_s, when_endless
        self._main = threading.main_thread().ident or 0
        self._running = threading.Event()
        self._seen: tuple[object, ...] = ()
        self._since = 0.0
        threading.Thread(target=self._look, daemon=True, name="gpuperf-watch").start()

    def begin(self) -> None:
        """A test begins."""
        self._seen = ()
        self._running.set()

    def end(self) -> None:
        """No test runs."""
        self._running.clear()

    def _look(self) -> None:
        while True:
            self._running.wait()
            time.sleep(min(POLL_S, self._limit_s() / 4))
            device = self._opened()
            if device is not None:
                self._look_at(device, time.monotonic())

    def _look_at(self, device: Device, now: float) -> None:
        frame = sys._current_frames().get(self._main)
        place = (id(frame), frame.f_lasti if frame is not None else 0, device.launches.steps)
        if place != self._seen:
            self._seen, self._since = place, now
        elif self._running.is_set() and now - self._since >= self._limit_s():
            if not _is_idle(device):
                self._when_endless(device, now - self._since)
            self._seen = ()


def _is_idle(device: Device) -> bool:
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(device.is_idle()), daemon=True)
    asking.start()
    asking.join(ANSWER_S)
    return bool(answers and answers[0])
