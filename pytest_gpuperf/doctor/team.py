"""Probes of what a team gates, as ``baselines/manifest.json`` says, against what this machine has."""

from __future__ import annotations

from typing import Any

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.device.facts import slug
from pytest_gpuperf.doctor.findings import ProbeResult
from pytest_gpuperf.doctor.gpus import from_nvml
from pytest_gpuperf.doctor.machine import HostMachine
from pytest_gpuperf.doctor.probes import VERSION


def probe_team(machine: HostMachine) -> list[ProbeResult]:
    """The team's compilers and GPU models beside this machine's, and targets without records; nothing without any."""
    folder = machine.baselines()
    if folder is None:
        return []
    try:
        found = manifest.read(folder)
        gone = found.gone_from(folder) if found is not None else ()
    except BaselineError as problem:
        return [ProbeResult("static", "manifest", "warn", str(problem).splitlines()[0], "see to that file")]
    if found is None:
        return []
    results = [_compiler(found, machine), _gpu(found, machine)]
    if gone:
        advice = "restore them from version control, or take them off: gpuperf baselines rm NAME"
        results.append(ProbeResult("static", "targets", "warn", f"without records: {', '.join(gone)}", advice))
    return [one for one in results if one is not None]


def _compiler(found: Manifest, machine: HostMachine) -> ProbeResult | None:
    declared = [name for name in found.toolchains if name.startswith("nvrtc ")]
    if not declared:
        return None
    detail = f"the team declares {', '.join(declared)}"
    try:
        own = machine.load(VERSION).toolchain()
    except Exception:  # noqa: BLE001  what keeps it from compiling is the probe of the compiler's to say
        return ProbeResult("static", "team's NVRTC", "ok", detail)
    if own in declared:
        return ProbeResult("static", "team's NVRTC", "ok", f"{detail}; this machine has {own}")
    version = declared[-1].split()[1]
    advice = f"pip install nvidia-cuda-nvrtc=={version}, or record with this one too: pytest --update-baselines=new"
    return ProbeResult("static", "team's NVRTC", "warn", f"{detail}; this machine has {own}", advice)


def _gpu(found: Manifest, machine: HostMachine) -> ProbeResult | None:
    if not found.gpu_models:
        return None
    detail = f"the team has times of {', '.join(found.gpu_models)}"
    names: list[str] = from_nvml(machine, _gpu_names, [])
    here = sorted({slug(name) for name in names})
    if not here:
        return ProbeResult("time", "team's GPUs", "ok", detail)
    other = [name for name in here if name not in found.gpu_models]
    if not other:
        return ProbeResult("time", "team's GPUs", "ok", f"{detail}; this machine has {', '.join(here)}")
    advice = (
        "times of another model are NEW here: record them with pytest --update-baselines=new if the team wants them"
    )
    return ProbeResult("time", "team's GPUs", "warn", f"{detail}; this machine has {', '.join(other)}", advice)


def _gpu_names(nvml: Any) -> list[str]:
    return [nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount())]
