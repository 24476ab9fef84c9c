"""What a run measured of every workload, from the evidence that the plugin leaves on the report of a test."""

from __future__ import annotations

from typing import Any


def figures_of(evidence: str) -> list[dict[str, Any]]:
    """One entry per workload that the test launched, in its order; without what was not measured.

    Time in nanoseconds per run, ``bytes`` and ``flops`` as declared, registers per thread and theoretical occupancy
    (0 to 1) on the architecture of this GPU, counters by name.
    """
    import msgspec

    from pytest_gpuperf.model.result import TestEvidence

    found = msgspec.json.decode(evidence, type=TestEvidence)
    gpu = found.device
    test = {"module": found.module, "test": found.test, **({"gpu": gpu.slug} if gpu else {})}
    return [
        {**test, "workload": work.key.workload, **_figures(work, gpu.arch if gpu else None)}
        for work in found.workloads
        if work.launched
    ]


def _figures(work: Any, arch: str | None) -> dict[str, Any]:
    from pytest_gpuperf.model.time_record import mean_time_ns

    time, static = work.time, work.static.get(arch)
    figures = {
        "time_ns": mean_time_ns(time.rounds) if time else None,
        "bytes": time.bytes if time else None,
        "flops": time.flops if time else None,
        "registers": static.profile.registers if static else None,
        "occupancy": static.occupancy.fraction if static and static.occupancy else None,
        "counters": dict(work.counters) or None,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}
