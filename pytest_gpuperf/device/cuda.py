"""A real GPU, through CuPy, NVML and a file lock."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_gpuperf.device.arrays import CupyArrays
from pytest_gpuperf.device.discovery import slug
from pytest_gpuperf.device.errors import LoadError
from pytest_gpuperf.device.interface import Dim3, LoadedKernel, Timer
from pytest_gpuperf.device.lock import GpuLock
from pytest_gpuperf.device.peaks import measure_peak
from pytest_gpuperf.device.state import Nvml
from pytest_gpuperf.evidence import DeviceFacts, DeviceState, KernelBinary, TimerName

FLUSH = "memset-2xl2-v1"
"""How the L2 is flushed; changes whenever that changes, for times before and after are not comparable."""
_DEFAULT_SHARED_BYTES = 48 << 10


class CudaKernel:
    """A kernel function of a module of its own."""

    def __init__(self, cupy: Any, path: Path, symbol: str) -> None:
        self._module = cupy.RawModule(path=str(path))
        self._function = self._module.get_function(symbol)
        self._opted_in = _DEFAULT_SHARED_BYTES

    def __call__(self, grid: Dim3, block: Dim3, args: Sequence[Any], dynamic_shared_bytes: int) -> None:
        if dynamic_shared_bytes > self._opted_in:
            self._function.max_dynamic_shared_size_bytes = dynamic_shared_bytes
            self._opted_in = dynamic_shared_bytes
        self._function(grid, block, tuple(args), shared_mem=dynamic_shared_bytes)


class CudaDevice:
    """``Device`` by CuPy; made by ``discovery.open_device``.

    All work goes to one non-blocking stream of its own, which is made the current one: the legacy default
    stream cannot be captured in a graph and synchronises with others.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.facts = _facts(cupy)
        self._nvml = Nvml(self.facts.uuid)
        self.facts = _with_settings(self.facts, self._nvml)
        self.arrays = CupyArrays(cupy)
        self._lock = GpuLock(self.facts.uuid)
        self._folder = tempfile.TemporaryDirectory(prefix="gpuperf-cubins-")
        self._timers: dict[TimerName | None, Timer] = {}
        self._peaks: dict[str, float] = {}

    def load(self, binary: KernelBinary) -> LoadedKernel:
        """See ``Device``.  A cubin runs on GPUs of its own major architecture and minor or later."""
        wanted = re.fullmatch(r"sm_(\d+)(\d)([af]?)", binary.arch)
        major, minor = self.facts.compute_capability
        fits = wanted is not None and int(wanted[1]) == major and int(wanted[2]) <= minor
        if not fits or (wanted is not None and wanted[3] == "a" and int(wanted[2]) != minor):
            raise LoadError(f"{binary.name} was compiled for {binary.arch}; this GPU is {self.facts.arch}")
        path = Path(self._folder.name) / f"{hashlib.sha256(binary.cubin).hexdigest()}.cubin"
        if not path.exists():
            path.write_bytes(binary.cubin)
        try:
            return CudaKernel(self._cupy, path, binary.symbol)
        except (self._cupy.cuda.driver.CUDADriverError, self._cupy.cuda.runtime.CUDARuntimeError) as problem:
            raise LoadError(
                f"{binary.name} ({binary.arch}): the driver does not load its cubin: {problem}"
            ) from problem

    def timer(self, name: TimerName | None = None) -> Timer:
        """See ``Device``; calibrated once and kept."""
        from pytest_gpuperf.device.timers import open_timer

        if name not in self._timers:
            self._timers[name] = open_timer(self, name)
        return self._timers[name]

    def synchronize(self) -> None:
        self._cupy.cuda.runtime.deviceSynchronize()

    def state(self) -> DeviceState:
        return self._nvml.state()

    def lock(self) -> AbstractContextManager[None]:
        return self._lock()

    def peak(self, name: str) -> float:
        """See ``Device``; measured at first use, under the GPU's lock.  Raises ``KeyError`` for another name."""
        if name not in self._peaks:
            with self.lock():
                self._peaks[name] = measure_peak(self, name)
        return self._peaks[name]

    def to_host(self, array: Any) -> Any:
        return self._cupy.asnumpy(array)

    def flush_l2(self) -> None:
        """Enqueue a write of twice the L2's size: what a kernel reads next comes from device memory."""
        buffer = self._flush_buffer
        buffer.data.memset_async(0, buffer.nbytes, self.stream)

    @cached_property
    def _flush_buffer(self) -> Any:
        return self._cupy.empty(2 * self.facts.l2_bytes, dtype="uint8")


def _facts(cupy: Any) -> DeviceFacts:
    runtime = cupy.cuda.runtime
    index = runtime.getDevice()
    properties = runtime.getDeviceProperties(index)
    attribute = cupy.cuda.Device(index).attributes
    name = properties["name"].decode()
    return DeviceFacts(
        name=name, slug=slug(name), uuid=_uuid(properties["uuid"]), index=index,
        compute_capability=(properties["major"], properties["minor"]), sm_count=properties["multiProcessorCount"],
        l2_bytes=properties["l2CacheSize"], memory_bytes=properties["totalGlobalMem"],
        max_threads_per_block=properties["maxThreadsPerBlock"], max_grid=tuple(properties["maxGridSize"]),
        max_block=tuple(properties["maxThreadsDim"]), shared_bytes_per_block=properties["sharedMemPerBlock"],
        shared_bytes_per_block_optin=attribute["MaxSharedMemoryPerBlockOptin"],
        shared_bytes_per_sm=properties["sharedMemPerMultiprocessor"],
        registers_per_sm=properties["regsPerMultiprocessor"],
        max_threads_per_sm=properties["maxThreadsPerMultiProcessor"],
        max_blocks_per_sm=attribute["MaxBlocksPerMultiprocessor"], warp_size=properties["warpSize"],
        cuda=_version(runtime.runtimeGetVersion()), cupy=cupy.__version__,
    )  # fmt: skip


def _with_settings(facts: DeviceFacts, nvml: Nvml) -> DeviceFacts:
    import msgspec

    found = nvml.settings()
    return msgspec.structs.replace(
        facts, driver=found.driver, power_limit_w=found.power_limit_w, ecc=found.ecc, mig=found.mig
    )


def _uuid(raw: bytes) -> str:
    """As NVML writes it."""
    text = bytes(raw)[:16].hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
