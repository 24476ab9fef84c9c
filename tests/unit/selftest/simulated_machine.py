"""A GPU whose kernels take the time that their own machine code asks for, behind the plugin's device interface.

A self-test kernel has its count in its symbol: its time is a fixed cost and a cost per count, with noise from
sample to sample.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pytest_gpuperf.device.interface import Configuration, LaunchLog, Slot, Timer
from pytest_gpuperf.model.device_facts import DeviceFacts, DeviceState
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.limits import TimerName

FACTS = DeviceFacts(
    name="Simulated GPU", slug="simulated-gpu", uuid="GPU-51110000-0000-0000-0000-000000000001",
    compute_capability=(9, 0), sm_count=132, l2_bytes=50 << 20, memory_bytes=64 << 20, max_threads_per_block=1024,
    max_grid=(2**31 - 1, 65535, 65535), max_block=(1024, 1024, 64),
    shared_bytes_per_block_optin=227 << 10, shared_bytes_per_sm=228 << 10, registers_per_sm=65536,
    max_threads_per_sm=2048, max_blocks_per_sm=32, driver="580.0",
)  # fmt: skip
"""Little memory, so that buffers are not copied at every block."""

FIXED_NS = 1500.0
NS_PER_COUNT = {"loop": 12.0, "copy": 0.008}


class SimulatedKernel:
    def __init__(self, machine: SimulatedMachine, binary: KernelBinary) -> None:
        found = re.fullmatch(r"gpuperf_([a-z]+)_(\d+)", binary.symbol)
        assert found, binary.symbol
        self._machine = machine
        self.duration_ns = FIXED_NS + NS_PER_COUNT[found[1]] * int(found[2])

    def __call__(self, launch: Configuration, args: Sequence[Any]) -> None:
        self._machine.elapsed_ns += self.duration_ns


class SimulatedTimer:
    tick_ns = 1.0
    overhead_ns = 2.0
    kernel_breakdown = ()

    def __init__(self, machine: SimulatedMachine, name: TimerName) -> None:
        self.name: TimerName = name
        self._machine = machine

    def measure(self, slots: Sequence[Slot], cache: str) -> list[list[float]]:
        return [[self._sample(slot) for _ in range(slot.samples)] for slot in slots]

    def _sample(self, slot: Slot) -> float:
        before = self._machine.elapsed_ns
        slot.run()
        return (self._machine.elapsed_ns - before) * self._machine.noise()


class SimulatedArrays:
    """Arrays that cost nothing until someone writes to them."""

    def empty(self, shape: Any, dtype: Any = "float32") -> Any:
        return np.empty(shape, dtype)

    def random(self, shape: Any, dtype: Any = "float32", *, seed: int, low: float | None = None,
               high: float | None = None) -> Any:  # fmt: skip
        return np.empty(shape, dtype)


class SimulatedMachine:
    """See the module."""

    def __init__(self, *, seed: int, sample_sd: float = 0.003) -> None:
        self.facts = FACTS
        self.arrays = SimulatedArrays()
        self.launches = LaunchLog()
        self.elapsed_ns = 0.0
        self._random = np.random.default_rng(seed)
        self._sample_sd = sample_sd

    def noise(self) -> float:
        return float(np.exp(self._random.normal(0.0, self._sample_sd)))

    def load(self, binary: KernelBinary) -> SimulatedKernel:
        return SimulatedKernel(self, binary)

    def timer(self, name: TimerName | None = None) -> Timer:
        return SimulatedTimer(self, name or "cupti")

    def synchronize(self) -> None: ...

    def fault(self) -> str:
        return ""

    def release_unused(self) -> None: ...

    def state(self) -> DeviceState:
        return DeviceState(sm_clock_mhz=1980)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        yield
