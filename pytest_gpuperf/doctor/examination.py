"""Runs every probe, in the order in which a reader wants to know."""

from __future__ import annotations

from collections.abc import Callable

from pytest_gpuperf.doctor import gpus, ncu_probes, packages, team, toolchain
from pytest_gpuperf.doctor.findings import ProbeResult
from pytest_gpuperf.doctor.machine import HostMachine

Probe = Callable[[HostMachine], list[ProbeResult]]

PROBES: tuple[Probe, ...] = (
    packages.probe_python,
    packages.probe_base_packages,
    toolchain.probe_compiler,
    toolchain.probe_disassembler,
    toolchain.probe_container_reader,
    toolchain.probe_static_evidence,
    gpus.probe_gpus,
    packages.probe_cupy,
    packages.probe_cupti,
    packages.probe_xdist,
    team.probe_team,
    ncu_probes.probe_ncu,
    ncu_probes.probe_ncu_report,
    ncu_probes.probe_counter_permission,
)


def examine(machine: HostMachine) -> list[ProbeResult]:
    """All findings about this machine."""
    return [finding for probe in PROBES for finding in probe(machine)]
