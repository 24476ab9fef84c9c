"""``gpuperf doctor``: what this machine can measure, what is missing and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from pytest_gpuperf.doctor import gpus, probes
from pytest_gpuperf.doctor.findings import HostMachine, ProbeResult, as_text, is_ready
from pytest_gpuperf.model import __version__

PROBES: tuple[Callable[[HostMachine], list[ProbeResult]], ...] = (
    probes.probe_compiler, gpus.probe_gpus, gpus.probe_timing, probes.probe_ncu,
)  # fmt: skip
"""In the order in which a reader wants to know."""


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """It has none."""


def execute(_parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Print the findings.  Returns the exit status: 0, or 1 if not even machine code can be compared here."""
    found = [finding for probe in PROBES for finding in probe(HostMachine())]
    write(as_text(found, __version__))
    return 0 if is_ready("static", found) else 1
