"""A kernel that breaks the GPU for its process, or never ends, costs its own test and no other.

Its test fails and says which kernel it was.  The tests that follow run in a fresh process: pytest's own is replaced by
``replaced_process``, a worker of pytest-xdist ends and pytest-xdist starts another.  Where neither can be, they are
skipped as not measured; none fails with another's error.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.gpu_watch import GpuWatch
from pytest_gpuperf.context.replaced_process import ReplacedProcess, report_of, restored
from pytest_gpuperf.context.xdist_groups import without_group
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.formatting import harmless
from pytest_gpuperf.options import Options

NOTES = "gpuperf_notes"
"""Under this name a pytest-xdist worker is told the folder for its last words."""
EXIT_ENDED = 70
"""Of a process that ends itself because of its GPU: ``EX_SOFTWARE`` of sysexits.h."""
TIMES_RECORDED = 1000
"""Launches of its recorded time that a workload may wait for, where they take longer than the limit."""
FIXTURES = {"cuda_kernel", "gpu", "gpuperf"}


class Isolation:
    """A plugin that ``plugin`` registers in every process of an active run."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._config = config
        self._timeout_s = options.kernel_timeout_s
        self._notes: Path | None = None
        self._fresh: ReplacedProcess | None = None
        self._watch: GpuWatch | None = None
        self._watches = options.times
        self._item: pytest.Item | None = None
        self._began = 0.0
        if hasattr(config, "workerinput"):
            folder = config.workerinput.get(NOTES)
            self._notes = Path(folder) if folder is not None and Path(folder).is_dir() else None
        else:
            self._fresh = ReplacedProcess(config)
            config.pluginmanager.register(self._fresh, "gpuperf-fresh-process")

    @property
    def _device(self) -> Device | None:
        """The GPU, if this process has used one."""
        worker = self._config.stash.get(stash.WORKER, None)
        return worker.opened if worker is not None else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        self._item, self._began = item, time.perf_counter()
        device, state = self._device, stash.run_state_of(self._config)
        state.recorded_ns = 0.0
        if device is not None:
            device.launches.forget()
            if not state.gpu_lost:
                device.begin_peak()
        if self._watch is not None:
            self._watch.begin()
        elif self._watches:  # not before: a comparison with a revision changes the options that its worker is made of
            stash.worker_of(self._config).when_opened = self._start_watch
        try:
            ended = yield
        finally:
            if self._watch is not None:
                self._watch.end()
            self._item = None
            if stash.TEST_BOOK in item.stash:  # pytest keeps its tests to the end of the run
                del item.stash[stash.TEST_BOOK]
        self._look_after(item, nextitem)
        return ended

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        lost = stash.run_state_of(self._config).gpu_lost
        if lost and FIXTURES & set(getattr(item, "fixturenames", ())):
            pytest.skip(f"not measured: {lost} broke the GPU for this process, and it cannot be replaced")

    def _start_watch(self) -> None:
        """In the middle of a test, the first that uses a GPU: without one there is nothing to watch."""
        self._watch = GpuWatch(lambda: self._device, self._limit_s, self._endless)
        self._watch.begin()

    def _limit_s(self) -> float:
        """Seconds for which a call may wait for the GPU: more for a workload that is known to take long."""
        return max(self._timeout_s, TIMES_RECORDED * stash.run_state_of(self._config).recorded_ns / 1e9)

    def _look_after(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """At a test's end, leave a process whose GPU is lost to it, if tests are to follow."""
        device, state = self._device, stash.run_state_of(self._config)
        if device is None:
            return
        fault = "" if state.gpu_lost else device.fault()
        state.gpu_lost = item.nodeid if fault else state.gpu_lost
        if not state.gpu_lost or nextitem is None or item.session.shouldfail or item.session.shouldstop:
            return
        if self._fresh is None:
            self._leave_worker(report_of(item, "call", f"after this test the GPU was lost to its process: {fault}"))
        elif self._fresh.possible:
            with contextlib.suppress(Exception):  # ends of fixtures on a GPU that is lost: someone else's error
                item.session._setupstate.teardown_exact(None)
            self._fresh.go_on(f"{state.gpu_lost} broke the GPU for this process")

    def _endless(self, device: Device, seconds: float) -> None:
        """In the watch's thread: end what cannot come to its end, and go on without it."""
        item = self._item
        if item is None:
            return
        words = harmless(endless_message(device, seconds))
        report = report_of(item, "call", words, time.perf_counter() - self._began)
        if self._fresh is None:
            self._leave_worker(report)
        elif self._fresh.possible:
            self._fresh.go_on(f"{item.nodeid}: a kernel does not end", [report, report_of(item, "teardown", None)])
        with contextlib.suppress(Exception):
            self._config._ensure_unconfigure()  # whatever captures the output gives it back
        print(f"gpuperf: {item.nodeid}: {words}", file=sys.stderr, flush=True)
        os._exit(EXIT_ENDED)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if getattr(report, "gpuperf_fault", False) and self._notes is not None:
            self._leave_worker(report)
        return report

    def _leave_worker(self, report: pytest.TestReport) -> None:
        """End this worker of pytest-xdist, which starts another; its report of a crash becomes this one."""
        if self._notes is not None:
            told = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
            _note(self._notes, report.nodeid).write_text(json.dumps(told, default=str), encoding="utf-8")
        os._exit(EXIT_ENDED)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self._notes is None:
            folder = scratch_folder("gpuperf-notes-")
            self._config.add_cleanup(folder.cleanup)
            self._notes = Path(folder.name)
        node.workerinput[NOTES] = str(self._notes)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """Let the report on a worker that ended itself be the one that it left."""
        report.nodeid = without_group(self._config, report.nodeid)
        node = without_group(self._config, crashitem)
        note = _note(self._notes, node) if self._notes is not None else None
        if note is not None and note.is_file():
            told = json.loads(note.read_text(encoding="utf-8"))
            vars(report).update(vars(restored(self._config, told)))


def _note(folder: Path, node_id: str) -> Path:
    return folder / f"{zlib.crc32(node_id.encode()):08x}.json"


def endless_message(device: Device, seconds: float) -> str:
    """What to say of a kernel that was ended after so many ``seconds``."""
    lines = [
        f"nothing came back from the GPU for {seconds:.0f} s: a kernel does not end",
        *launched_lines(device),
        "Its process was ended. A loop that waits for what no thread does, a barrier that not all threads reach, or "
        "blocks that wait for blocks that have no room yet do not end; if it only takes this long, give it "
        "--gpuperf-kernel-timeout=SECONDS",
    ]
    return "\n".join(lines)


def launched_lines(device: Device) -> list[str]:
    """The test's last launches, the newest first."""
    last = device.launches.last
    if not last:
        return ["  none of its launches was this plugin's"]
    return [f"  {'last launched' if number == 0 else 'before that'}: {one}" for number, one in enumerate(last)]
