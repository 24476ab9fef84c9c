"""Probes for hardware counters: Nsight Compute, its report reader, and the right to use them."""

from __future__ import annotations

import re

from pytest_gpuperf.counters import run_ncu
from pytest_gpuperf.counters.failures import PERMISSION_REMEDY
from pytest_gpuperf.doctor.findings import ProbeResult
from pytest_gpuperf.doctor.machine import HostMachine, ProgramError

DRIVER_PARAMETERS = "/proc/driver/nvidia/params"
CAP_SYS_ADMIN = 21
"""Bit of the capability in Linux's capability sets (``linux/capability.h``)."""


def probe_ncu(machine: HostMachine) -> list[ProbeResult]:
    own = {name: value for name in run_ncu.VARIABLES if (value := machine.environ(name))}
    path = machine.find("ncu", run_ncu.folders(own))
    if path is None:
        where = "not on PATH, nor in a CUDA toolkit"
        return [ProbeResult("counters", "ncu", "missing", where, run_ncu.INSTALL, required=True)]
    try:
        words = machine.run(path, "--version")
    except ProgramError as problem:
        advice = f"run '{path} --version' by hand and repair the installation"
        return [ProbeResult("counters", "ncu", "missing", f"{path} does not run: {problem}", advice, required=True)]
    version = run_ncu.version_of(words)
    old = run_ncu.too_old(version)
    if old:
        return [ProbeResult("counters", "ncu", "missing", f"{path}: {old}", run_ncu.UPGRADE, required=True)]
    known = ".".join(map(str, version)) or "unknown version"
    return [ProbeResult("counters", "ncu", "ok", f"{known} at {path}")]


def probe_ncu_report(machine: HostMachine) -> list[ProbeResult]:
    version = machine.version("ncu-report")
    if version is None:
        advice = "pip install 'pytest-gpuperf[ncu]'"
        return [ProbeResult("counters", "ncu-report", "missing", "not installed", advice, required=True)]
    return [ProbeResult("counters", "ncu-report", "ok", version)]


def probe_counter_permission(machine: HostMachine) -> list[ProbeResult]:
    """Permission to read counters: the driver's parameter, and this process's capability if it is restricted."""
    name = "counter permission"
    parameters = machine.read(DRIVER_PARAMETERS)
    if parameters is None:
        return [ProbeResult("counters", name, "missing", "no NVIDIA driver is loaded here", required=True)]
    restricted = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", parameters, re.MULTILINE)
    if restricted is None:
        detail = f"{DRIVER_PARAMETERS} does not name RmProfilingAdminOnly"
        return [ProbeResult("counters", name, "warn", detail, "run ncu once on any CUDA program to find out")]
    if restricted[1] == "0":
        return [ProbeResult("counters", name, "ok", "open to all users (RmProfilingAdminOnly: 0)")]
    if _may_administrate(machine):
        return [ProbeResult("counters", name, "ok", "restricted to administrators, and this process is one")]
    detail = "restricted to administrators (RmProfilingAdminOnly: 1), and this process lacks CAP_SYS_ADMIN"
    return [ProbeResult("counters", name, "missing", detail, PERMISSION_REMEDY, required=True)]


def _may_administrate(machine: HostMachine) -> bool:
    status = machine.read("/proc/self/status") or ""
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return bool(effective and int(effective[1], 16) >> CAP_SYS_ADMIN & 1)
