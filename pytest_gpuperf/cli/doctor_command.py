"""``gpuperf doctor``: what this machine can measure, what is missing and what to do.

It changes nothing and leaves the GPU alone: NVML makes no CUDA context, so this process is on none of the GPUs.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import InstalledTool, container_reader, disassembler
from pytest_gpuperf.counters.run_ncu import PERMISSION_REMEDY, CountersUnavailable, find_ncu
from pytest_gpuperf.device.discovery import VARIABLE, visible_devices
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model import __version__

Area = Literal["static", "time", "counters"]
Status = Literal["ok", "missing", "warn"]

TITLES: dict[Area, str] = {
    "static": "Static evidence (registers, spills, occupancy; needs no GPU)",
    "time": "Time",
    "counters": "Counters (Nsight Compute)",
}


@dataclasses.dataclass(frozen=True)
class ProbeResult:
    """Finding of one probe."""

    area: Area
    """The kind of evidence that rests on it."""
    name: str
    status: Status
    detail: str
    """The thing found, or the one that is missing."""
    advice: str = ""
    """Remedy; empty if nothing has to be done."""
    required: bool = False
    """Without it there is no evidence of this area at all."""


def missing(area: Area, name: str, detail: str, advice: str = "") -> ProbeResult:
    """Something without which there is no evidence of this area."""
    return ProbeResult(area, name, "missing", detail, advice, required=True)


def is_ready(area: Area, findings: Iterable[ProbeResult]) -> bool:
    """Whether evidence of this area can be gathered here: nothing that it requires is missing."""
    return not any(f.area == area and f.required and f.status == "missing" for f in findings)


def as_text(findings: Sequence[ProbeResult]) -> str:
    """One line per finding, advice under it, one closing line that says which evidence can be had."""
    width = max(len(finding.name) for finding in findings)
    lines = [f"pytest-gpuperf {__version__}"]
    for area, title in TITLES.items():
        lines += ["", title]
        for finding in (f for f in findings if f.area == area):
            lines.append(f"  {finding.status:<8} {finding.name:<{width}}  {finding.detail}".rstrip())
            if finding.advice:
                lines.append(f"  {'':<8} {'':<{width}}  -> {finding.advice}")
    ready = ", ".join(f"{area} {'yes' if is_ready(area, findings) else 'no'}" for area in TITLES)
    return "\n".join([*lines, "", f"Can be measured here: {ready}", ""])


def installed(distribution: str) -> str:
    """Version of a Python distribution; empty if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _read(path: str) -> str:
    """Text of a file of the system, empty if it is not there or not readable."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """It has none."""


def execute(_parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Print the findings.  Returns the exit status: 0, or 1 if not even machine code can be compared here."""
    found = [finding for probe in PROBES for finding in probe()]
    write(as_text(found))
    return 0 if is_ready("static", found) else 1


# --- the compiler and its tools ------------------------------------------------------------------

REMEDY = re.compile(r"\.? (?:Reinstall|Install(?: it)?): ")
"""Begins what a message of the compiler's says to do."""
PROBE_ARCH = "sm_90"
PROBE = KernelSource('extern "C" __global__ void probe(float *x) { x[threadIdx.x] *= 2.0f; }', "probe")
DRIVER_PARAMETERS, OWN_STATUS = "/proc/driver/nvidia/params", "/proc/self/status"
CAP_SYS_ADMIN = 21
"""Bit of the capability in Linux's capability sets (``linux/capability.h``)."""


def probe_compiler() -> list[ProbeResult]:
    """Python; NVRTC, asked for its version by compiling something; its tools; and a kernel: all are seen at work."""

    def place(tool: InstalledTool) -> str:
        return f"{tool.version} at {tool.path}"

    def kernel() -> str:
        profile = compile_kernel(PROBE, PROBE_ARCH).profile
        return f"compiled for {PROBE_ARCH}: {profile.registers} registers, {profile.instructions} instructions"

    return [
        ProbeResult("static", "Python", "ok", platform.python_version()),
        _asked("NVRTC", lambda: toolchain().removeprefix("nvrtc ")),
        _asked("nvdisasm", lambda: place(disassembler())),
        _asked("cuobjdump", lambda: place(container_reader()), required=False),
        _asked("test kernel", kernel),
    ]


def _asked(name: str, describe: Callable[[], str], *, required: bool = True) -> ProbeResult:
    """The result of ``describe``, or its error; only ``gpuperf audit`` and ``from_cubin`` need cuobjdump."""
    try:
        return ProbeResult("static", name, "ok", describe())
    except GpuperfError as problem:  # whose message may name its remedy; the extra is one that always works
        message = str(problem).strip().splitlines()[0]
        detail, _, remedy = REMEDY.sub("\0", message, count=1).partition("\0")
        advice = remedy or "pip install 'pytest-gpuperf[static]'"
        return ProbeResult("static", name, "missing", detail, advice, required=required)


def probe_ncu() -> list[ProbeResult]:
    """Nsight Compute, its report reader, and the right to read counters."""
    reader = installed("ncu-report")
    try:
        ncu = find_ncu()
        first = ProbeResult("counters", "ncu", "ok", f"{str(ncu).removeprefix('ncu ')} at {ncu.path}")
    except CountersUnavailable as problem:
        first = missing("counters", "ncu", problem.reason, problem.remedy)
    second = ProbeResult("counters", "ncu-report", "ok", reader)
    if not reader:
        second = missing("counters", "ncu-report", "not installed", "pip install 'pytest-gpuperf[ncu]'")
    return [first, second, _permission()]


def _permission() -> ProbeResult:
    """The driver's parameter, and this process's capability if it is restricted."""
    name, parameters = "counter permission", _read(DRIVER_PARAMETERS)
    if not parameters:
        return missing("counters", name, "no NVIDIA driver is loaded here")
    if re.search(r"^RmProfilingAdminOnly:\s*0", parameters, re.MULTILINE):
        return ProbeResult("counters", name, "ok", "open to all users (RmProfilingAdminOnly: 0)")
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", _read(OWN_STATUS), re.MULTILINE)
    if effective and int(effective[1], 16) >> CAP_SYS_ADMIN & 1:
        return ProbeResult("counters", name, "ok", "restricted to administrators, and this process is one")
    detail = "restricted to administrators (RmProfilingAdminOnly), and this process lacks CAP_SYS_ADMIN"
    return missing("counters", name, detail, PERMISSION_REMEDY)


# --- the driver, its GPUs, and what times need ---------------------------------------------------

CUPY_DISTRIBUTIONS = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
NO_DRIVER_ADVICE = (
    "static evidence needs none; for times run on a machine with a GPU and a driver "
    "(in a container: start it with --gpus all)"
)
SLICE_ADVICE = "a slice shares memory bandwidth and power with its neighbours: times are noisier and not a whole GPU's"
OTHERS_ADVICE = "they disturb times and look like a slower kernel: end them or use another GPU"
STAND_IN = "until then CUDA graphs measure the times, within 1.5 % of CUPTI's from 2.5 us up"


@contextlib.contextmanager
def _started() -> Iterator[Any]:
    """NVML.  Raises its own errors."""
    nvml: Any = import_module("pynvml")
    nvml.nvmlInit()
    try:
        yield nvml
    finally:
        nvml.nvmlShutdown()


def probe_gpus() -> list[ProbeResult]:
    """The driver, then each GPU with its MIG mode and the other processes that compute on it."""
    try:
        with _started() as nvml:
            return [_driver(nvml), *_gpus(nvml)]
    except import_module("pynvml").NVMLError as problem:
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
            others = f"other processes compute here: pid {', '.join(map(str, pids))}"
            yield ProbeResult("time", f"{name} processes", "warn", others, OTHERS_ADVICE)


def probe_cupy() -> list[ProbeResult]:
    """CuPy, under whichever of its names; two of them in one environment break each other."""
    names = [name for name in CUPY_DISTRIBUTIONS if installed(name)]
    if not names:
        advice = "pip install 'pytest-gpuperf[cuda13]' (or [cuda12] for a CUDA 12 driver)"
        return [missing("time", "CuPy", "not installed", advice)]
    if len(names) > 1:
        advice = f"pip uninstall {' '.join(names)}, then install the one that fits the driver"
        return [ProbeResult("time", "CuPy", "warn", f"installed twice: {', '.join(names)}", advice)]
    version = f"{names[0]} {installed(names[0])}"
    try:
        import_module("cupy")
    except (ImportError, OSError) as problem:
        detail = f"{version} does not import: {problem}"
        return [missing("time", "CuPy", detail, f"pip install --force-reinstall {names[0]}")]
    return [ProbeResult("time", "CuPy", "ok", version)]


def probe_cupti() -> list[ProbeResult]:
    """CUPTI activity records, the best timer; CUDA graphs stand in where it is not there."""
    version = installed("cupti-python")
    if not version:
        advice = f"pip install 'pytest-gpuperf[cupti]'; {STAND_IN}"
        return [ProbeResult("time", "CUPTI", "missing", "cupti-python is not installed", advice)]
    try:
        import_module("cupti")
    except (ImportError, OSError) as problem:
        detail = f"cupti-python {version} does not import: {problem}"
        return [ProbeResult("time", "CUPTI", "warn", detail, f"reinstall cupti-python; {STAND_IN}")]
    with contextlib.suppress(Exception), _started() as nvml:  # the probe of the driver says why
        newest = driver_cuda(nvml)
        if tuple(map(int, re.findall(r"\d+", version)[:2])) > newest:
            detail = f"cupti-python {version} is newer than the driver's CUDA {newest[0]}.{newest[1]}"
            advice = f"if times fail: pip install 'cupti-python<={newest[0]}.{newest[1]}.99', or update the driver"
            return [ProbeResult("time", "CUPTI", "warn", detail, advice)]
    return [ProbeResult("time", "CUPTI", "ok", f"cupti-python {version}")]


PROBES: tuple[Callable[[], list[ProbeResult]], ...] = (
    probe_compiler, probe_gpus, probe_cupy, probe_cupti, probe_ncu,
)  # fmt: skip
"""In the order in which a reader wants to know."""
