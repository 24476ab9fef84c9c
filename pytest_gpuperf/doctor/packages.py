"""Probes for the Python side: the interpreter, what the plugin imports, CuPy and CUPTI."""

from __future__ import annotations

import re

from pytest_gpuperf.doctor.findings import Area, ProbeResult
from pytest_gpuperf.doctor.gpus import driver_cuda, from_nvml
from pytest_gpuperf.doctor.machine import HostMachine

BASE_PACKAGES: tuple[tuple[Area, str, str], ...] = (
    ("static", "pytest", "pytest"),
    ("static", "msgspec", "msgspec"),
    ("static", "filelock", "filelock"),
    ("time", "numpy", "numpy"),
    ("time", "scipy", "scipy.special"),
)
"""Area, distribution and module of what a base install brings; each is needed for all evidence of its area."""

CUPY_DISTRIBUTIONS = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def probe_python(machine: HostMachine) -> list[ProbeResult]:
    return [ProbeResult("static", "Python", "ok", machine.python())]


def probe_base_packages(machine: HostMachine) -> list[ProbeResult]:
    return [_package(machine, area, name, module, "pytest-gpuperf") for area, name, module in BASE_PACKAGES]


def _package(machine: HostMachine, area: Area, distribution: str, module: str, repaired_by: str) -> ProbeResult:
    version, advice = machine.version(distribution), f"pip install --force-reinstall {repaired_by}"
    if version is None:
        return ProbeResult(area, distribution, "missing", "not installed", advice, required=True)
    try:
        machine.load(module)
    except (ImportError, OSError) as problem:
        detail = f"{version} is installed but does not import: {problem}"
        return ProbeResult(area, distribution, "missing", detail, advice, required=True)
    return ProbeResult(area, distribution, "ok", version)


def probe_cupy(machine: HostMachine) -> list[ProbeResult]:
    """CuPy, under whichever of its names; two of them in one environment break each other."""
    installed = [name for name in CUPY_DISTRIBUTIONS if machine.version(name)]
    if not installed:
        advice = "pip install 'pytest-gpuperf[cuda13]' (or [cuda12] for a CUDA 12 driver)"
        return [ProbeResult("time", "CuPy", "missing", "not installed", advice, required=True)]
    if len(installed) > 1:
        advice = f"pip uninstall {' '.join(installed)}, then install the one that fits the driver"
        return [ProbeResult("time", "CuPy", "warn", f"installed twice: {', '.join(installed)}", advice)]
    return [_package(machine, "time", installed[0], "cupy", installed[0])]


def probe_cupti(machine: HostMachine) -> list[ProbeResult]:
    """CUPTI activity records, the best timer; CUDA graphs stand in where it is not there."""
    stand_in = "until then times are taken with CUDA graphs, within 1.5 % of CUPTI's from 2.5 us up"
    version = machine.version("cupti-python")
    if version is None:
        advice = f"pip install 'pytest-gpuperf[cupti]'; {stand_in}"
        return [ProbeResult("time", "CUPTI", "missing", "cupti-python is not installed", advice)]
    try:
        machine.load("cupti")
    except (ImportError, OSError) as problem:
        detail = f"cupti-python {version} does not import: {problem}"
        return [ProbeResult("time", "CUPTI", "warn", detail, f"reinstall cupti-python; {stand_in}")]
    newest = from_nvml(machine, driver_cuda, None)
    ours = _major_minor(version)
    if newest is not None and ours > newest:
        detail = f"cupti-python {version} is newer than the driver's CUDA {newest[0]}.{newest[1]}"
        advice = f"if times fail: pip install 'cupti-python<={newest[0]}.{newest[1]}.99', or update the driver"
        return [ProbeResult("time", "CUPTI", "warn", detail, advice)]
    return [ProbeResult("time", "CUPTI", "ok", f"cupti-python {version}")]


def probe_xdist(machine: HostMachine) -> list[ProbeResult]:
    found = machine.version("pytest-xdist") or "not installed; only needed to use several GPUs (-n)"
    return [ProbeResult("time", "pytest-xdist", "ok", found)]


def _major_minor(version: str) -> tuple[int, int]:
    """Major and minor number of ``13.0.1``, ``13.1rc1`` or ``12``."""
    found = re.match(r"(\d+)(?:\.(\d+))?", version)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
