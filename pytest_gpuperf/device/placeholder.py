"""The device that is handed out where there is no GPU, so that launches can be formed and validated.

The first use of data, of a time or of the device itself raises ``DeviceNeeded``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.driver_calls import Captured
from pytest_gpuperf.device.facts import nominal_facts
from pytest_gpuperf.device.interface import Dim3, LaunchLog, LoadedKernel, Timer
from pytest_gpuperf.device.placeholder_array import PlaceholderArray, without_data
from pytest_gpuperf.model.device_memory import DeviceMemory
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.model.timer_names import TimerName


class PlaceholderArrays:
    """Makes arrays without data; everything but shape and type is ignored."""

    def random(self, shape: Any, dtype: Any = "float32", **_: Any) -> PlaceholderArray:
        return without_data(shape, dtype)

    empty = zeros = random

    def full(self, shape: Any, value: Any, dtype: Any = "float32") -> PlaceholderArray:
        return self.empty(shape, dtype)

    def empty_like(self, array: Any) -> PlaceholderArray:
        return self.empty(array.shape, array.dtype)

    def array(self, host: Any) -> PlaceholderArray:
        given = host if isinstance(host, PlaceholderArray) else np.asarray(host)
        return self.empty(given.shape, given.dtype)


class PlaceholderKernel:
    """A kernel that raises ``DeviceNeeded`` when it is launched."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, grid: Dim3, block: Dim3, args: Sequence[Any], dynamic_shared_bytes: int) -> None:
        raise DeviceNeeded.for_(f"{self._name} is launched")

    def launch_as(
        self, grid: Dim3, block: Dim3, args: Sequence[Any], dynamic_shared_bytes: int,
        cooperative: bool, cluster: Dim3 | None,
    ) -> None:  # fmt: skip
        raise DeviceNeeded.for_(f"{self._name} is launched")

    def write(self, symbol: str, content: bytes) -> None:
        """There is no module."""


class PlaceholderDevice:
    """Stands in for ``Device`` where there is none; its facts are nominal for ``arch``."""

    def __init__(self, arch: str = "sm_90") -> None:
        self.facts = nominal_facts(arch)
        self.arrays = PlaceholderArrays()
        self.launches = LaunchLog()

    def load(self, binary: KernelBinary) -> LoadedKernel:
        return PlaceholderKernel(binary.name)

    def timer(self, name: TimerName | None = None) -> Timer:
        raise DeviceNeeded.for_("the test is timed")

    @property
    def stream_pointer(self) -> int:
        raise DeviceNeeded.for_("the test asks for the GPU's stream")

    def current(self) -> AbstractContextManager[None]:
        raise DeviceNeeded.for_("a workload runs")

    def capture(self, call: Callable[[], Any]) -> Captured:
        raise DeviceNeeded.for_("a launch of another library is captured")

    def synchronize(self) -> None:
        raise DeviceNeeded.for_("the test waits for the GPU")

    def fault(self) -> str:
        """Nothing has run."""
        return ""

    def is_idle(self) -> bool:
        """Nothing runs."""
        return True

    def memory(self) -> DeviceMemory:
        """There is none."""
        return DeviceMemory()

    def begin_peak(self) -> None: ...

    def bytes_of(self, run: Callable[[], Any]) -> int:
        raise DeviceNeeded.for_("the memory of a workload is measured")

    def release_unused(self) -> None: ...

    def profiler_range(self, name: str) -> AbstractContextManager[None]:
        raise DeviceNeeded.for_("the test is profiled")

    def state(self) -> DeviceState:
        """Nothing is known of a GPU that is not there."""
        return DeviceState()

    def lock(self) -> AbstractContextManager[None]:
        raise DeviceNeeded.for_("the test takes the GPU for itself")

    def peak(self, name: str) -> float:
        raise DeviceNeeded.for_(f"{name.replace('_', ' ')} is measured")

    def to_host(self, array: Any) -> Any:
        raise DeviceNeeded.for_("the test reads the data of an array")
