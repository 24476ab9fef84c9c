"""Files of records as trees of plain values, workload by workload, for tests that look or tamper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.baselines.layout import is_arch
from pytest_gpuperf.baselines.records import decode, encode
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import Session, TimeRecord


def read_evidence(path: Path) -> dict[str, Any]:
    """``toolchains`` or ``tests`` by test and workload, each record with all of its own, and ``sessions``."""
    content = path.read_bytes()
    target = msgspec.json.decode(content.partition(b"\n")[0])["target"]
    tests: dict[str, Any] = {}
    sessions: dict[str, Any] = {}
    for (key, toolchain), record in decode(content, path, target, "").items():
        workloads = tests.setdefault(toolchain, {}).setdefault(key.test, {})
        workloads[key.workload] = msgspec.to_builtins(record)
        sessions |= {one["id"]: one for one in workloads[key.workload].pop("sessions", ())}
    if is_arch(target):
        return {"target": target, "toolchains": tests}
    by_date = sorted(sessions.values(), key=lambda one: one["date"])
    return {"target": target, "tests": tests.get("", {}), "sessions": by_date}


def write_evidence(path: Path, tree: dict[str, Any]) -> None:
    """The inverse."""
    kind = StaticRecord if is_arch(tree["target"]) else TimeRecord
    records = {
        (Key(module="", test=test, workload=workload), toolchain): msgspec.convert(record, kind)
        for toolchain, tests in tree.get("toolchains", {"": tree.get("tests", {})}).items()
        for test, workloads in tests.items()
        for workload, record in workloads.items()
    }
    sessions = [msgspec.convert(one, Session) for one in tree.get("sessions", ())]
    for place, record in records.items():
        if isinstance(record, TimeRecord):
            named = {one.session for one in record.rounds}
            own = tuple(one for one in sessions if one.id in named)
            records[place] = msgspec.structs.replace(record, sessions=own)
    path.write_bytes(encode(records, tree["target"]))
