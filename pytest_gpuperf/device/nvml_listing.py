"""The GPU that a process would take, found without starting CUDA in this one."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from pytest_gpuperf.device.visible_devices import visible_devices


def first_architecture(
    environ: Mapping[str, str] | None = None, load_module: Callable[[str], Any] = importlib.import_module
) -> str | None:
    """``sm_90`` of the first visible GPU; None if NVML knows of none.

    Of a number in ``CUDA_VISIBLE_DEVICES`` NVML's own order is taken, which differs from CUDA's only among GPUs
    of different models.
    """
    environ = os.environ if environ is None else environ
    visible = visible_devices(environ)
    if visible == []:
        return None
    first = visible[0] if visible else "0"
    try:
        nvml = load_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        handle = (
            nvml.nvmlDeviceGetHandleByIndex(int(first)) if first.isdigit() else nvml.nvmlDeviceGetHandleByUUID(first)
        )
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    except nvml.NVMLError:
        return None
    return f"sm_{major}{minor}"
