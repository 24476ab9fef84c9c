"""Every collected counter as one JSON file, for other programs."""

from __future__ import annotations

import json
from typing import Any

from pytest_gpuperf.counters.derived import derive
from pytest_gpuperf.counters.exchange import Collected, CollectedWorkload


def as_json(collected: Collected) -> bytes:
    """Its ``workloads`` by node id and workload: ``counters``, ``derived``, and every kernel's own figures."""
    workloads: dict[str, dict[str, Any]] = {}
    for one in collected.workloads:
        workloads.setdefault(one.key.node_id, {})[one.key.workload] = _workload(one)
    tree = {
        "gpu": collected.gpu, "uuid": collected.uuid, "ncu": collected.ncu, "metrics": list(collected.metrics),
        "seconds": round(collected.seconds, 2), "processes": collected.processes, "notes": list(collected.notes),
        "problem": collected.problem, "remedy": collected.remedy, "log": list(collected.log), "workloads": workloads,
    }  # fmt: skip
    return (json.dumps(tree, indent=1, ensure_ascii=False) + "\n").encode()


def _workload(one: CollectedWorkload) -> dict[str, Any]:
    return {
        "cache": one.cache, "launch": one.identity.launch, "code": one.identity.code,
        "arguments": list(one.identity.arguments),
        "counters": one.counters, "ranges": one.ranges, "derived": derive(one.counters), "notes": list(one.notes),
        "kernels": [
            {"kernel": kernel.kernel, "metrics": kernel.metrics, "units": kernel.units} for kernel in one.kernels
        ],
    }  # fmt: skip
