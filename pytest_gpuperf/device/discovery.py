"""Find the GPU of this process, or say why there is none and what to do about it.

``CUDA_VISIBLE_DEVICES`` belongs to the caller: a pytest-xdist worker narrows it to one of its entries and never
replaces it by an index of its own.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_gpuperf.compile.compile_errors import UnknownArchitecture
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.device.device_errors import NoDevice
from pytest_gpuperf.device.facts import Nvml, read_facts, uuid_of, version

if TYPE_CHECKING:
    from pytest_gpuperf.device.cuda import CudaDevice

VARIABLE = "CUDA_VISIBLE_DEVICES"
DRIVER_LIBRARY = "libcuda.so.1"
_INSTALL_CUPY = "install CuPy for the driver's CUDA: pip install 'pytest-gpuperf[cuda13]', or [cuda12]"
_CHECK = f"{VARIABLE} may name others; gpuperf doctor and nvidia-smi say what the machine has"
_SIGNS = (
    "cudaErrorNoDevice", "cudaErrorInsufficientDriver", "cudaErrorStubLibrary", "CUDA_ERROR_NO_DEVICE",
    "CUDA_ERROR_STUB_LIBRARY", "libcuda.so", "no CUDA-capable device", "Found no NVIDIA driver",
    "No CUDA GPUs are available", "Torch not compiled with CUDA enabled", "Failed to import CuPy", "0 active drivers",
)  # fmt: skip
"""Words in which CuPy, PyTorch, Numba, Triton and the CUDA bindings say that there is no GPU or no driver."""


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
    facts = read_facts(cupy, ordinal, index, view)
    try:
        limits_of(facts.arch)
    except UnknownArchitecture as problem:
        raise NoDevice(f"{facts.name} cannot be used: {problem}; take another one, or a newer pytest-gpuperf") from None
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
    words = [entry.strip() for entry in value.split(",")]
    return list(itertools.takewhile(lambda one: one.isdigit() or one.startswith(("GPU-", "MIG-")), words))


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
