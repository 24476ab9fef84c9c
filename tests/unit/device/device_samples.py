"""Stand-ins for what the device package touches: a compiled kernel, CuPy on NumPy, NVML, the CUDA driver."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
from record_samples import profile_of

from pytest_gpuperf.device.interface import Configuration
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.evidence import KernelBinary, Parameter


def make_binary(
    *parameters: str | int, arch: str = "sm_90", bound: int | None = None,
    required_block: tuple[int, int, int] | None = None, **profile: Any,
) -> KernelBinary:  # fmt: skip
    """A kernel called ``work``; parameters by their type, or by size where the type is not known."""
    sizes = {"float": 4, "int": 4, "unsigned int": 4, "bool": 1, "short": 2, "__half": 2, "__nv_bfloat16": 2,
             "8-bit integer": 1, "16-bit integer": 2, "32-bit integer": 4}  # fmt: skip
    made = [
        Parameter(offset=0, size=one) if isinstance(one, int) else
        Parameter(offset=0, size=8 if "*" in one else sizes.get(one, 8), type=one) for one in parameters
    ]  # fmt: skip
    return KernelBinary(
        name="work", symbol="work", arch=arch, toolchain="nvrtc 13.0.88", source_hash="50", cubin=b"cubin",
        profile=profile_of(**{"code_hash": "c0de", **profile}), parameters=tuple(made), max_threads_per_block=bound,
        required_block=required_block,
    )  # fmt: skip


class NotingDevice(PlaceholderDevice):
    """Notes what is loaded, launched and written."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Any] = []

    def load(self, binary: KernelBinary) -> Any:
        self.log.append(("load", binary.arch))
        return self

    def __call__(self, launch: Configuration, args: Sequence[Any]) -> None:
        self.log.append(("launch", launch, args))

    def write(self, symbol: str, content: bytes) -> None:
        self.log.append(("write", symbol, content))


class HostArrays:
    """Arrays of a GPU that are NumPy's."""

    zeros, full, array, empty = map(staticmethod, (np.zeros, np.full, np.array, np.empty))

    @staticmethod
    def random(shape: Any, dtype: Any = "float32", *, seed: int, **_: Any) -> Any:
        return np.random.default_rng(seed).normal(size=shape).astype(dtype)


class DeviceArray:
    """What CuPy's arrays have and NumPy's have not: a device address."""

    def __init__(self, host: np.ndarray[Any, Any], address: int = 0x7F0000000200) -> None:
        self._host = host
        self.shape, self.dtype, self.strides = host.shape, host.dtype, host.strides
        self.data = types.SimpleNamespace(ptr=address)
        interface = {"typestr": host.dtype.str, "shape": host.shape, "data": (address, False), "version": 3}
        interface["strides"] = None if host.flags.c_contiguous else host.strides
        self.__cuda_array_interface__ = interface


def device_array(*shape: int, dtype: str = "float32", address: int = 0x7F0000000200) -> DeviceArray:
    return DeviceArray(np.zeros(shape, dtype), address)


def _answer(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


class FakeError(RuntimeError):
    """CuPy's CUDA errors are RuntimeErrors."""


PROPERTIES = {
    "name": b"NVIDIA H200", "major": 9, "minor": 0, "multiProcessorCount": 132, "l2CacheSize": 60 << 20,
    "totalGlobalMem": 140 << 30, "maxThreadsPerBlock": 1024, "maxGridSize": [2**31 - 1, 65535, 65535],
    "maxThreadsDim": [1024, 1024, 64], "sharedMemPerBlock": 48 << 10, "sharedMemPerBlockOptin": 227 << 10,
    "sharedMemPerMultiprocessor": 228 << 10, "regsPerMultiprocessor": 65536, "maxThreadsPerMultiProcessor": 2048,
    "maxBlocksPerMultiProcessor": 32, "warpSize": 32,
}  # fmt: skip


class FakeStream:
    """The end of a ``with`` goes back to the ``with`` around it, whatever ``use`` said."""

    ptr = 4711

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy

    def use(self) -> None:
        self._cupy.log.append("used")
        self._cupy.current = self

    def __enter__(self) -> None:
        self._cupy.log.append("entered")
        self._cupy.entered.append(self)
        self._cupy.current = self

    def __exit__(self, *problem: object) -> None:
        self._cupy.log.append("left")
        self._cupy.entered.pop()
        self._cupy.current = self._cupy.entered[-1]


class FakeOrdinal(contextlib.ExitStack):
    """A GPU by its number, to make the current one for good or for a while."""

    def __init__(self, log: list[Any], ordinal: int) -> None:
        super().__init__()
        self.use = lambda: log.append(("device", ordinal))


class FakeCupy:
    """CuPy, as far as the device uses it; ``log`` keeps what was asked of the GPU."""

    array = zeros = full = ElementwiseKernel = staticmethod(lambda *_: None)

    def __init__(self, count: int | Exception = 1, properties: dict[str, Any] = PROPERTIES) -> None:
        self.log: list[Any] = []
        self.current: FakeStream | None = None
        self.entered: list[FakeStream | None] = [None]
        self.count = count
        self.unfinished: dict[int, int] = {}
        """What a query of a stream returns, by its address: 600 while it goes on, a fault's number after one."""
        self.faults: list[str] = []
        """What the next waits raise, one after the other."""
        of, log = types.SimpleNamespace, self.log.append
        self.cuda = of(
            runtime=of(
                CUDARuntimeError=FakeError, getDeviceCount=lambda: _answer(self.count), runtimeGetVersion=lambda: 13020,
                getDeviceProperties=lambda ordinal: properties, driverGetVersion=lambda: 12040,
                deviceSynchronize=self._synchronize, streamQuery=lambda pointer: self.unfinished.get(pointer, 0),
            ),
            driver=of(CUDADriverError=FakeError), Device=lambda ordinal: FakeOrdinal(self.log, ordinal),
            Stream=lambda: FakeStream(self), get_current_stream=lambda: self.current,
            Memory=lambda size: log(("alloc", size)),
            MemoryPointer=lambda memory, offset: of(memset_async=lambda *given: log(("memset", *given))),
        )  # fmt: skip
        self.cuda.Stream.null = of(ptr=0)
        self.get_default_memory_pool = lambda: of(free_all_blocks=lambda: log("emptied"))

    def _synchronize(self) -> None:
        self.log.append("synchronize")
        if self.faults:
            raise FakeError(self.faults.pop(0))
