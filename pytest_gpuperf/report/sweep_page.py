"""Curves over a parameter as one HTML file that opens offline, by the extra ``html`` (Jinja2); uPlot draws them."""

from __future__ import annotations

from collections.abc import Sequence

import jinja2
import msgspec

from pytest_gpuperf.report.sweep import Sweep
from pytest_gpuperf.report.vendored import for_script, vendored

TEMPLATE = "sweep.html"
WIDE = 100.0
"""Largest over least number of an axis from which on it is logarithmic."""


def as_sweep_page(title: str, sweeps: Sequence[Sweep], x: str, y: str) -> str:
    """The whole file.  Text is placed in the order of its first appearance."""
    points = [point for sweep in sweeps for point in sweep.points]
    numeric = all(point.x is not None for point in points)
    labels = list(dict.fromkeys(point.label for point in points))
    if numeric:
        labels.sort(key=float)
    places = [float(label) if numeric else float(number) for number, label in enumerate(labels)]
    values = [point.value for point in points]
    positive = numeric and min(places) > 0
    data = {
        "labels": labels, "x": places, "log_x": positive and max(places) / min(places) >= WIDE,
        "log_y": max(values) / min(values) >= WIDE,
        "curves": [
            {"name": one.name, "values": [{p.label: p.value for p in one.points}.get(label) for label in labels]}
            for one in sweeps
        ],
    }  # fmt: skip
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_gpuperf.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(TEMPLATE).render(
        title=title, x=x, y=y, sweeps=sweeps, labels=labels, data=for_script(msgspec.json.encode(data).decode()),
        unit={"time": "ns", "bandwidth": "B/s", "flops": "FLOP/s"}[y], **vendored(),
    )  # fmt: skip
