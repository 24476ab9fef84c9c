"""Find the GPU of this process with its facts and its state, or say why there is none and what to do about it.

Facts come from the CUDA runtime, the driver and NVML, nominal ones where there is no GPU; None is whatever this GPU,
driver or container does not tell.

``CUDA_VISIBLE_DEVICES`` belongs to the caller: a pytest-xdist worker narrows it to one of its entries and never
replaces it by an index of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pytest_gpuperf.compile.compile_errors import UnknownArchitecture
from pytest_gpuperf.compile.machine_code.occupancy import REGISTERS_PER_SM, THREADS_PER_BLOCK, limits_of
from pytest_gpuperf.device.device_errors import NoDevice
from pytest_gpuperf.model.architectures import ARCHITECTURES
from pytest_gpuperf.model.device_facts import DeviceFacts, DeviceState

if TYPE_CHECKING:
    from pytest_gpuperf.device.cuda import CudaDevice

VARIABLE = "CUDA_VISIBLE_DEVICES"
DRIVER_LIBRARY = "libcuda.so.1"
_INSTALL_CUPY = "install CuPy for the driver's CUDA: pip install 'pytest-gpuperf[cuda13]', or [cuda12]"
_CHECK = f"{VARIABLE} may hide GPUs; gpuperf doctor and nvidia-smi list those of the machine"
_SIGNS = (
    "cudaErrorNoDevice", "cudaErrorInsufficientDriver", "cudaErrorStubLibrary", "CUDA_ERROR_NO_DEVICE",
    "CUDA_ERROR_STUB_LIBRARY", "libcuda.so", "no CUDA-capable device", "Found no NVIDIA driver",
    "No CUDA GPUs are available", "Torch not compiled with CUDA enabled", "Failed to import CuPy", "0 active drivers",
)  # fmt: skip
"""Words in which CuPy, PyTorch, Numba, Triton and the CUDA bindings say that there is no GPU or no driver."""

_REASONS = {
    0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown", 0x80: "power brake",
}  # fmt: skip
"""NVML's clock event reasons (``nvmlClocksEventReason*``) that disturb a measurement.

Idle (0x1) and display clocks (0x100) do not; clocks set by the user (0x2) are steady and show in the clocks.
"""


def is_missing_device(problem: BaseException) -> bool:
    """True if an exception of a user's code says that there is no GPU, no driver or no CuPy."""
    if isinstance(problem, ModuleNotFoundError) and (problem.name or "").partition(".")[0] in ("cupy", "cupyx"):
        return True
    return isinstance(problem, Exception) and any(sign in str(problem) for sign in _SIGNS)


def open_device(worker: int | None = None) -> CudaDevice:
    """This process's GPU; under pytest-xdist that of worker number ``worker``, to which the environment is narrowed.

    Raises ``NoDevice``.
    """
    if visible_devices(os.environ) == []:
        raise NoDevice(f"{VARIABLE}={os.environ[VARIABLE]!r} hides every GPU; unset {VARIABLE}, or name a GPU in it")
    try:
        driver_library = ctypes.CDLL(DRIVER_LIBRARY)
    except OSError as problem:
        raise NoDevice(
            f"there is no NVIDIA driver ({problem}); for times run on a machine with an NVIDIA GPU (in a container: "
            "start it with --gpus all)"
        ) from None
    nvml = importlib.import_module("pynvml")
    index = bind_worker(os.environ, worker, lambda: _installed(nvml))
    start = threading.Thread(target=driver_library.cuInit, args=(0,), daemon=True)
    start.start()  # it takes 0.6 s, and imports go on meanwhile; what it says is asked for later
    try:
        driver, cupy = map(importlib.import_module, ("cuda.bindings.driver", "cupy"))
    except ImportError as problem:
        raise NoDevice(f"CuPy or cuda-bindings cannot be imported ({problem}); {_INSTALL_CUPY}") from problem
    finally:
        start.join()
    ordinal = index % _count(cupy)  # one GPU is left, unless nothing was narrowed or CUDA had been started before
    from pytest_gpuperf.device.cuda import CudaDevice  # noqa: PLC0415 NumPy comes with it

    view = Nvml(nvml, uuid_of(driver, ordinal))
    facts = read_facts(cupy, ordinal, view)
    try:
        limits_of(facts.arch)
    except UnknownArchitecture as problem:
        raise NoDevice(f"{facts.name} cannot be used: {problem}; use another GPU, or a newer pytest-gpuperf") from None
    return CudaDevice(cupy, ordinal, facts, view, driver)


def _count(cupy: Any) -> int:
    """Number of GPUs that CUDA sees."""
    runtime = cupy.cuda.runtime
    try:
        return int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as problem:
        able, built = version(runtime.driverGetVersion()), version(runtime.runtimeGetVersion())
        raise NoDevice(
            f"CUDA does not start ({problem}); the driver supports CUDA {able}, and CuPy needs CUDA {built}; {_CHECK}; "
            f"where the driver is too old, {_INSTALL_CUPY}"
        ) from problem


def _installed(nvml: Any) -> Sequence[str]:
    """UUIDs of all GPUs of the machine; none if NVML does not tell."""
    try:
        nvml.nvmlInit()
        handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
        return [str(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    except nvml.NVMLError:
        return []


def visible_devices(environ: Mapping[str, str]) -> list[str] | None:
    """The caller's list: indices, ``GPU-...`` and ``MIG-...`` UUIDs, in order; None if the variable is not set.

    As the driver reads it: the list ends before the first entry that names nothing.
    """
    value = environ.get(VARIABLE)
    if value is None:
        return None
    entries = [entry.strip() for entry in value.split(",")]
    return list(itertools.takewhile(lambda one: one.isdigit() or one.startswith(("GPU-", "MIG-")), entries))


def bind_worker(environ: MutableMapping[str, str], worker: int | None, installed: Callable[[], Sequence[str]]) -> int:
    """Narrow the variable to the GPU of one worker, before CUDA starts; its position in the caller's list.

    Workers beyond the list start again at its head, and the GPU's lock keeps them apart.  ``installed`` gives the UUIDs
    of all GPUs where the variable is not set.  Without workers, or if no GPU is known, nothing is changed.
    """
    if worker is None:
        return 0
    entries = visible_devices(environ) or list(installed())
    if not entries:
        return worker
    environ[VARIABLE] = entries[worker % len(entries)]
    return worker % len(entries)


# --- facts and state ------------------------------------------------------------------------------


class Nvml:
    """NVML's view of one GPU."""

    def __init__(self, library: Any, uuid: str) -> None:
        """``library`` is the module ``pynvml``; ``uuid`` as the driver has it, without a prefix."""
        self._nvml, self._handle = library, None
        self.uuid = f"GPU-{uuid}"
        """UUID as NVML and ``nvidia-smi`` write it: ``GPU-...``, or ``MIG-...`` for a slice of a GPU."""
        for known in (f"GPU-{uuid}", f"MIG-{uuid}"):
            with contextlib.suppress(library.NVMLError):
                library.nvmlInit()
                self._handle = library.nvmlDeviceGetHandleByUUID(known)
                self.uuid = known
                return

    def _ask(self, function: str, *constant: str) -> Any:
        """Answer of ``nvmlDeviceGet...`` for a constant of NVML's; None if it has no such function, or refuses."""
        if self._handle is None:
            return None
        try:
            given = [getattr(self._nvml, f"NVML_{name}") for name in constant]
            return getattr(self._nvml, f"nvmlDeviceGet{function}")(self._handle, *given)
        except (self._nvml.NVMLError, AttributeError):
            return None

    def state(self) -> DeviceState:
        """Clock, throttling and other processes, now; takes about a millisecond."""
        bits = self._ask("CurrentClocksEventReasons") or self._ask("CurrentClocksThrottleReasons")  # before 535
        return DeviceState(
            sm_clock_mhz=self._ask("ClockInfo", "CLOCK_SM"),
            throttle_reasons=tuple(reason for bit, reason in _REASONS.items() if int(bits or 0) & bit),
            other_processes=strangers(process.pid for process in self._ask("ComputeRunningProcesses") or ()),
        )

    def driver(self) -> str:
        """Its version; empty where NVML does not know the GPU."""
        return "" if self._handle is None else str(self._nvml.nvmlSystemGetDriverVersion())


def strangers(pids: Iterable[int], *, own: int | None = None, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """Those of ``pids`` that are not of this test run, sorted.

    Of it are this process's ancestors, its job (processes of its group, such as workers), and what those started; they
    keep to the plugin's lock.  What does not exist here is left out: in a container NVML may give numbers of the host.
    """
    own = os.getpid() if own is None else own
    family = _lineage(own, proc)
    groups = {pid: set(_lineage(pid, proc).values()) for pid in pids if pid not in family}
    return tuple(sorted(pid for pid, found in groups.items() if found and family.get(own) not in found))


def _lineage(pid: int, proc: Path) -> dict[int, int]:
    """The process groups of a process, of its parent, and so on, by their ids; empty if there is no such process."""
    groups = {}
    with contextlib.suppress(OSError):  # one has ended meanwhile
        while pid:
            stat = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
            _, parent, group, *_ = stat.rpartition(")")[2].split()  # the name before it may hold anything
            groups[pid], pid = int(group), int(parent)
    return groups


def slug(name: str) -> str:
    """``NVIDIA H200`` to ``nvidia-h200``: the folder of the GPU model's baselines."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read_facts(cupy: Any, ordinal: int, nvml: Nvml) -> DeviceFacts:
    """Facts of CUDA's device ``ordinal``."""
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(ordinal)
    name = properties["name"].decode()
    return DeviceFacts(
        name=name, slug=slug(name), uuid=nvml.uuid,
        compute_capability=(properties["major"], properties["minor"]),
        sm_count=properties["multiProcessorCount"],
        l2_bytes=properties["l2CacheSize"],
        memory_bytes=properties["totalGlobalMem"],
        max_threads_per_block=properties["maxThreadsPerBlock"],
        max_grid=tuple(properties["maxGridSize"]),
        max_block=tuple(properties["maxThreadsDim"]),
        shared_bytes_per_block_optin=properties["sharedMemPerBlockOptin"],
        shared_bytes_per_sm=properties["sharedMemPerMultiprocessor"],
        registers_per_sm=properties["regsPerMultiprocessor"],
        max_threads_per_sm=properties["maxThreadsPerMultiProcessor"],
        max_blocks_per_sm=properties["maxBlocksPerMultiProcessor"],
        warp_size=properties["warpSize"],
        driver=nvml.driver() or f"CUDA {version(runtime.driverGetVersion())}",
    )  # fmt: skip


def nominal_facts(arch: str) -> DeviceFacts:
    """Facts of a typical GPU of ``arch``, else of Hopper; they bound launches, and never become evidence."""
    known = f"sm_{''.join(c for c in arch if c.isdigit())}"
    known = known if known in ARCHITECTURES else "sm_90"
    part, number = ARCHITECTURES[known], int(known.removeprefix("sm_"))
    return DeviceFacts(
        name="no GPU", slug="none", uuid="", compute_capability=divmod(number, 10), sm_count=part.sm_count,
        l2_bytes=part.l2_mib << 20, memory_bytes=part.memory_gib << 30, max_threads_per_block=THREADS_PER_BLOCK,
        max_grid=(2**31 - 1, 65535, 65535), max_block=(1024, 1024, 64),
        shared_bytes_per_block_optin=part.shared_bytes_per_block, shared_bytes_per_sm=part.shared_bytes_per_sm,
        registers_per_sm=REGISTERS_PER_SM, max_threads_per_sm=part.threads_per_sm, max_blocks_per_sm=part.blocks_per_sm,
    )  # fmt: skip


def version(number: int) -> str:
    """13020 to ``13.2``."""
    return f"{number // 1000}.{number % 1000 // 10}"


def uuid_of(driver: Any, ordinal: int) -> str:
    """UUID of CUDA's device ``ordinal``, without NVML's prefix; empty if the driver does not tell.

    ``driver`` is ``cuda.bindings.driver``; CuPy would end the sixteen bytes at the first zero.
    """
    ask = getattr(driver, "cuDeviceGetUuid_v2", None) or driver.cuDeviceGetUuid  # CUDA 13 dropped the suffix
    failed, found = ask(ordinal)  # a CUdevice is its number
    return "" if int(failed) else str(UUID(bytes=bytes(found.bytes)))
