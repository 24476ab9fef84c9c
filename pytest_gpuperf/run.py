"""State that the tests of one process share: its GPU, its compiler, the baselines, and notes from test to test.

Everything is opened when a test first needs it, once.  Workers of pytest-xdist share none of it.
"""

from __future__ import annotations

import datetime
import gc
import os
import re
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.baselines.trust import BaselineTrust
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.listing import Listing
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.device.device_errors import NoDevice
from pytest_gpuperf.device.discovery import open_device
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.lock import HELD_VARIABLE
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.architectures import FALLBACK_ARCHS, plain
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.model.task import ConfirmTest, ProfileTask, Revision, RevisionTask, read_revision
from pytest_gpuperf.model.time_record import Session
from pytest_gpuperf.options import Options
from pytest_gpuperf.process.repository import Commit, commit_of
from pytest_gpuperf.results import Results
from pytest_gpuperf.test_record import CheckedOnly

if TYPE_CHECKING:
    from pytest_gpuperf.counters.exchange import Collected
    from pytest_gpuperf.process.serving import ServingChild
    from pytest_gpuperf.timing.process_reference import Link


class Run:
    """The shared state of the tests of one process."""

    def __init__(self, config: pytest.Config, options: Options, results: Results | None = None) -> None:
        self.config = config
        self.options = options
        self.environ = dict(os.environ)
        """Before the first test, which may set variables for itself."""
        self.no_device: NoDevice | None = None
        """Why there is no GPU; None while there is one, or before the first question."""
        self.when_opened: Callable[[], None] = lambda: None
        """Called once, when a GPU is used for the first time."""
        self.before_gpu: Callable[[], None] = lambda: None
        """Called in each test that uses the GPU, before: another revision's process has no work in flight then."""
        self.results = results or Results()
        """The collected tests of this process; in the one that reports, the results of all processes."""
        self.outcome = Outcome()
        """Results that the end of the run reports."""
        self.second_process: ServingChild | None = None
        """The one that confirms what is slower in this one, from the first on."""
        self.confirmed = 0
        """Tests of callables of which fresh processes have confirmed a regression."""
        self.link: Link | None = None
        """To the process that gates, in one that confirms, and in that of another revision while it is paired."""
        self.confirming: ConfirmTest | None = None
        """What a process that confirms has still to measure in this test; None in other processes."""
        self.describes = False
        """Whether the revision's process measures no times in this test."""
        self.gpu_lost = ""
        """Which test left the GPU unusable for this process; empty while it is usable."""
        self.test_began = time.perf_counter()
        """When the test in hand did."""
        self.recorded_ns = 0.0
        """Recorded time of the current workload; 0 if it is not known."""
        self.listings: dict[tuple[str, str], Listing] = {}
        """Sources of the kernels that this process compiled, by SHA-256 of their cubins and symbols."""
        self.collected: Collected | None = None
        """Counters; None before the first question for them."""
        self._hold: ExitStack | None = None
        self._shares: dict[str, int] = {}
        """Error rates that were given out, by the test's node id."""

    @property
    def number(self) -> int | None:
        """Number of the pytest-xdist worker that this process is, or works for; None without, and of one of --tx."""
        if isinstance(self.options.task, RevisionTask):
            return self.options.task.worker
        number = re.fullmatch(r"gw([0-9]+)", getattr(self.config, "workerinput", {}).get("workerid", ""))
        return int(number[1]) if number is not None else None

    @cached_property
    def store(self) -> BaselineStore:
        """The baselines; a process of another revision has none, whatever its working tree holds."""
        task = self.options.task
        return BaselineStore(task.folder / "no-baselines" if isinstance(task, RevisionTask) else self.options.baselines)

    @cached_property
    def revision(self) -> Revision | None:
        """The revision that replaces the baselines, if there is one."""
        return read_revision(self.options.baselines) if self.options.against else None

    @cached_property
    def trust(self) -> BaselineTrust:
        return BaselineTrust(self.config.rootpath, everything=not self.options.ci or self.revision is not None)

    @cached_property
    def compile_cache(self) -> CompileCache:
        return CompileCache()

    @cached_property
    def device(self) -> Device:
        """The GPU, or a placeholder that raises ``DeviceNeeded`` at the first use of data or time."""
        given: Device | None = self.config.hook.pytest_gpuperf_device(config=self.config, worker=self.number)
        try:
            device = open_device(self.number) if given is None else given
        except NoDevice as problem:
            if self.options.require_gpu:
                raise
            self.no_device = problem
            return PlaceholderDevice()
        self.when_opened()
        return device

    @property
    def has_gpu(self) -> bool:
        """Whether workloads can run here; opens the device at the first question."""
        _ = self.device
        return self.no_device is None

    @cached_property
    def gpu(self) -> Gpu:
        no_peaks = CheckedOnly("peaks are not measured while counters are collected")
        profiled = isinstance(self.options.task, ProfileTask)
        roofs = self.store.roofs(self.device.facts.slug) if self.options.active else None
        return Gpu(self.device, before_work=self.hold_gpu, no_peaks=no_peaks if profiled else None, roofs=roofs)

    def hold_gpu(self) -> None:
        """In a gated run, keep other gated processes off the GPU until ``let_go_of_gpu``; a second call does nothing.

        Other work of a test on the GPU would disturb the times of another process.
        Raises ``LockError``.
        """
        if self._hold is None and self.options.active and self.has_gpu:
            self.before_gpu()
            hold = ExitStack()
            hold.enter_context(self.device.lock())
            self._hold = hold

    def let_go_of_gpu(self) -> None:
        """A test that used the GPU is over."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.close()

    @property
    def opened(self) -> Device | None:
        """The GPU, if this process has used one."""
        device: Device | None = self.__dict__.get("device")
        return None if isinstance(device, PlaceholderDevice) else device

    def give_memory_back(self) -> None:
        """Leave the GPU's memory to a child process, but for arrays that live; nothing if this one has used no GPU."""
        if self.opened is not None:
            gc.collect()  # arrays in circles of references, as exceptions and closures make them, live until then
            self.opened.release_unused()

    def child_environment(self) -> dict[str, str]:
        """For a process that uses the GPU while this one holds it, and that is itself no pytest-xdist worker."""
        gpu = self.device.facts.uuid
        visible = {} if self.number is None else {"CUDA_VISIBLE_DEVICES": gpu}
        return {**self.environ, **visible, HELD_VARIABLE: gpu}

    @property
    def measured_peaks(self) -> dict[str, float]:
        """Ceilings of the GPU that are recorded or that tests asked for so far; empty if no test used the GPU."""
        return dict(self.gpu.measured_peaks) if "gpu" in self.__dict__ else {}

    @property
    def native_arch(self) -> str | None:
        """Architecture of the GPU; None without one."""
        return self.device.facts.arch if self.has_gpu else None

    @property
    def native_archs(self) -> frozenset[str]:
        """Those of the GPUs of the run; a controller of workers opens none, which takes a second, where one did."""
        of_workers = self.results.found.archs if self.results.found is not None else ()
        return frozenset(of_workers or ([self.native_arch] if self.native_arch else []))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Architectures whose static evidence is gathered and gated, of kernels that name none themselves.

        Not those that the manifest has only for kernels that name them.  A variant is one of these if its own
        architecture is recorded too (``sm_90a``, ``sm_90``).
        """
        if self.options.archs:
            return self.options.archs
        if self.revision is not None:
            return self.revision.archs
        known = self.store.archs_asked() if self.options.active else ()
        own = tuple(arch for arch in known if plain(arch) == arch or plain(arch) not in known)
        return own or tuple(sorted(self.native_archs)) or FALLBACK_ARCHS

    @cached_property
    def timer(self) -> Timer:
        name = self.options.timer
        return self.device.timer(None if name == "auto" else name)

    @cached_property
    def session(self) -> Session:
        """This recording: the machine as it is now."""
        facts = self.device.facts
        now = datetime.datetime.now(datetime.timezone.utc)
        recording = self.options.update is not None
        commit = commit_of(self.config.rootpath, self.store.root) if recording else Commit()
        return Session(
            id=f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:4]}", date=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            gpu=facts.name, uuid=facts.uuid, driver=facts.driver, toolchain=toolchain(),
            timer=self.timer.name, tick_ns=self.timer.tick_ns, overhead_ns=self.timer.overhead_ns,
            sm_clock_mhz=self.device.state().sm_clock_mhz, commit=commit.name, dirty=commit.dirty,
        )  # fmt: skip

    def require_gpu(self) -> None:
        """Raise ``pytest.UsageError`` with the reason if this process finds no usable GPU."""
        try:
            _ = self.device
        except NoDevice as problem:
            raise pytest.UsageError(f"--gpuperf-require-gpu: {problem}") from None

    def next_share(self, node_id: str) -> float:
        """The error rate of a test's next workload; ask once for each, before its first block is taken."""
        from pytest_gpuperf.judge.decision import share  # noqa: PLC0415 SciPy comes with it

        self._shares[node_id] = self._shares.get(node_id, 0) + 1
        return share(self.gated_tests, self._shares[node_id])

    @property
    def gated_tests(self) -> int:
        """That the run collected, at least one."""
        return max(len(self.results.gated), 1)

    def end_second_process(self, *, at_once: bool = False) -> None:
        """The next suspect starts another one."""
        child, self.second_process = self.second_process, None
        if child is not None:
            child.close(at_once=at_once)
