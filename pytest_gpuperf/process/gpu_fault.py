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
import traceback
from collections.abc import Generator
from typing import Any

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.device.device_errors import GpuFault
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.formatting import escape_ci_commands
from pytest_gpuperf.results import without_group
from pytest_gpuperf.run import Run

TIMES_RECORDED = 1000
"""Launches of its recorded time that a workload may wait for, where they take longer than the limit."""
FIXTURES = {"cuda_kernel", "gpu", "gpuperf"}
NOT_MEASURED = "not measured: the GPU's context is lost (by {}); -n 1 goes on in a fresh process"
ENDLESS = (
    "the GPU did not answer for {:.0f} s: a kernel does not end\n{}Its process was ended. Usual causes: a loop on a "
    "value that no thread writes, a barrier that some threads skip, or blocks that wait for blocks without room on the "
    "GPU. If the kernel is only slow: --gpuperf-kernel-timeout=SECONDS"
)
POLL_S = 1.0
ANSWER_S = 5.0
"""For the question whether the GPU is idle; a driver that another thread holds up does not answer."""


class FaultPlugin:
    """A plugin that ``session.reporting`` registers in every process of an active run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._item: pytest.Item | None = None
        """The test that runs."""
        self._more = False
        """Whether a test follows."""
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def _run(self) -> Run:
        """Asked for anew: a comparison with a revision makes another."""
        return stash.run_of(self._config)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        run = self._run
        self._item, self._more = item, nextitem is not None
        run.test_began, run.recorded_ns, run.when_opened = time.perf_counter(), 0.0, self._start_watch
        if run.opened is not None:
            run.opened.launches.last.clear()
            self._start_watch()  # a flag may have opened it before the first test
        try:
            ended = yield
        finally:
            self._item = None
            if stash.TEST_RECORD in item.stash:  # pytest keeps its tests to the end of the run
                del item.stash[stash.TEST_RECORD]
        self._leave_worker()
        return ended

    def _leave_worker(self) -> None:
        """End a worker of pytest-xdist that has lost its GPU, if tests are to follow: another one is started."""
        if self._more and hasattr(self._config, "workerinput") and self._run.gpu_lost:
            os._exit(pytest.ExitCode.TESTS_FAILED)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown" and report.passed:
            self._leave_worker()  # the controller makes this report of the crash that it sees

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """A worker that ended for its GPU has reported its test already."""
        report.nodeid = without_group(self._config, crashitem)
        if report.nodeid in self._run.results.failures:
            report.when, report.outcome, report.longrepr = "teardown", "passed", None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        lost = self._run.gpu_lost
        if lost and FIXTURES & set(getattr(item, "fixturenames", ())):
            pytest.skip(NOT_MEASURED.format(lost))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        """Fail the test at its end where its fault was not seen before."""
        yield
        run = self._run
        if run.opened is not None and not run.gpu_lost and (fault := run.opened.fault()):
            run.gpu_lost = item.nodeid
            pytest.fail(f"after this test the GPU was lost to its process: {fault}", pytrace=False)

    def pytest_unconfigure(self) -> None:
        self._ended.set()

    def _limit_s(self) -> float:
        """Seconds for which a call may wait for the GPU: more for a workload that is known to take long."""
        return max(self._run.options.kernel_timeout_s, TIMES_RECORDED * self._run.recorded_ns / 1e9)

    def _start_watch(self) -> None:
        """From the first use of a GPU on: a process without one may fork, and has no thread of ours."""
        if self._watcher is None and self._run.options.times:
            self._watcher = threading.Thread(target=self._watch, daemon=True, name="gpuperf-watch")
            self._watcher.start()

    def _watch(self) -> None:
        """In a thread of its own: notice that the GPU does not come back, as an endless kernel would hold the run.

        Where the main thread has not moved and nothing was launched or answered for as long as the limit, the GPU is
        asked, and only then: a query while a graph is captured would void the capture.
        """
        main = threading.main_thread().ident or 0
        seen: tuple[object, ...] = ()
        since = 0.0
        while not self._ended.wait(min(POLL_S, self._limit_s() / 4)):
            device, item = self._run.opened, self._item
            if device is None or item is None:
                continue
            now, place = time.monotonic(), (item, *_place_of(main), device.launches.steps)
            if place != seen:
                seen, since = place, now
            elif now - since >= self._limit_s():
                if not _is_idle(device):
                    self._end(item, ENDLESS.format(now - since, _launched(device)))
                seen = ()

    def _end(self, item: pytest.Item, message: str) -> None:
        """Fail the test and end this process, as nothing can end the kernel."""
        message = escape_ci_commands(message)
        if hasattr(self._config, "workerinput"):  # the report goes to the controller, which starts another worker
            report = pytest.TestReport(
                nodeid=item.nodeid, location=item.location, keywords=dict.fromkeys(item.keywords, 1),
                outcome="failed", longrepr=message, when="call", duration=time.perf_counter() - self._run.test_began,
            )  # fmt: skip
            item.ihook.pytest_runtest_logreport(report=report)
            os._exit(pytest.ExitCode.TESTS_FAILED)
        with contextlib.suppress(Exception):
            self._config._ensure_unconfigure()  # whatever captures the output gives it back
        message = f"FAILED {item.nodeid}: {message}\nThe run ends here; -n 1 goes on in a fresh process."
        print(f"\ngpuperf: {message}", file=sys.stderr, flush=True)
        os._exit(pytest.ExitCode.TESTS_FAILED)


def _place_of(thread: int) -> tuple[int, int]:
    """Where a thread is; its frame, which keeps arrays alive, is not kept."""
    frame = sys._current_frames().get(thread)
    return (id(frame), frame.f_lasti) if frame is not None else (0, 0)


def _is_idle(device: Device) -> bool:
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(device.is_idle()), daemon=True)
    asking.start()
    asking.join(ANSWER_S)
    return bool(answers and answers[0])


def _launched(device: Device) -> str:
    """Lines with the test's last launches, the newest first."""
    lines = [
        f"  {'before that' if number else 'last launched'}: {one}\n"
        for number, one in enumerate(dict.fromkeys(device.launches.last))
    ]
    return "".join(lines) or "  none of its launches was this plugin's\n"


def broken_by(item: pytest.Item, run: Run, problem: BaseException | None) -> BaseException | None:
    """The failure of a test after which nothing runs on the GPU in this process any more; None if it still does.

    ``problem`` is what the test raised, if anything: a fault is often seen first by the next call that waits.
    """
    device = run.opened
    fault = device.fault() if device is not None else ""
    if device is None or not fault:
        return None
    frames = traceback.extract_tb(problem.__traceback__) if problem is not None else []
    seen = [f"  seen at {item.path.name}:{one.lineno}\n" for one in frames if one.filename == str(item.path)][-1:]
    first = str(problem) if isinstance(problem, GpuFault) else f"a kernel faulted on the GPU: {fault}"
    message = (
        f"{first}\n{_launched(device)}{''.join(seen)}Nothing more can run on the GPU in this process; no other test "
        f"fails for it.\nThe kernel's line: compute-sanitizer python -m pytest '{item.nodeid}'"
    )
    return pytest.fail.Exception(message, pytrace=False)
