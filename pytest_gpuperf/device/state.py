"""What NVML says about a GPU at one moment, and what it says once about its settings.

Whatever this GPU, driver or container does not tell is None; that is no error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pytest_gpuperf.evidence import DeviceState

PROC = Path("/proc")
_REASONS = {
    0x2: "application clocks", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "power brake",
}  # fmt: skip
"""NVML's clock event reasons (nvmlClocksEventReason*) that slow a kernel; idle (0x1) and display clocks do not."""
HARMLESS = ("application clocks",)
"""A user's own clock setting is steady: noted by the clocks themselves, not a disturbance."""


class Settings(NamedTuple):
    """Settings of a GPU that a session records."""

    driver: str = ""
    power_limit_w: int | None = None
    ecc: bool | None = None
    mig: bool | None = None


class Nvml:
    """NVML's view of one GPU, by its UUID.  Every question may be answered by None."""

    def __init__(self, uuid: str) -> None:
        import pynvml

        self._nvml: Any = pynvml
        self._handle: Any = None
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except pynvml.NVMLError:
            self._handle = None

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        if self._handle is None:
            return None
        try:
            return question(self._handle)
        except self._nvml.NVMLError:
            return None

    def state(self) -> DeviceState:
        """Clocks, temperature, power, throttling and other processes, now; takes about a millisecond."""
        nvml = self._nvml
        power = self._ask(nvml.nvmlDeviceGetPowerUsage)
        return DeviceState(
            sm_clock_mhz=self._ask(lambda h: nvml.nvmlDeviceGetClockInfo(h, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._ask(lambda h: nvml.nvmlDeviceGetClockInfo(h, nvml.NVML_CLOCK_MEM)),
            temperature_c=self._ask(lambda h: nvml.nvmlDeviceGetTemperature(h, nvml.NVML_TEMPERATURE_GPU)),
            power_w=None if power is None else power / 1000,
            throttle_reasons=reasons(self._ask(nvml.nvmlDeviceGetCurrentClocksEventReasons) or 0),
            other_processes=self._others(),
        )

    def _others(self) -> tuple[int, ...]:
        processes = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses) or ()
        family = _family(os.getpid())
        return tuple(sorted(p.pid for p in processes if p.pid not in family and _is_visible(p.pid)))

    def settings(self) -> Settings:
        """Driver, power limit, ECC and MIG mode."""
        nvml = self._nvml
        limit = self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit)
        ecc = self._ask(nvml.nvmlDeviceGetEccMode)
        mig = self._ask(nvml.nvmlDeviceGetMigMode)
        driver = self._ask(lambda _: nvml.nvmlSystemGetDriverVersion())
        return Settings(
            driver=str(driver or ""),
            power_limit_w=None if limit is None else round(limit / 1000),
            ecc=None if ecc is None else bool(ecc[0]),
            mig=None if mig is None else bool(mig[0]),
        )


def reasons(bits: int) -> tuple[str, ...]:
    """The words of a clock event bit mask, without the harmless ones."""
    return tuple(words for bit, words in _REASONS.items() if bits & bit and words not in HARMLESS)


def _is_visible(pid: int) -> bool:
    """Whether the process id means anything here: a container does not see its host's."""
    return (PROC / str(pid)).exists()


def _family(pid: int) -> set[int]:
    """This process, its ancestors, and the other children of its parent: one test run."""
    family = {pid}
    current = pid
    while (parent := _parent(current)) > 1:
        family.add(parent)
        current = parent
    run = _parent(pid)
    return family | {p for p in _processes() if _parent(p) == run and run > 1}


def _parent(pid: int) -> int:
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _processes() -> list[int]:
    try:
        return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []
