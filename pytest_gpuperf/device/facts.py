"""Facts and state of a GPU, from the CUDA runtime, the driver and NVML; nominal facts where there is no GPU.

None is whatever this GPU, driver or container does not tell.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_gpuperf.model.architectures import ARCHITECTURES, KIB
from pytest_gpuperf.model.device_facts import DeviceFacts, DeviceState

_REASONS = {
    0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown", 0x80: "power brake",
}  # fmt: skip
"""NVML's clock event reasons (``nvmlClocksEventReason*``) that disturb a measurement.

Idle (0x1) and display clocks (0x100) do not; clocks set by the user (0x2) are steady and show in the clocks.
"""


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
            throttle_reasons=tuple(words for bit, words in _REASONS.items() if int(bits or 0) & bit),
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


def read_facts(cupy: Any, ordinal: int, index: int, nvml: Nvml) -> DeviceFacts:
    """Facts of CUDA's device ``ordinal``; ``index`` is its position in the caller's list of visible GPUs."""
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(ordinal)
    name = properties["name"].decode()
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
        driver=nvml.driver() or f"CUDA {version(runtime.driverGetVersion())}",
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

    ``driver`` is ``cuda.bindings.driver``; CuPy would end the sixteen bytes at the first zero.
    """
    ask = getattr(driver, "cuDeviceGetUuid_v2", None) or driver.cuDeviceGetUuid  # CUDA 13 dropped the suffix
    failed, found = ask(ordinal)  # a CUdevice is its number
    return "" if int(failed) else str(uuid.UUID(bytes=bytes(found.bytes)))
