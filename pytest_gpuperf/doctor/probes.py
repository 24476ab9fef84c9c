"""Probes for the compiler and its tools, and for Nsight Compute."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import InstalledTool, container_reader, disassembler
from pytest_gpuperf.counters.run_ncu import PERMISSION_REMEDY, CountersUnavailable, find_ncu
from pytest_gpuperf.doctor.findings import HostMachine, ProbeResult, missing
from pytest_gpuperf.errors import GpuperfError

REMEDY = re.compile(r"\.? (?:Reinstall|Install(?: it)?): ")
"""Begins what a message of the compiler's says to do."""
PROBE_ARCH = "sm_90"
PROBE = KernelSource('extern "C" __global__ void probe(float *x) { x[threadIdx.x] *= 2.0f; }', "probe")
DRIVER_PARAMETERS = "/proc/driver/nvidia/params"
CAP_SYS_ADMIN = 21
"""Bit of the capability in Linux's capability sets (``linux/capability.h``)."""


def probe_compiler(_machine: HostMachine) -> list[ProbeResult]:
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
    """What ``describe`` tells, or why it cannot; cuobjdump is for ``gpuperf audit`` and ``from_cubin`` alone."""
    try:
        return ProbeResult("static", name, "ok", describe())
    except GpuperfError as problem:  # whose message may name its remedy; the extra is one that always works
        words = str(problem).strip().splitlines()[0]
        detail, _, remedy = REMEDY.sub("\0", words, count=1).partition("\0")
        advice = remedy or "pip install 'pytest-gpuperf[static]'"
        return ProbeResult("static", name, "missing", detail, advice, required=required)


def probe_ncu(machine: HostMachine) -> list[ProbeResult]:
    """Nsight Compute, its report reader, and the right to read counters."""
    reader = machine.version("ncu-report")
    try:
        ncu = find_ncu()
        first = ProbeResult("counters", "ncu", "ok", f"{str(ncu).removeprefix('ncu ')} at {ncu.path}")
    except CountersUnavailable as problem:
        first = missing("counters", "ncu", problem.reason, problem.remedy)
    second = ProbeResult("counters", "ncu-report", "ok", reader or "")
    if reader is None:
        second = missing("counters", "ncu-report", "not installed", "pip install 'pytest-gpuperf[ncu]'")
    return [first, second, _permission(machine)]


def _permission(machine: HostMachine) -> ProbeResult:
    """The driver's parameter, and this process's capability if it is restricted."""
    name, parameters = "counter permission", machine.read(DRIVER_PARAMETERS)
    if not parameters:
        return missing("counters", name, "no NVIDIA driver is loaded here")
    if re.search(r"^RmProfilingAdminOnly:\s*0", parameters, re.MULTILINE):
        return ProbeResult("counters", name, "ok", "open to all users (RmProfilingAdminOnly: 0)")
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", machine.read("/proc/self/status"), re.MULTILINE)
    if effective and int(effective[1], 16) >> CAP_SYS_ADMIN & 1:
        return ProbeResult("counters", name, "ok", "restricted to administrators, and this process is one")
    detail = "restricted to administrators (RmProfilingAdminOnly), and this process lacks CAP_SYS_ADMIN"
    return missing("counters", name, detail, PERMISSION_REMEDY)
