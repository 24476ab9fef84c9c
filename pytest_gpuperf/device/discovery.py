"""Find the GPU of this process, or say why there is none and what to do about it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_gpuperf.device.errors import NoDevice
from pytest_gpuperf.device.visible import VARIABLE, bind_worker, listed

if TYPE_CHECKING:
    from pytest_gpuperf.device.interface import Device

__all__ = ["NoDevice", "is_missing_device", "open_device", "slug"]

_MISSING = ("cudaErrorNoDevice", "cudaErrorInsufficientDriver", "cudaErrorInitializationError", "cudaErrorStubLibrary",
            "CUDA_ERROR_NO_DEVICE", "libcuda.so", "no CUDA-capable device", "Found no NVIDIA driver")  # fmt: skip


def slug(name: str) -> str:
    """``NVIDIA H200`` to ``nvidia-h200``: the folder of the GPU model's baselines."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def is_missing_device(problem: BaseException) -> bool:
    """Whether an exception of CuPy, PyTorch or the CUDA bindings says that there is no GPU or no driver."""
    text = f"{type(problem).__name__}: {problem}"
    return any(sign in text for sign in _MISSING)


def open_device(worker: int | None = None) -> Device:
    """This process's GPU; under pytest-xdist the one of this worker.  Raises ``NoDevice``."""
    if listed(os.environ.get(VARIABLE)) == []:
        raise NoDevice(f"{VARIABLE} is set and names no GPU", f"unset {VARIABLE} or name one")
    cupy = _import_cupy()
    bind_worker(os.environ, worker, _installed_uuids)
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as problem:
        raise _no_driver(problem) from problem
    if count == 0:
        raise NoDevice("the CUDA driver sees no GPU", "check nvidia-smi and CUDA_VISIBLE_DEVICES")
    from pytest_gpuperf.device.cuda import CudaDevice

    return CudaDevice(cupy)


def _import_cupy() -> Any:
    try:
        import cupy
    except ImportError as problem:
        raise NoDevice(
            f"CuPy cannot be imported ({problem})",
            'install it for your CUDA version: pip install "pytest-gpuperf[cuda13]" (or [cuda12])',
        ) from problem
    return cupy


def _no_driver(problem: Exception) -> NoDevice:
    text = str(problem)
    if "InsufficientDriver" in text and _installed_uuids():
        return NoDevice(
            f"the NVIDIA driver is too old for CuPy's CUDA ({text})",
            "update the driver, or install the extra of an older CUDA: pip install pytest-gpuperf[cuda12]",
        )
    if "InsufficientDriver" in text or "StubLibrary" in text:
        return NoDevice("there is no NVIDIA driver", "times need a machine with a GPU and its driver")
    return NoDevice(f"CUDA does not start ({text})", "check nvidia-smi and CUDA_VISIBLE_DEVICES")


def _installed_uuids() -> Sequence[str]:
    """UUIDs of all GPUs that NVML sees; none without NVML."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    finally:
        pynvml.nvmlShutdown()
