"""Counters of a run, read from its JSON report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def counters_in(report: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """By node id and workload: ``cache`` and ``counters`` of those that were counted."""
    tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
    return {
        f"{test['module']}::{test['test']}": {
            work["key"]["workload"]: {"cache": work.get("cache"), "counters": work["counters"]}
            for work in test["workloads"]
            if work.get("counters")
        }
        for test in tests
        if any(work.get("counters") for work in test.get("workloads", ()))
    }  # fmt: skip
