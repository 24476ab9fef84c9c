"""Reads what the stand-in for ncu leaves."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_gpuperf.counters.report import KernelResult


def read_stand_in_report(report: Path) -> list[KernelResult]:
    return [
        KernelResult(kernel=one["kernel"], range=int(one["range"].partition(":")[2]), metrics=one["metrics"])
        for one in json.loads(report.read_text(encoding="utf-8"))
    ]
