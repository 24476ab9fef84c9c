"""State and settings of a GPU by NVML; None is whatever this GPU, driver or container does not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_gpuperf.device.related_processes import ProcessFamily
from pytest_gpuperf.model.timed_round import DeviceState

_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""NVML's clock event reasons (``nvmlClocksEventReason*``) that disturb a measurement.

Idle (0x1) and display clocks (0x100) do not; clocks set by the user (0x2) are steady and show in the clocks.
"""


class Settings(NamedTuple):
    """Settings of a GPU that a session records."""

    driver: str = ""
    power_limit_w: int | None = None
    ecc: bool | None = None
    mig: bool | None = None


class Nvml:
    """NVML's view of one GPU.  Every question may be answered by None."""

    def __init__(self, library: Any, uuid: str, family: ProcessFamily | None = None) -> None:
        """``library`` is the module ``pynvml`` or None without it; ``uuid`` as the driver has it, without a prefix."""
        self._nvml = library
        self._family = family or ProcessFamily()
        self._handle: Any = None
        self.uuid = f"GPU-{uuid}"
        """UUID as NVML and ``nvidia-smi`` write it: ``GPU-...``, or ``MIG-...`` for a slice of a GPU."""
        if library is not None:
            self._find(uuid)

    def _find(self, uuid: str) -> None:
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError:
            return
        for prefix in ("GPU-", "MIG-"):
            try:
                self._handle = self._nvml.nvmlDeviceGetHandleByUUID(prefix + uuid)
            except self._nvml.NVMLError:
                continue
            self.uuid = prefix + uuid
            return

    def _ask(self, question: Callable[[Any, Any], Any]) -> Any:
        """NVML's answer; None if it has no such function, does not support it here, or refuses."""
        if self._handle is None:
            return None
        try:
            return question(self._nvml, self._handle)
        except (self._nvml.NVMLError, AttributeError):
            return None

    def state(self) -> DeviceState:
        """Clocks, temperature, power, throttling and other processes, now; takes about a millisecond."""
        power_mw = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu))
        return DeviceState(
            sm_clock_mhz=self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)),
            temperature_c=self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
            power_w=None if power_mw is None else power_mw / 1000,
            throttle_reasons=reasons(self._ask(_reason_bits) or 0),
            other_processes=self._others(),
        )

    def _others(self) -> tuple[int, ...]:
        running = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetComputeRunningProcesses(gpu)) or ()
        return self._family.strangers(process.pid for process in running)

    def bytes_of_others(self) -> int:
        """Of the GPU's memory, as far as NVML tells."""
        running = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetComputeRunningProcesses(gpu)) or ()
        strangers = set(self._others())
        return sum(process.usedGpuMemory or 0 for process in running if process.pid in strangers)

    def settings(self) -> Settings:
        """Driver, enforced power limit, ECC and MIG mode."""
        limit_mw = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu))
        ecc = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetEccMode(gpu))
        mig = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetMigMode(gpu))
        driver = self._ask(lambda nvml, _: nvml.nvmlSystemGetDriverVersion())
        return Settings(
            driver=driver or "",
            power_limit_w=None if limit_mw is None else round(limit_mw / 1000),
            ecc=None if ecc is None else bool(ecc[0]),
            mig=True if self.uuid.startswith("MIG-") else None if mig is None else bool(mig[0]),
        )


def _reason_bits(nvml: Any, gpu: Any) -> int:
    """Drivers before 535 know the clock event reasons as throttle reasons."""
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)
    except nvml.NVMLError:
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
    return int(bits)


def reasons(bits: int) -> tuple[str, ...]:
    """The words of a clock event bit mask; harmless reasons are left out."""
    return tuple(words for bit, words in _REASONS.items() if bits & bit)
