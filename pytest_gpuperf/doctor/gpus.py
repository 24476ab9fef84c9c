"""Probes for the driver and its GPUs, through NVML, and for what times need: CuPy and CUPTI.

No CUDA context is made, so this process is on none of the GPUs.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

from pytest_gpuperf.device.discovery import VARIABLE, visible_devices
from pytest_gpuperf.doctor.findings import HostMachine, ProbeResult, missing

CUPY_DISTRIBUTIONS = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
NO_DRIVER_ADVICE = (
    "static evidence needs none; for times run on a machine with a GPU and a driver "
    "(in a container: start it with --gpus all)"
)
SLICE_ADVICE = "a slice shares memory bandwidth and power with its neighbours: times are noisier and not a whole GPU's"
OTHERS_ADVICE = "they disturb times and look like a slower kernel: end them or take another GPU"
STAND_IN = "until then times are taken with CUDA graphs, within 1.5 % of CUPTI's from 2.5 us up"


@contextlib.contextmanager
def _started(machine: HostMachine) -> Iterator[Any]:
    """NVML.  Raises ``ImportError``, and NVML's own errors."""
    nvml: Any = machine.load("pynvml")
    nvml.nvmlInit()
    try:
        yield nvml
    finally:
        nvml.nvmlShutdown()


def probe_gpus(machine: HostMachine) -> list[ProbeResult]:
    """The driver, then each GPU with its MIG mode and the other processes that compute on it."""
    try:
        with _started(machine) as nvml:
            return [_driver(nvml), *_gpus(nvml)]
    except ImportError:
        return [missing("time", "driver", "pynvml cannot be imported", "pip install nvidia-ml-py")]
    except machine.load("pynvml").NVMLError as problem:
        return [missing("time", "driver", f"NVML does not answer: {problem}", NO_DRIVER_ADVICE)]


def _driver(nvml: Any) -> ProbeResult:
    cuda = driver_cuda(nvml)
    detail = f"{nvml.nvmlSystemGetDriverVersion()}, CUDA {cuda[0]}.{cuda[1]}"
    if cuda < (12, 0):
        return missing("time", "driver", detail, "too old: CUDA 12 or newer is needed")
    return ProbeResult("time", "driver", "ok", detail)


def driver_cuda(nvml: Any) -> tuple[int, int]:
    """Newest CUDA version that the driver supports, as (major, minor)."""
    number = nvml.nvmlSystemGetCudaDriverVersion_v2()
    return number // 1000, number % 1000 // 10


def _gpus(nvml: Any) -> Iterator[ProbeResult]:
    count = nvml.nvmlDeviceGetCount()
    if count == 0:
        yield missing("time", "GPU", "the driver lists none", NO_DRIVER_ADVICE)
    for index in range(count):
        yield from _gpu(nvml, f"GPU {index}", nvml.nvmlDeviceGetHandleByIndex(index))
    visible = os.environ.get(VARIABLE)
    if visible is not None and not visible_devices({VARIABLE: visible}):
        yield missing("time", VARIABLE, f"{visible!r} hides every GPU", "unset it")
    elif visible is not None:
        yield ProbeResult("time", VARIABLE, "ok", visible)


def _gpu(nvml: Any, name: str, handle: Any) -> Iterator[ProbeResult]:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    detail = f"{nvml.nvmlDeviceGetName(handle)}, sm_{major}{minor}, {nvml.nvmlDeviceGetUUID(handle)}"
    yield ProbeResult("time", name, "ok", detail)
    with contextlib.suppress(nvml.NVMLError_NotSupported):
        if nvml.nvmlDeviceGetMigMode(handle)[0]:
            yield ProbeResult("time", f"{name} MIG", "warn", "on", SLICE_ADVICE)
    with contextlib.suppress(nvml.NVMLError_NotSupported):
        pids = sorted(process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        if pids:
            others = f"others compute here: pid {', '.join(map(str, pids))}"
            yield ProbeResult("time", f"{name} processes", "warn", others, OTHERS_ADVICE)


def probe_timing(machine: HostMachine) -> list[ProbeResult]:
    """CuPy, CUPTI, and pytest-xdist for several GPUs."""
    xdist = machine.version("pytest-xdist") or "not installed; only needed to use several GPUs (-n)"
    return [_cupy(machine), _cupti(machine), ProbeResult("time", "pytest-xdist", "ok", xdist)]


def _cupy(machine: HostMachine) -> ProbeResult:
    """CuPy, under whichever of its names; two of them in one environment break each other."""
    installed = [name for name in CUPY_DISTRIBUTIONS if machine.version(name)]
    if not installed:
        advice = "pip install 'pytest-gpuperf[cuda13]' (or [cuda12] for a CUDA 12 driver)"
        return missing("time", "CuPy", "not installed", advice)
    if len(installed) > 1:
        advice = f"pip uninstall {' '.join(installed)}, then install the one that fits the driver"
        return ProbeResult("time", "CuPy", "warn", f"installed twice: {', '.join(installed)}", advice)
    version = f"{installed[0]} {machine.version(installed[0])}"
    try:
        machine.load("cupy")
    except (ImportError, OSError) as problem:
        detail = f"{version} does not import: {problem}"
        return missing("time", "CuPy", detail, f"pip install --force-reinstall {installed[0]}")
    return ProbeResult("time", "CuPy", "ok", version)


def _cupti(machine: HostMachine) -> ProbeResult:
    """CUPTI activity records, the best timer; CUDA graphs stand in where it is not there."""
    version = machine.version("cupti-python")
    if version is None:
        advice = f"pip install 'pytest-gpuperf[cupti]'; {STAND_IN}"
        return ProbeResult("time", "CUPTI", "missing", "cupti-python is not installed", advice)
    try:
        machine.load("cupti")
    except (ImportError, OSError) as problem:
        detail = f"cupti-python {version} does not import: {problem}"
        return ProbeResult("time", "CUPTI", "warn", detail, f"reinstall cupti-python; {STAND_IN}")
    with contextlib.suppress(Exception), _started(machine) as nvml:  # the probe of the driver says why
        newest = driver_cuda(nvml)
        if tuple(map(int, re.findall(r"\d+", version)[:2])) > newest:
            detail = f"cupti-python {version} is newer than the driver's CUDA {newest[0]}.{newest[1]}"
            advice = f"if times fail: pip install 'cupti-python<={newest[0]}.{newest[1]}.99', or update the driver"
            return ProbeResult("time", "CUPTI", "warn", detail, advice)
    return ProbeResult("time", "CUPTI", "ok", f"cupti-python {version}")
