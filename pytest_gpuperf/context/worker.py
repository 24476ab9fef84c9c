"""The measuring worker of one process: its GPU, its compiler, the baselines it compares with.

Everything is opened when a test first needs it, once.  The worker knows no test and makes no verdict.
"""

from __future__ import annotations

import datetime
import secrets
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.model.plugin_version import __version__
from pytest_gpuperf.model.task import ProfileTask, RecordTask

if TYPE_CHECKING:
    from pytest_gpuperf.baselines import BaselineStore
    from pytest_gpuperf.compile import CompileCache
    from pytest_gpuperf.device.discovery import NoDevice
    from pytest_gpuperf.device.gpu import Gpu
    from pytest_gpuperf.device.interface import Device, Timer
    from pytest_gpuperf.judge.error_budget import Spending
    from pytest_gpuperf.model.evidence import Key, Session
    from pytest_gpuperf.model.result import SelfPairReading
    from pytest_gpuperf.timing.pending_confirmations import PendingConfirmation

FALLBACK_ARCHS = ("sm_80", "sm_90", "sm_120")
"""Static targets where there are neither baselines nor a GPU: one of each generation in wide use."""


class Worker:
    """What the fixtures of one process share."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.no_device: NoDevice | None = None
        """Why there is no GPU; None while there is one or nobody has asked."""
        self.cubins: dict[str, bytes] = {}
        """Machine code of the timed kernels by SHA-256, kept for an update to store."""
        self.suspects: dict[Key, PendingConfirmation] = {}
        """Workloads that were slower in this process and wait for the end of their test to be confirmed."""
        self.confirmations_left = options.confirmations
        self.self_pairs: set[str] = set()
        """Node ids of tests whose first launch is still to be paired with itself."""
        self.readings: dict[str, SelfPairReading] = {}
        """What came of it, by node id."""
        self.canary_shifts: dict[str, float] = {}
        """Log of each canary's time here over that on record, where it moved the most; by name."""
        self._hypotheses = 0
        self._hold: ExitStack | None = None

    @property
    def number(self) -> int | None:
        """Number of this pytest-xdist worker; None without workers."""
        name = getattr(self.config, "workerinput", {}).get("workerid", "")
        return int(name[2:]) if name.startswith("gw") else None

    @cached_property
    def store(self) -> BaselineStore:
        from pytest_gpuperf.baselines import BaselineStore

        return BaselineStore(self.options.baselines)

    @cached_property
    def compile_cache(self) -> CompileCache:
        from pytest_gpuperf.compile import CompileCache

        return CompileCache()

    @cached_property
    def device(self) -> Device:
        """The GPU, or a placeholder that raises ``DeviceNeeded`` at the first use of data or time."""
        from pytest_gpuperf.device.discovery import NoDevice, open_device
        from pytest_gpuperf.device.placeholder import PlaceholderDevice

        given: Device | None = self.config.hook.pytest_gpuperf_device(config=self.config, worker=self.number)
        if given is not None:
            return given
        try:
            return open_device(self.number)
        except NoDevice as problem:
            if self.options.require_gpu:
                raise
            self.no_device = problem
            return PlaceholderDevice()

    @property
    def has_gpu(self) -> bool:
        """Whether workloads can run here; opens the device if nobody has."""
        _ = self.device
        return self.no_device is None

    @cached_property
    def gpu(self) -> Gpu:
        from pytest_gpuperf.device.gpu import Gpu

        if not isinstance(self.options.task, ProfileTask):
            return Gpu(self.device, before_work=self.hold_gpu)
        from pytest_gpuperf.context.early_stop import CheckedOnly

        no_peaks = CheckedOnly("peaks are not measured while counters are collected")
        return Gpu(self.device, before_work=self.hold_gpu, no_peaks=no_peaks)

    def hold_gpu(self) -> None:
        """In a gated run, keep other gated processes off the GPU until ``let_go_of_gpu``; a second call does nothing.

        What a test does on the GPU besides its workloads would disturb what another process times.
        Raises ``LockTimeout`` and ``LockUnavailable``.
        """
        if self._hold is None and self.options.active and self.has_gpu:
            hold = ExitStack()
            hold.enter_context(self.device.lock())
            self._hold = hold

    def let_go_of_gpu(self) -> None:
        """A test that used the GPU is over."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.close()

    @property
    def measured_peaks(self) -> dict[str, float]:
        """Ceilings of the GPU that tests asked for so far; empty if none did."""
        return dict(self.gpu.measured_peaks) if "gpu" in self.__dict__ else {}

    @property
    def native_arch(self) -> str | None:
        """Architecture of the GPU; None without one."""
        return self.device.facts.arch if self.has_gpu else None

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Architectures whose static evidence is gathered and gated."""
        if self.options.archs:
            return self.options.archs
        known = self.store.archs() if self.options.active else ()
        return tuple(known) or ((self.native_arch,) if self.native_arch else FALLBACK_ARCHS)

    @cached_property
    def timer(self) -> Timer:
        name = self.options.timer
        return self.device.timer(None if name == "auto" else name)

    @cached_property
    def canaries(self) -> dict[str, float]:
        """Nanoseconds of the canary kernels in this process; whoever asks first holds the GPU's lock."""
        from pytest_gpuperf.timing.canaries import canary_times

        times = canary_times(self.device, self.timer, self.compile_cache)
        self.device.release_unused()  # where arrays of the tests will lie is not for the canaries' to say
        return times

    @cached_property
    def session(self) -> Session:
        """This recording: the machine as it is now.  An update's has canaries, so ask for it under the GPU's lock."""
        from pytest_gpuperf.compile import toolchain
        from pytest_gpuperf.model.evidence import Session

        facts, state = self.device.facts, self.device.state()
        now = datetime.datetime.now(datetime.timezone.utc)
        return Session(
            id=f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:4]}", date=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            gpu=facts.name, uuid=facts.uuid, driver=facts.driver, cuda=facts.cuda, toolchain=toolchain(),
            cupy=facts.cupy, timer=self.timer.name, tick_ns=self.timer.tick_ns, overhead_ns=self.timer.overhead_ns,
            sm_clock_mhz=state.sm_clock_mhz, memory_clock_mhz=state.memory_clock_mhz,
            power_limit_w=facts.power_limit_w, temperature_c=state.temperature_c, ecc=facts.ecc, mig=facts.mig,
            plugin=__version__, canaries=self.canaries if isinstance(self.options.task, RecordTask) else {},
        )  # fmt: skip

    @cached_property
    def spending(self) -> Spending:
        """This process's part of the run's error rate."""
        from pytest_gpuperf.judge.error_budget import Spending, spending_of

        if self.number is None:
            return Spending()
        return spending_of(self.number, int(self.config.workerinput["workercount"]))  # type: ignore[attr-defined]

    def next_share(self) -> float:
        """The error rate of the next workload that may be called slower; ask once, before its first time is taken."""
        self._hypotheses += 1
        return self.spending.share(self._hypotheses)

    def note_canaries(self, shifts: Mapping[str, float]) -> None:
        """Keep what moved more than is known of it so far; ``shifts`` are logs, by canary."""
        from pytest_gpuperf.judge.canary_shift import furthest

        self.canary_shifts = furthest([self.canary_shifts, shifts])

    @staticmethod
    def seed() -> int:
        """A fresh seed for a coin; whoever tosses it records the seed."""
        return secrets.randbits(32)

    @property
    def process(self) -> int:
        """Which of an update's processes this is; 0 outside an update."""
        return self.options.task.index if isinstance(self.options.task, RecordTask) else 0

    def require_gpu(self) -> None:
        """Raise ``pytest.UsageError`` with the reason if this process finds no usable GPU."""
        from pytest_gpuperf.device.discovery import NoDevice

        try:
            _ = self.device
        except NoDevice as problem:
            raise pytest.UsageError(f"--gpuperf-require-gpu: {problem}") from None
