"""Where the pairs of the suite stand under the roofs of the GPU: what is on record, without drawing it.

A point is one workload: its FLOP per byte of DRAM, and its GFLOP/s.  An arrow goes from the naive side of a pair to the
optimised one.  Operations are those that the test declares of both sides, or else those in single precision that were
counted of both; pairs without either, and pairs of which one side was not counted, have no arrow.
"""

from __future__ import annotations

from typing import NamedTuple

import counter_tables
import counters
from claims import NotCollected
from pairs import PAIRS, Pair
from recorded import BASELINES, GPU, Recorded

from pytest_gpuperf.baselines.store import BaselineStore

LEAST_BYTES = 2**23
"""Of DRAM traffic, for an intensity that says anything; below it the data stay in the caches."""


class Point(NamedTuple):
    intensity: float | None
    """FLOP per byte to and from DRAM; None where the data stay in the caches."""
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


def arrow(pair: Pair, recorded: Recorded) -> Arrow | None:
    """None for a pair of which something is not on record."""
    sides = [_side(pair, name, recorded) for name in (pair.naive, pair.optimised)]
    times = [side.ns for side in sides]
    for flops in ([side.declared for side in sides], [side.counted for side in sides]):
        if all(flops) and all(times) and all(side.moved is not None for side in sides):
            naive, optimised = (_point(of, side) for of, side in zip(flops, sides, strict=True))
            if (naive.intensity is None) != (optimised.intensity is None):
                return None
            return Arrow(pair.family, f"{pair.optimised} over {pair.naive}", naive, optimised)
    return None


class _Side(NamedTuple):
    """What is on record of one workload; None for what is not."""

    ns: float | None
    moved: float | None
    """Bytes."""
    declared: float | None
    """FLOP, by the test."""
    counted: float | None
    """FLOP in single precision; None where there are others."""


def _side(pair: Pair, workload: str, recorded: Recorded) -> _Side:
    time, static = recorded.time(pair, workload), recorded.static(pair, workload)
    of = counter_tables.counted(pair, workload, recorded)
    try:
        moved, counted = counters.dram_bytes(of), counters.single_precision_operations(of)
    except NotCollected:
        return _Side(None, None, None, None)
    single = static is not None and not {"fp64", "tensor"} & static.profile.opcodes.keys()
    return _Side(
        recorded.time_ns(pair, workload), moved, time.flops if time else None, counted if single else None
    )  # fmt: skip


def _point(flops: float | None, side: _Side) -> Point:
    assert flops
    assert side.ns
    assert side.moved is not None
    in_caches = side.moved < LEAST_BYTES
    return Point(None if in_caches else _rounded(flops / side.moved), _rounded(flops / side.ns))


def picture(recorded: Recorded) -> Picture:
    """Arrows in the order of the pairs."""
    arrows = [found for pair in PAIRS if not pair.wall and (found := arrow(pair, recorded))]
    return Picture(arrows, roofs(recorded))


def roofs(recorded: Recorded) -> list[Roof]:
    """Bandwidth by declared bytes; arithmetic by declared operations of kernels with tensor cores and without."""
    store = BaselineStore(BASELINES)
    highest = {name: Roof(name, 0.0, "") for name in ("DRAM", "FP32", "tensor cores")}
    for file in sorted((BASELINES / GPU).rglob("test_*.jsonl")):
        family = file.stem.removeprefix("test_")
        module = file.relative_to(BASELINES / GPU).with_suffix(".py").as_posix()
        for (key, _), record in store.load(GPU, module).items():
            of = Pair(family, key.test, optimised=key.workload, naive=key.workload, cause="", why="")
            ns, static = recorded.time_ns(of, key.workload), recorded.static(of, key.workload)
            if ns is None or static is None:
                continue  # a callable, which may be a library's
            arithmetic = "tensor cores" if "tensor" in static.profile.opcodes else "FP32"
            for roof, amount in (("DRAM", record.bytes), (arithmetic, record.flops)):
                if (amount or 0) / ns > highest[roof].peak:
                    highest[roof] = Roof(roof, (amount or 0) / ns, f"{family}: {key.workload}")
    return [roof._replace(peak=_rounded(roof.peak)) for roof in highest.values() if roof.peak]


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
