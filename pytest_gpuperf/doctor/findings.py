"""Findings of the doctor, how a set of them reads, and the machine as its probes see it."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Literal

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


def as_text(findings: Sequence[ProbeResult], version: str) -> str:
    """One line per finding, advice under it, one closing line that says which evidence can be had."""
    width = max(len(finding.name) for finding in findings)
    lines = [f"pytest-gpuperf {version}"]
    for area, title in TITLES.items():
        lines += ["", title]
        for finding in (f for f in findings if f.area == area):
            lines.append(f"  {finding.status:<8} {finding.name:<{width}}  {finding.detail}".rstrip())
            if finding.advice:
                lines.append(f"  {'':<8} {'':<{width}}  -> {finding.advice}")
    ready = ", ".join(f"{area} {'yes' if is_ready(area, findings) else 'no'}" for area in TITLES)
    return "\n".join([*lines, "", f"Can be measured here: {ready}", ""])


class HostMachine:
    """Packages and files: probes ask only this, so a test hands them a machine of its own."""

    def version(self, distribution: str) -> str | None:
        """Version of an installed Python distribution, None if it is not installed."""
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            return None

    def load(self, module: str) -> ModuleType:
        """Import a module.  Raises ``ImportError``, or ``OSError`` if a shared library of it is unusable."""
        return importlib.import_module(module)

    def read(self, path: str) -> str:
        """Text of a file, empty if it is not there or not readable."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
