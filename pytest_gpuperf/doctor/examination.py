"""Runs every probe, in the order in which a reader wants to know."""

from __future__ import annotations

from collections.abc import Callable

from pytest_gpuperf.doctor import gpus, probes, team
from pytest_gpuperf.doctor.findings import ProbeResult
from pytest_gpuperf.doctor.machine import HostMachine

Probe = Callable[[HostMachine], list[ProbeResult]]

PROBES: tuple[Probe, ...] = (
    probes.probe_packages, probes.probe_compiler, gpus.probe_gpus, gpus.probe_cupy, gpus.probe_cupti, gpus.probe_xdist,
    team.probe_team, probes.probe_ncu,
)  # fmt: skip


def examine(machine: HostMachine) -> list[ProbeResult]:
    """All findings about this machine."""
    return [finding for probe in PROBES for finding in probe(machine)]
