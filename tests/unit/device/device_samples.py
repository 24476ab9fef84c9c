"""Stand-ins for what the device package touches: a compiled kernel, CuPy on NumPy, NVML, the CUDA driver."""

from __future__ import annotations

import contextlib
import ctypes
import types
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from pytest_gpuperf.device.interface import Configuration
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.evidence import KernelBinary, Parameter, StaticProfile

PROFILE = StaticProfile(
    registers=32, stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=0, constant_bytes=0, barriers=0,
    code_bytes=256, instructions=16, opcodes={}, code_hash="c0de",
)  # fmt: skip


def make_profile(**changes: Any) -> StaticProfile:
    import msgspec

    return msgspec.structs.replace(PROFILE, **changes)


def make_binary(
    *parameters: str | int, arch: str = "sm_90", bound: int | None = None,
    required_block: tuple[int, int, int] | None = None, **profile: Any,
) -> KernelBinary:  # fmt: skip
    """A kernel called ``work``; parameters by their type, or by size where the type is not known."""
    sizes = {"float": 4, "int": 4, "unsigned int": 4, "bool": 1, "short": 2, "__half": 2, "8-bit integer": 1,
             "16-bit integer": 2, "32-bit integer": 4}  # fmt: skip
    made = []
    for parameter in parameters:
        if isinstance(parameter, int):
            made.append(Parameter(offset=0, size=parameter))
        else:
            size = 8 if "*" in parameter else sizes.get(parameter, 8)
            made.append(Parameter(offset=0, size=size, type=parameter))
    return KernelBinary(
        name="work", symbol="work", arch=arch, toolchain="nvrtc 13.0.88", source_hash="50", cubin=b"cubin",
        profile=make_profile(**profile), parameters=tuple(made), max_threads_per_block=bound,
        required_block=required_block,
    )  # fmt: skip


class NotingDevice(PlaceholderDevice):
    """Notes what is loaded, launched and written."""

    def __init__(self, arch: str = "sm_90") -> None:
        super().__init__(arch)
        self.log: list[Any] = []

    def load(self, binary: KernelBinary) -> Any:
        self.log.append(("load", binary.arch))
        return NotingKernel(self.log)


class NotingKernel:
    def __init__(self, log: list[Any]) -> None:
        self._log = log

    def __call__(self, launch: Configuration, args: Sequence[Any]) -> None:
        self._log.append(("launch", launch, args))

    def write(self, symbol: str, content: bytes) -> None:
        self._log.append(("write", symbol, content))


class DeviceArray:
    """What CuPy's arrays have and NumPy's have not: a device address."""

    def __init__(self, host: np.ndarray[Any, Any], address: int = 0x7F0000000200) -> None:
        self._host = host
        self.shape, self.dtype, self.strides = host.shape, host.dtype, host.strides
        self.data = types.SimpleNamespace(ptr=address)
        interface = {"typestr": host.dtype.str, "shape": host.shape, "data": (address, False), "version": 3}
        interface["strides"] = None if host.flags.c_contiguous else host.strides
        self.__cuda_array_interface__ = interface


class FakeNvml(types.ModuleType):
    """``pynvml`` with one GPU; ``answers`` by function name, an exception to raise it."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        pass

    def __init__(self, uuid: str = "GPU-11", pids: Sequence[int] = (), **answers: Any) -> None:
        super().__init__("pynvml")
        self.uuid = uuid
        self.answers = {
            "Init": None, "DeviceGetCount": 1, "DeviceGetHandleByIndex": "handle", "DeviceGetUUID": uuid,
            "DeviceGetCurrentClocksEventReasons": 1, "DeviceGetClockInfo": 1980,
            "DeviceGetComputeRunningProcesses": [types.SimpleNamespace(pid=pid) for pid in pids],
            "SystemGetDriverVersion": "580.95.05", **answers,
        }  # fmt: skip

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.removeprefix("nvml") not in self.__dict__.get("answers", {}):
            raise AttributeError(name)
        return lambda *arguments: _answer(self.answers[name.removeprefix("nvml")])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != self.uuid:
            raise self.NVMLError("not found")
        return "handle"


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
    """CuPy, as far as the device uses it, on NumPy arrays; ``log`` keeps what was asked of the GPU."""

    array, zeros, full, asnumpy = map(staticmethod, (np.array, np.zeros, np.full, np.asarray))

    def __init__(self, count: int | Exception = 1, properties: dict[str, Any] = PROPERTIES) -> None:
        self.log: list[Any] = []
        self.current: FakeStream | None = None
        self.entered: list[FakeStream | None] = [None]
        self.count = count
        self.load_error: Exception | None = None
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
            Stream=lambda: FakeStream(self), get_current_stream=lambda: self.current, MemoryHook=MemoryHook,
            alloc=PoolMemory, Memory=lambda size: log(("alloc", size)),
            MemoryPointer=lambda memory, offset: of(memset_async=lambda *given: log(("memset", *given))),
        )  # fmt: skip
        self.cuda.Stream.null = of(ptr=0)
        self.get_default_memory_pool = lambda: of(free_all_blocks=lambda: log("emptied"))

    def _synchronize(self) -> None:
        self.log.append("synchronize")
        if self.faults:
            raise FakeError(self.faults.pop(0))

    def RawModule(self, path: str) -> Any:
        _answer(self.load_error)
        return types.SimpleNamespace(
            get_function=lambda symbol: FakeFunction(self.log, symbol),
            get_global=lambda symbol: FakeVariable(self.log, symbol),
        )

    def asarray(self, array: Any) -> Any:
        return array._host if isinstance(array, DeviceArray) else array

    def empty(self, shape: Any, dtype: Any) -> Any:
        return np.zeros(shape, dtype).view(_WithMemory)

    def ElementwiseKernel(self, inputs: str, outputs: str, code: str, name: str) -> Callable[..., None]:
        return {"gpuperf_uniform": _uniform, "gpuperf_whole": _whole}[name]


class _WithMemory(np.ndarray):  # type: ignore[type-arg]
    """An array with the ``data`` of CuPy's."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return types.SimpleNamespace(memset_async=lambda value, size: self.view(np.uint8).reshape(-1).fill(value))


class MemoryHook:
    """CuPy's, which is told of what the pool gives out and takes back, in multiples of 512 bytes."""

    active: ClassVar[list[Any]] = []

    def __enter__(self) -> MemoryHook:
        self.active.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.active.remove(self)


class PoolMemory:
    """What ``cupy.cuda.alloc`` returns."""

    def __init__(self, size: int) -> None:
        self._size = -(-size // 512) * 512
        for hook in MemoryHook.active:
            hook.malloc_postprocess(device_id=0, size=size, mem_size=self._size, mem_ptr=1, pmem_id=1)

    def __del__(self) -> None:
        for hook in MemoryHook.active:
            hook.free_postprocess(device_id=0, mem_size=self._size, mem_ptr=1, pmem_id=1)


class FakeVariable:
    """``cupy.cuda.MemoryPointer`` of a variable; one called ``hidden`` is out of the driver's reach."""

    def __init__(self, log: list[Any], symbol: str) -> None:
        if symbol == "hidden":
            raise FakeError("CUDA_ERROR_NOT_FOUND: named symbol not found")
        self._log = log
        self._symbol = symbol

    def copy_from_host(self, address: int, size: int) -> None:
        self._log.append(("write", self._symbol, ctypes.string_at(address, size)))


class FakeFunction:
    kernel = types.SimpleNamespace(ptr=99)

    def __init__(self, log: list[Any], symbol: str) -> None:
        self._log = log
        self._symbol = symbol

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            self._log.append((name, value))
        object.__setattr__(self, name, value)

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int) -> None:
        self._log.append(("launch", self._symbol, grid, block, args, shared_mem))


def split_mix(seed: int, count: int) -> np.ndarray[Any, Any]:
    """SplitMix64 from the state ``seed``, as published: the reference for the GPU's numbers."""
    numbers, state, mask = [], int(seed), (1 << 64) - 1
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        numbers.append(z ^ (z >> 31))
    return np.array(numbers, dtype=np.uint64)


def _uniform(seed: Any, bits: Any, step: float, low: float, span: float, out: Any) -> None:
    numbers = (split_mix(seed, out.size) >> np.uint64(64 - bits)).astype(np.float64)
    out.reshape(-1)[:] = (low + numbers * step * span).astype(out.dtype)


def _whole(seed: Any, low: Any, span: Any, out: Any) -> None:
    numbers = split_mix(seed, out.size)
    with np.errstate(over="ignore"):
        out.reshape(-1)[:] = (low + (numbers % span if span else numbers)).astype(out.dtype)
