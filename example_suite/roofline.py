"""Where the pairs of the suite stand under the roofs of the GPU: what is on record, without drawing it.

A point is one workload: its FLOP per byte of DRAM, and its GFLOP/s.  An arrow goes from the naive side of a pair to the
optimised one.  Pairs that have no floating-point work of their own, or of which one side was not counted, have none.
"""

from __future__ import annotations

from typing import NamedTuple

import counter_tables
import counters
from claims import NotCollected
from pairs import PAIRS, Pair
from recorded import BASELINES, GPU, Recorded, geometric_mean

from pytest_gpuperf.baselines.store import BaselineStore

LEAST_BYTES = 2**23
"""Of DRAM traffic, for an intensity that says anything; below it a workload lives in the caches."""


class Point(NamedTuple):
    intensity: float
    """FLOP per byte to and from DRAM."""
    gflops: float


class Arrow(NamedTuple):
    family: str
    pair: str
    naive: Point
    optimised: Point


class Roof(NamedTuple):
    """The most that a workload of this suite reaches."""

    name: str
    peak: float
    """GB/s, or GFLOP/s."""
    workload: str


class Picture(NamedTuple):
    arrows: list[Arrow]
    roofs: list[Roof]


def point(pair: Pair, workload: str, recorded: Recorded) -> Point | None:
    """None for what is not on record, or makes too little traffic."""
    time, ns = recorded.time(pair, workload), recorded.time_ns(pair, workload)
    counted = counter_tables.counted(pair, workload, recorded)
    try:
        flops = (time and time.flops) or counters.single_precision_operations(counted)
        moved = counters.dram_bytes(counted)
    except NotCollected:
        return None
    return Point(_rounded(flops / moved), _rounded(flops / ns)) if ns and flops and moved >= LEAST_BYTES else None


def picture(recorded: Recorded) -> Picture:
    """Arrows in the order of the pairs."""
    arrows = []
    for pair in PAIRS:
        naive, optimised = (point(pair, name, recorded) for name in (pair.naive, pair.optimised))
        if naive is not None and optimised is not None and not pair.wall:
            arrows.append(Arrow(pair.family, f"{pair.optimised} over {pair.naive}", naive, optimised))
    return Picture(arrows, roofs())


def roofs() -> list[Roof]:
    """Bandwidth by declared bytes, arithmetic by declared operations; with tensor cores and without."""
    store = BaselineStore(BASELINES)
    bandwidth, plain, tensor = (Roof(name, 0.0, "") for name in ("DRAM", "FP32", "tensor cores"))
    for file in sorted((BASELINES / GPU).rglob("test_*.json")):
        loaded = store.load(GPU, file.relative_to(BASELINES / GPU).with_suffix(".py").as_posix())
        for workloads in getattr(loaded, "tests", {}).values():
            for name, record in workloads.items():
                if not record.rounds:
                    continue
                ns = geometric_mean([one.midmean for one in record.rounds])
                whose = f"{file.stem.removeprefix('test_')}: {name}"
                if (record.bytes or 0) / ns > bandwidth.peak:
                    bandwidth = Roof(bandwidth.name, (record.bytes or 0) / ns, whose)
                is_tensor = "mma" in record.kernel
                if is_tensor and (record.flops or 0) / ns > tensor.peak:
                    tensor = Roof(tensor.name, (record.flops or 0) / ns, whose)
                if not is_tensor and (record.flops or 0) / ns > plain.peak:
                    plain = Roof(plain.name, (record.flops or 0) / ns, whose)
    return [roof._replace(peak=_rounded(roof.peak)) for roof in (bandwidth, plain, tensor) if roof.peak]


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
