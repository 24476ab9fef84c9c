"""The GPU of the caller's own list that a process takes.

``CUDA_VISIBLE_DEVICES`` belongs to the caller: a pytest-xdist worker narrows it to one of its entries and never
replaces it by an index of its own.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible_devices(environ: Mapping[str, str]) -> list[str] | None:
    """The caller's list: indices, ``GPU-...`` and ``MIG-...`` UUIDs, in order; None if the variable is not set.

    As the driver reads it: the list ends before the first entry that names nothing.
    """
    value = environ.get(VARIABLE)
    if value is None:
        return None
    entries: list[str] = []
    for entry in value.split(","):
        word = entry.strip()
        if not (word.isdigit() or word.startswith(("GPU-", "MIG-"))):
            break
        entries.append(word)
    return entries


def choose_for_worker(entries: Sequence[str], worker: int) -> str:
    """The entry of a worker; workers beyond the list start again at its head, and the GPU's lock keeps them apart."""
    return entries[worker % len(entries)]


def bind_worker(environ: MutableMapping[str, str], worker: int | None, installed: Callable[[], Sequence[str]]) -> int:
    """Narrow the variable to the GPU of one worker, and return its position in the caller's list.

    Takes effect only before CUDA starts in this process.  ``installed`` gives the UUIDs of all GPUs; it is asked
    where the variable is not set.  Without workers, or if nothing is known of the GPUs, nothing is changed.
    """
    if worker is None:
        return 0
    entries = visible_devices(environ)
    if entries is None:
        entries = list(installed())
    if not entries:
        return worker
    environ[VARIABLE] = choose_for_worker(entries, worker)
    return worker % len(entries)


def first_architecture(
    environ: Mapping[str, str] | None = None, load_module: Callable[[str], Any] = importlib.import_module
) -> str | None:
    """``sm_90`` of the first visible GPU, found without starting CUDA; None if NVML knows of none.

    Of a number in ``CUDA_VISIBLE_DEVICES`` NVML's own order is taken, which differs from CUDA's only among GPUs
    of different models.
    """
    visible = visible_devices(os.environ if environ is None else environ)
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
