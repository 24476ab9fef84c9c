"""Curves over a parameter: the times or bandwidths of a parametrised test, by its size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.time_record import mean_time_ns

UNITS = {"time": "ns", "bandwidth": "B/s"}
WIDE = 100.0
"""Largest over least number of an axis from which on it is logarithmic."""
LEAST_POINTS = 3
"""Sizes of a parameter that make a curve."""


class Curves(NamedTuple):
    """The curves of one test function over one of its parameters."""

    node_id: str
    x: str
    y: str
    """One of ``UNITS``."""
    curves: dict[str, dict[float, float]]
    """By workload and the other parameters: the value by the size."""

    @property
    def data(self) -> dict[str, Any]:
        """For the page's script."""
        sizes = sorted({size for curve in self.curves.values() for size in curve})
        values = [value for curve in self.curves.values() for value in curve.values()]
        return {
            "labels": [f"{size:g}" for size in sizes], "x": sizes, "unit": UNITS[self.y], "parameter": self.x,
            "log_x": sizes[0] > 0 and sizes[-1] / sizes[0] >= WIDE, "log_y": max(values) / min(values) >= WIDE,
            "curves": [{"name": name, "values": [curve.get(size) for size in sizes]} for name, curve in
                       self.curves.items()],
        }  # fmt: skip


def found_curves(tests: Iterable[TestEvidence]) -> list[Curves]:
    """Bandwidth where a test declares bytes, else time, over each parameter that is a number and has several sizes."""
    functions: dict[str, list[TestEvidence]] = {}
    for one in tests:
        if one.parameters:
            functions.setdefault(one.node_id.partition("[")[0], []).append(one)
    found = []
    for node_id, those in functions.items():
        for x in dict.fromkeys(name for one in those for name in one.parameters):
            for y in ("bandwidth", "time"):
                curves = {name: curve for name, curve in _curves(those, x, y).items() if len(curve) >= LEAST_POINTS}
                if curves:
                    found.append(Curves(node_id, x, y, curves))
                    break
    return found


def _curves(tests: Sequence[TestEvidence], x: str, y: str) -> dict[str, dict[float, float]]:
    """A curve for each workload and each choice of the other parameters; none where ``x`` is not always a number."""
    curves: dict[str, dict[float, float]] = {}
    for one in tests:
        try:
            size = float(one.parameters.get(x, ""))
        except ValueError:
            return {}
        others = ", ".join(f"{name}={value}" for name, value in sorted(one.parameters.items()) if name != x)
        for work in one.workloads:
            if (value := _value(work, y)) is not None:
                curves.setdefault(f"{work.key.workload}{f' ({others})' if others else ''}", {})[size] = value
    return curves


def _value(work: WorkloadEvidence, y: str) -> float | None:
    """Nanoseconds, or bytes per second; None for a workload that has none."""
    if work.time is None or (y == "bandwidth" and work.time.bytes is None):
        return None
    time_ns = mean_time_ns(work.time.rounds)
    return time_ns if y == "time" else (work.time.bytes or 0) / time_ns * 1e9
