"""Files of records as trees of plain values, workload by workload, for tests that look or tamper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.baselines.layout import is_arch
from pytest_gpuperf.baselines.records import decode, encode
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord


def read_evidence(path: Path) -> dict[str, Any]:
    """``toolchains`` or ``tests`` by test and workload, each record with all of its own."""
    content = path.read_bytes()
    target = msgspec.json.decode(content.partition(b"\n")[0])["target"]
    tests: dict[str, Any] = {}
    for (key, toolchain), record in decode(content, path, target, "").items():
        workloads = tests.setdefault(toolchain, {}).setdefault(key.test, {})
        workloads[key.workload] = msgspec.to_builtins(record)
    if is_arch(target):
        return {"target": target, "toolchains": tests}
    return {"target": target, "tests": tests.get("", {})}


def write_evidence(path: Path, tree: dict[str, Any]) -> None:
    """The inverse."""
    kind = StaticRecord if is_arch(tree["target"]) else TimeRecord
    records = {
        (Key(module="", test=test, workload=workload), toolchain): msgspec.convert(record, kind)
        for toolchain, tests in tree.get("toolchains", {"": tree.get("tests", {})}).items()
        for test, workloads in tests.items()
        for workload, record in workloads.items()
    }
    path.write_bytes(encode(records, tree["target"]))
