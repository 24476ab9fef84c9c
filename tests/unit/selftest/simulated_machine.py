"""A GPU whose kernels take the time that the count in their symbols asks for: a fixed cost and a cost per count."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
from simulated_gpu import SimulatedGpu, SimulatedKernel, SimulatedTimer

from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.limits import TimerName

FIXED_NS = 1500.0
NS_PER_COUNT = {"loop": 12.0, "copy": 0.008}


class CountedKernel(SimulatedKernel):
    factor = 1.0

    def duration_ns(self, grid: Any) -> float:
        found = re.fullmatch(r"gpuperf_([a-z]+)_(\d+)", self._binary.symbol)
        assert found, self._binary.symbol
        return self.factor * (FIXED_NS + NS_PER_COUNT[found[1]] * int(found[2]))


class SimulatedMachine(SimulatedGpu):
    """See the module."""

    def __init__(self, sample_sd: float = 0.003) -> None:
        super().__init__(process_sd=0.0, sample_sd=sample_sd)
        self.facts = msgspec.structs.replace(self.facts, memory_bytes=64 << 20)  # buffers are not copied at every block
        self.arrays: Any = self  # arrays cost nothing until someone writes to them

    def empty(self, shape: Any, dtype: Any = "float32") -> Any:
        return np.empty(shape, dtype)

    def random(self, shape: Any, *, seed: int) -> Any:
        return np.empty(shape, "float32")

    def load(self, binary: KernelBinary) -> SimulatedKernel:
        return CountedKernel(self, binary)

    def timer(self, name: TimerName | None = None) -> Any:
        timer = SimulatedTimer(self)
        timer.name, timer.overhead_ns = name or "cupti", 2.0
        return timer
