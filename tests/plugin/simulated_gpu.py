"""A GPU made of NumPy and a random number generator, behind the plugin's own device interface.

Plugin tests hand it in through ``pytest_gpuperf_device``, so that measuring, judging, recording and
reporting run for real without a GPU.  A kernel's time grows with the instructions of its machine code,
with noise between processes and between samples; its result comes from a Python function of its name.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import random
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from pytest_gpuperf.compile.machine_code.binary import ready_made
from pytest_gpuperf.counters.report import KernelResult
from pytest_gpuperf.device.interface import PLAIN, Configuration, LaunchLog, Slot, Timer
from pytest_gpuperf.model.device_facts import DeviceFacts, DeviceState
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.limits import TimerName
from pytest_gpuperf.model.result import Dim3, TracedLaunch
from pytest_gpuperf.model.roofs import ROOFS
from pytest_gpuperf.timing import host_time

FACTS = DeviceFacts(
    name="Simulated GPU", slug="simulated-gpu", uuid="GPU-5111", compute_capability=(9, 0), sm_count=132,
    l2_bytes=50 << 20, memory_bytes=80 << 30, max_threads_per_block=1024, max_grid=(2**31 - 1, 65535, 65535),
    max_block=(1024, 1024, 64), shared_bytes_per_block_optin=227 << 10,
    shared_bytes_per_sm=228 << 10, registers_per_sm=65536, max_threads_per_sm=2048, max_blocks_per_sm=32,
    driver="580.0",
)  # fmt: skip

Implementation = Callable[..., None]

PEAKS = {"copy_bandwidth": 4.3e12, "dram": 4.4e12, "l2": 5.7e12, "fp8": 0.0}
"""Of this GPU; other roofs are 3e13."""


def task_of(config: Any) -> dict[str, Any]:
    """What this process does for another one, as its task file says it; empty for a run of a user's."""
    file = config.option.gpuperf_task
    return json.loads(Path(file).read_text()) if file else {}


def confirms(config: Any) -> bool:
    """Whether this process confirms what another one found."""
    return task_of(config).get("type") == "confirm"


def instructions_of(binary: KernelBinary) -> int:
    """What the hardware executes: of machine code out of a store the profile does not say it."""
    return binary.profile.instructions or _instructions(binary.cubin, binary.symbol, binary.arch)


@functools.cache
def _instructions(cubin: bytes, symbol: str, arch: str) -> int:
    return ready_made(cubin, symbol, place="the simulated GPU", arch=arch).profile.instructions


class SimulatedKernel:
    def __init__(self, device: SimulatedGpu, binary: KernelBinary) -> None:
        self._device = device
        self._binary = binary

    def duration_ns(self, grid: Dim3) -> float:
        instructions = instructions_of(self._binary)
        return self._device.slow.get(self._binary.name, 1.0) * (
            2000.0 + 40.0 * instructions + self._device.block_ns * math.prod(grid)
        )

    def write(self, symbol: str, content: bytes) -> None:
        self._device.written.append((self._binary.cubin_hash, symbol, content))

    def __call__(self, launch: Configuration, args: Sequence[Any]) -> None:
        if launch.attributes != PLAIN:
            self._device.launched_as.add((self._binary.cubin_hash, *launch.attributes))
        implementation = self._device.implementations.get(self._binary.name)
        if self._device.broken:
            raise RuntimeError(self._device.broken)
        if implementation is not None:
            implementation(*args)
        taken_ns = self.duration_ns(launch.grid) * self._device.slow_by(self._binary)
        self._device.elapsed_ns += taken_ns
        code, registers = self._binary.cubin, self._binary.profile.registers
        self._device.ran.append((TracedLaunch(self._binary.symbol, *launch[:3], registers, cubin=code), taken_ns))
        self._device.counted(self._binary.name, instructions_of(self._binary) * launch.grid[0])


class SimulatedTimer:
    name: TimerName = "graph"
    tick_ns = 1.0
    overhead_ns = 0.0
    kernel_breakdown: tuple[dict[str, float], ...] = ()
    elapsed_ns: Sequence[Sequence[float]] = ()

    def __init__(self, device: SimulatedGpu) -> None:
        self._device = device

    def measure(self, slots: Sequence[Slot], cache: str) -> list[list[float]]:
        times, breakdown = [], []
        for slot in slots:
            self._device.ran.clear()
            times.append(self._slot(slot))
            sums = Counter[str]()
            for launch, taken_ns in self._device.ran:
                sums[launch.symbol] += taken_ns / (slot.dropped + slot.samples)
            breakdown.append(dict(sums))
        self.kernel_breakdown = tuple(breakdown)
        overlap = self._device.overlap
        self.elapsed_ns = [[overlap * one for one in of_slot] for of_slot in times] if overlap else ()
        return times

    def trace(self, slot: Slot) -> list[TracedLaunch]:
        self._device.ran.clear()
        slot.run()
        return [launch for launch, _ in self._device.ran]

    def _slot(self, slot: Slot) -> list[float]:
        times = []
        for number in range(slot.dropped + slot.samples):
            if slot.reset is not None:
                slot.reset()
            before = self._device.elapsed_ns
            slot.run()
            if number >= slot.dropped:
                times.append((self._device.elapsed_ns - before) * self._device.noise())
        return times


class SimulatedArrays:
    def random(self, shape: Any, dtype: Any = "float32", *, seed: int, low: float | None = None,
               high: float | None = None) -> Any:  # fmt: skip
        return np.random.default_rng(seed).uniform(low or 0.0, 1.0 if high is None else high, shape).astype(dtype)

    def empty(self, shape: Any, dtype: Any = "float32") -> Any:
        array = np.empty(shape, dtype)
        array.reshape(-1).view("uint8")[...] = 0xFF
        return array

    def zeros(self, shape: Any, dtype: Any = "float32") -> Any:
        return np.zeros(shape, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = "float32") -> Any:
        return np.full(shape, value, dtype)

    def empty_like(self, array: Any) -> Any:
        return np.full_like(array, -7)

    def array(self, host: Any) -> Any:
        return np.array(host)


class SimulatedGpu:
    """See the module."""

    def __init__(self, *, implementations: dict[str, Implementation] | None = None, slowdown: float = 1.0,
                 process_sd: float = 0.001, sample_sd: float = 0.003, uuid: str = FACTS.uuid,
                 block_ns: float = 0.0, state: DeviceState | None = None,
                 tail_of: Callable[[KernelBinary], tuple[float, float]] = lambda _: (0.0, 1.0),
                 slow: dict[str, float] | None = None, overlap: float = 0.0) -> None:  # fmt: skip
        """``tail_of``: which share of a kernel's samples takes how many times as long.

        ``block_ns``: what each block of a launch takes besides.

        ``slow``: by what factor kernels of a name are slower for another reason than their code.
        """
        self.facts = msgspec.structs.replace(FACTS, uuid=uuid)
        self.arrays: Any = SimulatedArrays()
        self.implementations = implementations or {}
        self.elapsed_ns = 0.0
        self.launches = LaunchLog()
        self.ran: list[tuple[TracedLaunch, float]] = []
        """Launches of the current slot, with their times in nanoseconds."""
        self.broken = ""
        self.endless = False
        self._random = np.random.default_rng([0, 0])
        self._factor = slowdown * float(np.exp(self._random.normal(0.0, process_sd)))
        self._sample_sd = sample_sd
        self._tail_of = tail_of
        self.block_ns = block_ns
        self.overlap = overlap
        """Elapsed time over the sum of kernels; 0: the timer does not see it."""
        self.slow = slow or {}
        self.launched_as: set[tuple[str, bool, Dim3 | None]] = set()
        """Hash of the cubin, cooperative, cluster of launches with attributes."""
        self.written: list[tuple[str, str, bytes]] = []
        """Hash of the cubin, symbol and content of each variable that was filled."""
        self._range = ""
        self._state = state or DeviceState(sm_clock_mhz=1980)

    def noise(self) -> float:
        return self._factor * float(np.exp(self._random.normal(0.0, self._sample_sd)))

    def slow_by(self, binary: KernelBinary) -> float:
        """How many times as long one launch of this kernel takes."""
        share, longer = self._tail_of(binary)
        return longer if share and self._random.random() < share else 1.0

    def load(self, binary: KernelBinary) -> SimulatedKernel:
        return SimulatedKernel(self, binary)

    def timer(self, name: TimerName | None = None) -> Timer:
        return SimulatedTimer(self)

    stream_pointer = 7

    def current(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def capture(self, call: Callable[[], Any]) -> Any:
        """What the call says that it would enqueue."""
        return call()

    def synchronize(self) -> None:
        if self.broken:
            raise RuntimeError(self.broken)
        self.launches.steps += 1

    def fault(self) -> str:
        return self.broken

    def is_idle(self) -> bool:
        return not self.endless

    def bytes_of(self, run: Callable[[], Any]) -> int:
        """It has no memory of its own; see ``LimitedGpu``."""
        run()
        return 0

    def release_unused(self) -> None: ...

    def state(self) -> DeviceState:
        return self._state

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        yield

    def peak(self, name: str) -> float:
        return (dict.fromkeys(ROOFS, 3.0e13) | PEAKS)[name]

    @contextlib.contextmanager
    def profiler_range(self, name: str) -> Iterator[None]:
        self._range = name
        yield
        self._range = ""

    def counted(self, kernel: str, instructions: int) -> None:
        """What the stand-in for ncu sees of a launch."""
        folder = os.environ.get("STAND_IN_NCU")
        if folder and self._range:
            with Path(folder).open("a") as trace:
                trace.write(json.dumps({"range": self._range, "kernel": kernel, "instructions": instructions}) + "\n")

    def to_host(self, array: Any) -> Any:
        return np.asarray(array)


def read_stand_in_report(report: Path) -> list[KernelResult]:
    """What the stand-in for ncu leaves."""
    return [
        KernelResult(kernel=one["kernel"], range=one["range"].partition(":")[2], metrics=one["metrics"])
        for one in json.loads(report.read_text(encoding="utf-8"))
    ]


class HostClock:
    """In place of the module ``time``: goes on by the work that is counted, whatever else the machine does."""

    ASKED_NS, FIXED_NS, SCATTER = 100.0, 5000.0, 0.01

    def __init__(self) -> None:
        self._now_ns = 0.0
        self._chance = random.Random(os.getpid())

    def perf_counter_ns(self) -> int:
        self._now_ns += self.ASKED_NS
        return int(self._now_ns)

    def work(self, ns: float) -> None:
        """Go on by so much, more or less."""
        self._now_ns += ns * self._chance.lognormvariate(0.0, self.SCATTER)

    def count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Time what a test and the fixed work take of the host."""
        monkeypatch.setattr(host_time, "time", self)
        monkeypatch.setattr(host_time, "interpreter_work", lambda: self.work(self.FIXED_NS))


HOST = HostClock()


class SharedMemory:
    """``limit`` bytes for all processes that note what they hold in ``folder``: arrays, and what pools keep of them.

    A process holds on to what it freed, as CuPy's pool does, until it gives it back.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self.limit = folder, limit
        self._live = self._held = self._most = 0

    def take(self, array: Any) -> Any:
        """The array, if there is room for it beside all that is held.  Raises ``MemoryError``."""
        self._live += array.nbytes
        weakref.finalize(array, self._free, array.nbytes)
        self._held, self._most = max(self._held, self._live), max(self._most, self._live)
        if self._held + self._of_others() > self.limit:
            raise MemoryError(f"out of memory allocating {array.nbytes} bytes of {self.limit}")
        self._note()
        return array

    def most_of(self, run: Callable[[], Any]) -> int:
        """Bytes that one call holds at most beyond what is held before it."""
        before = self._most = self._live
        result = run()
        found = self._most - before
        del result
        return found

    def give_back(self) -> None:
        self._held = self._live
        self._note()

    def _free(self, size: int) -> None:
        self._live -= size

    def _note(self) -> None:
        (self._folder / str(os.getpid())).write_text(str(self._held))

    def _of_others(self) -> int:
        alive = [file for file in self._folder.iterdir() if Path("/proc", file.name).exists()]
        return sum(int(file.read_text() or 0) for file in alive if file.name != str(os.getpid()))


class LimitedArrays:
    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Callable[..., Any]:
        make = getattr(SimulatedArrays(), name)
        return lambda *given, **more: self._memory.take(make(*given, **more))


class LimitedGpu(SimulatedGpu):
    """A simulated GPU whose memory comes to an end."""

    def __init__(self, folder: Path, limit: int, **more: Any) -> None:
        super().__init__(**more)
        self._memory = SharedMemory(folder, limit)
        self.arrays = LimitedArrays(self._memory)
        self.facts = msgspec.structs.replace(self.facts, memory_bytes=limit)

    def bytes_of(self, run: Callable[[], Any]) -> int:
        return self._memory.most_of(run)

    def release_unused(self) -> None:
        self._memory.give_back()
