"""Curves over a parameter: the workloads of a parametrised test, by its size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pytest_gpuperf.formatting import duration, quantity
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.timed_round import mean_time_ns

UNITS = {"time": "ns", "bandwidth": "B/s", "flops": "FLOP/s"}
WIDE = 100.0
"""Largest over least number of an axis from which on it is logarithmic."""
LEAST_POINTS = 3
"""Sizes of a parameter that make a curve of a report."""


class SweepPoint(NamedTuple):
    x: float | None
    """None where the parameter is no number."""
    label: str
    value: float
    shown: str


class Sweep(NamedTuple):
    name: str
    points: tuple[SweepPoint, ...]


class SweepOfRun(NamedTuple):
    """The curves of one test function over one of its parameters."""

    node_id: str
    x: str
    y: str
    sweeps: tuple[Sweep, ...]


def found_sweeps(tests: Iterable[TestEvidence]) -> list[SweepOfRun]:
    """Bandwidth where a test declares bytes, else time, over each parameter that is a number and has several sizes."""
    functions: dict[str, list[TestEvidence]] = {}
    for one in tests:
        if one.parameters:
            functions.setdefault(one.node_id.partition("[")[0], []).append(one)
    found = []
    for node_id, those in functions.items():
        for x in dict.fromkeys(name for one in those for name in one.parameters):
            sizes = {_number(one.parameters[x]) for one in those if x in one.parameters}
            if None in sizes or len(sizes) < LEAST_POINTS:
                continue
            for y in ("bandwidth", "time"):
                long = [one for one in sweeps_of(those, x, y) if len(one.points) >= LEAST_POINTS]
                if long:
                    found.append(SweepOfRun(node_id, x, y, tuple(long)))
                    break
    return found


def sweeps_of(tests: Sequence[TestEvidence], x: str, y: str) -> list[Sweep]:
    """A curve for each workload and each choice of the other parameters, by the size of ``x``."""
    curves: dict[str, list[SweepPoint]] = {}
    for one in tests:
        if x not in one.parameters:
            continue
        others = ", ".join(f"{name}={value}" for name, value in sorted(one.parameters.items()) if name != x)
        for work in one.workloads:
            value = _value(work, y)
            if value is not None:
                name = f"{work.key.workload}{f' ({others})' if others else ''}"
                label = one.parameters[x]
                curves.setdefault(name, []).append(SweepPoint(_number(label), label, value, _shown(value, y)))
    return [Sweep(name, tuple(sorted(points, key=_place))) for name, points in curves.items()]


def _place(point: SweepPoint) -> tuple[float, str]:
    return (point.x if point.x is not None else 0.0), point.label


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _value(work: WorkloadEvidence, y: str) -> float | None:
    """Nanoseconds, or bytes or operations per second; None for a workload that has none."""
    if work.time is None:
        return None
    time_ns = mean_time_ns(work.time.rounds)
    if y == "time":
        return time_ns
    amount = work.time.bytes if y == "bandwidth" else work.time.flops
    return None if amount is None else amount / time_ns * 1e9


def _shown(value: float, y: str) -> str:
    return duration(value) if y == "time" else quantity(value, UNITS[y])


def drawn(sweeps: Sequence[Sweep]) -> dict[str, Any]:
    """What a page's script draws.  Labels that are no numbers are placed in the order of their first appearance."""
    points = [point for sweep in sweeps for point in sweep.points]
    numeric = all(point.x is not None for point in points)
    labels = list(dict.fromkeys(point.label for point in points))
    if numeric:
        labels.sort(key=float)
    places = [float(label) if numeric else float(number) for number, label in enumerate(labels)]
    values = [point.value for point in points]
    return {
        "labels": labels, "x": places, "log_x": numeric and min(places) > 0 and max(places) / min(places) >= WIDE,
        "log_y": max(values) / min(values) >= WIDE,
        "curves": [
            {"name": one.name, "values": [{p.label: p.value for p in one.points}.get(label) for label in labels]}
            for one in sweeps
        ],
    }  # fmt: skip
