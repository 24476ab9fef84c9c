"""A real GPU: CuPy, NVML and a file lock behind the ``Device`` interface."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.machine_code.cubin import is_tile_kernel
from pytest_gpuperf.device import timers
from pytest_gpuperf.device.arrays import CupyArrays
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.device.discovery import Nvml
from pytest_gpuperf.device.driver_calls import (
    CapturedKernel,
    capture_call,
    encode_tensor_map,
    has_persisting_l2,
    launch_extended,
)
from pytest_gpuperf.device.interface import PLAIN, Configuration, LaunchLog, LoadedKernel, Timer
from pytest_gpuperf.device.lock import hold_gpu
from pytest_gpuperf.device.peaks import measure_peak
from pytest_gpuperf.model.architectures import STATIC_SHARED_BYTES
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.limits import TimerName

FLUSH_FACTOR = 2
"""Bytes that a flush of the L2 writes, over its size.  What is flushed otherwise has other dirty lines to write back,
so times of two methods are not comparable."""
_NOT_READY = 600
"""``cudaErrorNotReady``"""


class CudaKernel:
    """A kernel of a module of its own."""

    def __init__(self, device: CudaDevice, module: Any, binary: KernelBinary) -> None:
        """Raises the errors of CuPy."""
        self._device, self._module = device, module
        self._function = module.get_function(binary.symbol)
        self._in_tiles = is_tile_kernel(binary.cubin, binary.symbol)
        self._granted_bytes = STATIC_SHARED_BYTES - binary.profile.shared_bytes
        """Of dynamic shared memory."""

    def __call__(self, launch: Configuration, args: Sequence[Any]) -> None:
        """On the current stream of CuPy."""
        if launch.dynamic_shared_bytes > self._granted_bytes:
            self._function.max_dynamic_shared_size_bytes = self._granted_bytes = launch.dynamic_shared_bytes
        if self._in_tiles:  # the driver knows the threads itself
            launch = launch._replace(block=(1, 1, 1))
        if launch.attributes == PLAIN:
            self._function(launch.grid, launch.block, tuple(args), shared_mem=launch.dynamic_shared_bytes)
        else:
            stream = int(self._device.cupy.cuda.get_current_stream().ptr)
            launch_extended(self._device.driver, self._function.kernel.ptr, stream, launch, args)

    def write(self, symbol: str, content: bytes) -> None:
        buffer = ctypes.create_string_buffer(content, len(content))
        try:
            self._module.get_global(symbol).copy_from_host(ctypes.addressof(buffer), len(content))
        except self._device.errors as problem:
            raise LoadError(
                f"the driver gives no access to {symbol}: {problem}. Declare it without static"
            ) from problem


class CudaDevice:
    """``Device`` by CuPy; made by ``discovery.open_device``.

    All work goes to one stream, which is made CuPy's current one: the legacy default stream cannot be captured in a
    graph.  The two wait for each other, so what other libraries launch comes behind the flush and before the next one.
    """

    def __init__(self, cupy: Any, ordinal: int, facts: DeviceFacts, nvml: Nvml, driver: Any) -> None:
        """``driver`` is ``cuda.bindings.driver``."""
        self.cupy, self.driver, self._ordinal = cupy, driver, ordinal
        self.facts = facts
        cupy.cuda.Device(ordinal).use()
        self.stream = cupy.cuda.Stream()
        self.stream.use()
        self.arrays = CupyArrays(cupy)
        self.launches = LaunchLog()
        self.state = nvml.state
        self.lock = partial(hold_gpu, facts.uuid)
        self.errors = cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError
        """Those of CuPy for what the driver refuses."""
        self._timers: dict[TimerName | None, Timer] = {}

    def load(self, binary: KernelBinary) -> LoadedKernel:
        with TemporaryDirectory(prefix="gpuperf-") as folder:  # only this user can enter it
            path = Path(folder) / "kernel.cubin"  # CuPy keeps modules by path: the folder is a new one each time
            path.write_bytes(binary.cubin)
            try:
                return CudaKernel(self, self.cupy.RawModule(path=str(path)), binary)
            except self.errors as problem:
                raise LoadError(f"{binary.name} ({binary.arch}): the driver refuses its cubin: {problem}") from problem

    def timer(self, name: TimerName | None = None) -> Timer:
        """Calibrated at first use, and kept."""
        if name not in self._timers:
            timer = timers.open_timer(self, name)
            self._timers[name] = self._timers.setdefault(timer.name, timer)
        return self._timers[name]

    @property
    def stream_pointer(self) -> int:
        return int(self.stream.ptr)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """For other libraries the user passes ``gpu.stream``."""
        self.synchronize()
        before = self.cupy.cuda.get_current_stream()
        try:
            with self.stream, _torch_follows(self.stream_pointer):
                yield
        finally:
            before.use()  # the end of CuPy's ``with`` forgets a stream that ``use`` made current
        self.synchronize()

    def synchronize(self) -> None:
        """Wait for all streams of this GPU."""
        self.cupy.cuda.runtime.deviceSynchronize()
        self.launches.steps += 1

    def fault(self) -> str:
        """An error that waiting once has cleared is no fault of the context."""
        for _ in range(2):
            try:
                self.synchronize()
            except self.errors as problem:
                found = str(problem)
            else:
                return ""
        return found

    def capture(self, call: Callable[[], Any]) -> CapturedKernel:
        with self.current():
            return capture_call(self.driver, self.stream_pointer, call)

    tensor_map = staticmethod(encode_tensor_map)

    def is_idle(self) -> bool:
        """While a graph is captured, a query of the default stream would void it.

        CuPy's query raises nothing: after a fault, when nothing runs any more, it returns that fault.
        """
        query = self.cupy.cuda.runtime.streamQuery
        with self.cupy.cuda.Device(self._ordinal):  # in a thread of its own the current one is another
            return all(query(int(one.ptr)) != _NOT_READY for one in (self.stream, self.cupy.cuda.Stream.null))

    def bytes_of(self, run: Callable[[], Any]) -> int:
        self.synchronize()
        gc.collect()  # what nobody holds any more is not given back in the middle
        if not self._held_by(lambda: self.cupy.cuda.alloc(1)):
            raise BadArgument(
                "measure='memory' counts the memory of the pools of CuPy and PyTorch, but cupy.cuda.set_allocator(...) "
                "replaced CuPy's pool: do not replace it, or leave memory out of measure="
            )
        found = self._held_by(run)
        self.synchronize()
        return found

    def _held_by(self, run: Callable[[], Any]) -> int:
        """The most that CuPy's pool and PyTorch's gave out during a call, its result included."""
        torch, before, held = _torch_cuda(), 0, [0]
        if torch is not None:
            torch.reset_peak_memory_stats()
            before = int(torch.memory_allocated())
        hook = type("CupyWatch", (self.cupy.cuda.MemoryHook,), {
            "name": "pytest-gpuperf",
            "malloc_postprocess": lambda _, *, mem_size, **__: held.append(held[-1] + mem_size),
            "free_postprocess": lambda _, *, mem_size, **__: held.append(held[-1] - mem_size),
        })  # fmt: skip
        with hook():
            result = run()
            most = max(held)
        if torch is not None:
            most += max(int(torch.max_memory_allocated()) - before, 0)
        del result
        return most

    def release_unused(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()
        if (torch := _torch_cuda()) is not None:
            with contextlib.suppress(RuntimeError):  # a fault of the GPU: its next use reports it
                torch.empty_cache()

    def peak(self, name: str) -> float:
        with self.lock(), self.current():
            return measure_peak(self, name)

    def to_host(self, array: Any) -> Any:
        return self.cupy.asnumpy(self.cupy.asarray(array) if hasattr(array, "__cuda_array_interface__") else array)

    @contextlib.contextmanager
    def profiler_range(self, name: str) -> Iterator[None]:
        """In NVTX's default domain, of this thread, so PyTorch's backward pass is launched from it."""
        from cupyx.profiler import time_range  # noqa: PLC0415 only under ncu

        autograd = getattr(sys.modules.get("torch"), "autograd", None)
        threads = getattr(autograd, "set_multithreading_enabled", contextlib.nullcontext)
        with time_range(name), threads(False):
            yield

    def flush_l2(self) -> None:
        """Enqueue a write of twice the L2's size, so that what a kernel reads next comes from device memory.

        Lines that the workload made persist outlast it: they are made ordinary ones first, when the workload is over.
        """
        if has_persisting_l2(self.driver):
            self.stream.synchronize()
            self.driver.cuCtxResetPersistingL2Cache()
        self._flush_buffer.memset_async(0, FLUSH_FACTOR * self.facts.l2_bytes, self.stream)

    @cached_property
    def _flush_buffer(self) -> Any:
        """Outside of CuPy's pool, which could not give back a large block that this was cut out of."""
        return self.cupy.cuda.MemoryPointer(self.cupy.cuda.Memory(FLUSH_FACTOR * self.facts.l2_bytes), 0)


def _torch_follows(stream: int) -> AbstractContextManager[Any]:
    """Inside, PyTorch's current stream is ``stream``, if it uses a GPU already.

    PyTorch keeps a current stream of its own, and Triton launches there too: what they run would be neither behind
    the flush of the L2 nor in a captured graph.
    """
    cuda = _torch_cuda()
    return contextlib.nullcontext() if cuda is None else cuda.stream(cuda.ExternalStream(stream))


def _torch_cuda() -> Any:
    """``torch.cuda``, if the test suite has imported PyTorch and it has used a GPU."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
