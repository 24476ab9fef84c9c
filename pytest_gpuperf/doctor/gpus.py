"""Probes for the driver and its GPUs, through NVML: no CUDA context is made, so this process is on none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pytest_gpuperf.device.discovery import VARIABLE, visible_devices
from pytest_gpuperf.doctor.findings import ProbeResult
from pytest_gpuperf.doctor.machine import HostMachine

NO_DRIVER_ADVICE = (
    "static evidence needs none; for times run on a machine with a GPU and a driver "
    "(in a container: start it with --gpus all)"
)

_T = TypeVar("_T")


def from_nvml(machine: HostMachine, ask: Callable[[Any], _T], unknown: _T) -> _T:
    """What ``ask`` finds out from NVML; ``unknown`` where that cannot be asked, of which ``probe_gpus`` says why."""
    try:
        nvml: Any = machine.load("pynvml")
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001  the probe of the driver says why
        return unknown
    try:
        return ask(nvml)
    except nvml.NVMLError:
        return unknown
    finally:
        nvml.nvmlShutdown()


def probe_gpus(machine: HostMachine) -> list[ProbeResult]:
    """The driver, then each GPU with its MIG mode and the other processes that compute on it."""
    try:
        nvml: Any = machine.load("pynvml")
    except ImportError:
        return [_no_driver("pynvml cannot be imported", "pip install nvidia-ml-py")]
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as problem:
        return [_no_driver(f"NVML does not start: {problem}", NO_DRIVER_ADVICE)]
    try:
        return [_driver(nvml), *_gpus(nvml, machine)]
    except nvml.NVMLError as problem:
        return [_no_driver(f"NVML gave up: {problem}", "run nvidia-smi; a reboot of the machine may be due")]
    finally:
        nvml.nvmlShutdown()


def _no_driver(detail: str, advice: str) -> ProbeResult:
    return ProbeResult("time", "driver", "missing", detail, advice, required=True)


def _driver(nvml: Any) -> ProbeResult:
    cuda = driver_cuda(nvml)
    detail = f"{nvml.nvmlSystemGetDriverVersion()}, CUDA {cuda[0]}.{cuda[1]}"
    if cuda < (12, 0):
        return _no_driver(detail, "too old: CUDA 12 or newer is needed")
    return ProbeResult("time", "driver", "ok", detail)


def driver_cuda(nvml: Any) -> tuple[int, int]:
    """Newest CUDA version that the driver supports, as (major, minor)."""
    number = nvml.nvmlSystemGetCudaDriverVersion_v2()
    return number // 1000, number % 1000 // 10


def _gpus(nvml: Any, machine: HostMachine) -> list[ProbeResult]:
    count = nvml.nvmlDeviceGetCount()
    if count == 0:
        return [ProbeResult("time", "GPU", "missing", "the driver lists none", NO_DRIVER_ADVICE, required=True)]
    findings = [finding for index in range(count) for finding in _gpu(nvml, index)]
    visible = machine.environ(VARIABLE)
    if visible is None:
        return findings
    if not visible_devices({VARIABLE: visible}):
        hidden = ProbeResult("time", VARIABLE, "missing", f"{visible!r} hides every GPU", "unset it", required=True)
        return [*findings, hidden]
    return [*findings, ProbeResult("time", VARIABLE, "ok", visible)]


def _gpu(nvml: Any, index: int) -> list[ProbeResult]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    detail = f"{nvml.nvmlDeviceGetName(handle)}, sm_{major}{minor}, {nvml.nvmlDeviceGetUUID(handle)}"
    return [
        ProbeResult("time", f"GPU {index}", "ok", detail),
        _mig(nvml, handle, index),
        _processes(nvml, handle, index),
    ]


def _mig(nvml: Any, handle: Any, index: int) -> ProbeResult:
    name = f"GPU {index} MIG"
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError_NotSupported:
        return ProbeResult("time", name, "ok", "not supported by this GPU")
    if not current:
        return ProbeResult("time", name, "ok", "off")
    advice = "a slice shares memory bandwidth and power with its neighbours: times are noisier and not a whole GPU's"
    return ProbeResult("time", name, "warn", "on", advice)


def _processes(nvml: Any, handle: Any, index: int) -> ProbeResult:
    name = f"GPU {index} processes"
    try:
        running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError_NotSupported:
        advice = "make sure that nothing else computes on this GPU"
        return ProbeResult("time", name, "warn", "NVML does not tell", advice)
    others = ", ".join(map(str, sorted(process.pid for process in running)))
    if not others:
        return ProbeResult("time", name, "ok", "no other")
    advice = "they disturb times and cannot be told from a slower kernel: end them or take another GPU"
    return ProbeResult("time", name, "warn", f"others compute here: pid {others}", advice)
