"""Facts of a GPU, from the CUDA runtime, the driver and NVML; nominal ones where there is no GPU."""

from __future__ import annotations

import re
import uuid
from typing import Any

from pytest_gpuperf.device.nvml_state import Nvml
from pytest_gpuperf.model.architectures import ARCHITECTURES, KIB
from pytest_gpuperf.model.device_facts import DeviceFacts


def slug(name: str) -> str:
    """``NVIDIA H200`` to ``nvidia-h200``: the folder of the GPU model's baselines."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read_facts(cupy: Any, ordinal: int, index: int, nvml: Nvml) -> DeviceFacts:
    """Facts of CUDA's device ``ordinal``; ``index`` is its position in the caller's list of visible GPUs."""
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(ordinal)
    name = properties["name"].decode()
    settings = nvml.settings()
    return DeviceFacts(
        name=name, slug=slug(name), uuid=nvml.uuid, index=index,
        compute_capability=(properties["major"], properties["minor"]),
        sm_count=properties["multiProcessorCount"],
        l2_bytes=properties["l2CacheSize"],
        memory_bytes=properties["totalGlobalMem"],
        max_threads_per_block=properties["maxThreadsPerBlock"],
        max_grid=tuple(properties["maxGridSize"]),
        max_block=tuple(properties["maxThreadsDim"]),
        shared_bytes_per_block=properties["sharedMemPerBlock"],
        shared_bytes_per_block_optin=properties["sharedMemPerBlockOptin"],
        shared_bytes_per_sm=properties["sharedMemPerMultiprocessor"],
        registers_per_sm=properties["regsPerMultiprocessor"],
        max_threads_per_sm=properties["maxThreadsPerMultiProcessor"],
        max_blocks_per_sm=properties["maxBlocksPerMultiProcessor"],
        warp_size=properties["warpSize"],
        driver=settings.driver or f"CUDA {version(runtime.driverGetVersion())}",
        cuda=version(runtime.runtimeGetVersion()), cupy=cupy.__version__,
        power_limit_w=settings.power_limit_w, ecc=settings.ecc, mig=settings.mig,
    )  # fmt: skip


def nominal_facts(arch: str) -> DeviceFacts:
    """Facts of a typical GPU of ``arch``, else of Hopper; they bound launches, and never become evidence."""
    known = f"sm_{''.join(c for c in arch if c.isdigit())}"
    known = known if known in ARCHITECTURES else "sm_90"
    part, number = ARCHITECTURES[known], int(known.removeprefix("sm_"))
    return DeviceFacts(
        name="no GPU", slug="none", uuid="", index=0, compute_capability=divmod(number, 10), sm_count=part.sm_count,
        l2_bytes=part.l2_mib << 20, memory_bytes=part.memory_gib << 30, max_threads_per_block=1024,
        max_grid=(2**31 - 1, 65535, 65535), max_block=(1024, 1024, 64), shared_bytes_per_block=48 * KIB,
        shared_bytes_per_block_optin=part.shared_bytes_per_block, shared_bytes_per_sm=part.shared_bytes_per_sm,
        registers_per_sm=65536, max_threads_per_sm=part.threads_per_sm, max_blocks_per_sm=part.blocks_per_sm,
    )  # fmt: skip


def version(number: int) -> str:
    """13020 to ``13.2``."""
    return f"{number // 1000}.{number % 1000 // 10}"


def uuid_of(driver: Any, ordinal: int) -> str:
    """UUID of CUDA's device ``ordinal``, without NVML's prefix; empty if the driver does not tell.

    ``driver`` is ``cuda.bindings.driver``, or None without it; CuPy would end the sixteen bytes at the first zero.
    """
    if driver is None:
        return ""
    failed, device = driver.cuDeviceGet(ordinal)
    if int(failed):
        return ""
    ask = getattr(driver, "cuDeviceGetUuid_v2", None) or driver.cuDeviceGetUuid  # CUDA 13 dropped the suffix
    failed, found = ask(device)
    return "" if int(failed) else str(uuid.UUID(bytes=bytes(found.bytes)))
