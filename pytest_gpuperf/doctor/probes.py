"""Probes for what the gate itself uses: packages, the compiler and its tools, Nsight Compute."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.counters.failures import PERMISSION_REMEDY, CountersUnavailable
from pytest_gpuperf.doctor.findings import Area, HostMachine, ProbeResult, missing
from pytest_gpuperf.errors import GpuperfError

BASE_PACKAGES: tuple[tuple[Area, str, str], ...] = (
    ("static", "pytest", "pytest"), ("static", "msgspec", "msgspec"), ("static", "filelock", "filelock"),
    ("time", "numpy", "numpy"), ("time", "scipy", "scipy.special"),
)  # fmt: skip
"""Area, distribution and module of what a base install brings; each is needed for all evidence of its area."""
REMEDY = re.compile(r"\.? (?:Reinstall|Install(?: it)?): ")
"""Begins what a message of the compiler's says to do."""
COMPILER, TOOLKIT, VERSION, SOURCE = (
    f"pytest_gpuperf.compile.{name}" for name in ("compiler", "toolkit", "nvcc", "source")
)
PROBE_ARCH = "sm_90"
PROBE_SOURCE = 'extern "C" __global__ void probe(float *x) { x[threadIdx.x] *= 2.0f; }'
DRIVER_PARAMETERS = "/proc/driver/nvidia/params"
CAP_SYS_ADMIN = 21
"""Bit of the capability in Linux's capability sets (``linux/capability.h``)."""


# --- packages ------------------------------------------------------------------------------------


def probe_packages(machine: HostMachine) -> list[ProbeResult]:
    """Python, and what a base install brings."""
    python = ProbeResult("static", "Python", "ok", platform.python_version())
    return [python, *(package(machine, *one, repaired_by="pytest-gpuperf") for one in BASE_PACKAGES)]


def package(machine: HostMachine, area: Area, distribution: str, module: str, repaired_by: str) -> ProbeResult:
    """A distribution that the area requires, and whether its module imports."""
    version, advice = machine.version(distribution), f"pip install --force-reinstall {repaired_by}"
    if version is None:
        return missing(area, distribution, "not installed", advice)
    try:
        machine.load(module)
    except (ImportError, OSError) as problem:
        return missing(area, distribution, f"{version} is installed but does not import: {problem}", advice)
    return ProbeResult(area, distribution, "ok", version)


# --- static evidence -----------------------------------------------------------------------------


def probe_compiler(machine: HostMachine) -> list[ProbeResult]:
    """NVRTC, asked for its version by compiling something; its tools; and a kernel, so that both are seen at work."""

    def place(tool: Any) -> str:
        return f"{tool.version} at {tool.path}"

    def kernel() -> str:
        source = machine.load(SOURCE).KernelSource(text=PROBE_SOURCE, name="probe")
        profile = machine.load(COMPILER).compile_kernel(source, PROBE_ARCH).profile
        return f"compiled for {PROBE_ARCH}: {profile.registers} registers, {profile.instructions} instructions"

    return [
        _asked("NVRTC", lambda: machine.load(VERSION).toolchain().removeprefix("nvrtc ")),
        _asked("nvdisasm", lambda: place(machine.load(TOOLKIT).disassembler())),
        _asked("cuobjdump", lambda: place(machine.load(TOOLKIT).container_reader()), required=False),
        _asked("test kernel", kernel),
    ]


def _asked(name: str, describe: Callable[[], str], *, required: bool = True) -> ProbeResult:
    """What ``describe`` tells, or why it cannot; cuobjdump is for ``gpuperf audit`` and ``from_cubin`` alone."""
    try:
        return ProbeResult("static", name, "ok", describe())
    except ImportError as problem:
        detail = f"the plugin itself does not import: {problem}"
        advice = "pip install --force-reinstall 'pytest-gpuperf[static]'"
    except GpuperfError as problem:  # whose message may name its remedy; the extra is one that always works
        words = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        detail, _, remedy = REMEDY.sub("\0", words, count=1).partition("\0")
        advice = remedy or "pip install 'pytest-gpuperf[static]'"
    return ProbeResult("static", name, "missing", detail, advice, required=required)


# --- counters ------------------------------------------------------------------------------------


def probe_ncu(machine: HostMachine) -> list[ProbeResult]:
    """Nsight Compute, its report reader, and the right to read counters."""
    reader = machine.version("ncu-report")
    found = (
        missing("counters", "ncu-report", "not installed", "pip install 'pytest-gpuperf[ncu]'")
        if reader is None
        else ProbeResult("counters", "ncu-report", "ok", reader)
    )
    return [_ncu(machine), found, _permission(machine)]


def _ncu(machine: HostMachine) -> ProbeResult:
    try:
        found = machine.ncu()
    except CountersUnavailable as problem:
        return missing("counters", "ncu", problem.reason, problem.remedy)
    return ProbeResult("counters", "ncu", "ok", f"{str(found).removeprefix('ncu ')} at {found.path}")


def _permission(machine: HostMachine) -> ProbeResult:
    """The driver's parameter, and this process's capability if it is restricted."""
    name, parameters = "counter permission", machine.read(DRIVER_PARAMETERS)
    if parameters is None:
        return missing("counters", name, "no NVIDIA driver is loaded here")
    restricted = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", parameters, re.MULTILINE)
    if restricted is None:
        detail = f"{DRIVER_PARAMETERS} does not name RmProfilingAdminOnly"
        return ProbeResult("counters", name, "warn", detail, "run ncu once on any CUDA program to find out")
    if restricted[1] == "0":
        return ProbeResult("counters", name, "ok", "open to all users (RmProfilingAdminOnly: 0)")
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", machine.read("/proc/self/status") or "", re.MULTILINE)
    if effective and int(effective[1], 16) >> CAP_SYS_ADMIN & 1:
        return ProbeResult("counters", name, "ok", "restricted to administrators, and this process is one")
    detail = "restricted to administrators (RmProfilingAdminOnly: 1), and this process lacks CAP_SYS_ADMIN"
    return missing("counters", name, detail, PERMISSION_REMEDY)
