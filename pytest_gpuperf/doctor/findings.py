"""Findings of the doctor, and how a set of them reads."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
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


def as_json(findings: Sequence[ProbeResult], version: str) -> str:
    """The same for programs: ``version``, ``ready`` by area, ``findings`` in order."""
    document = {
        "version": version,
        "ready": {area: is_ready(area, findings) for area in TITLES},
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }
    return json.dumps(document, indent=2) + "\n"
