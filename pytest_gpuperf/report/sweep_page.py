"""Curves over a parameter as one HTML file that opens offline, by the extra ``html`` (Jinja2); uPlot draws them."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.report.page_parts import for_script, rendered, vendored
from pytest_gpuperf.report.sweep import UNITS, Sweep, drawn

TEMPLATE = "sweep.html"


def as_sweep_page(title: str, sweeps: Sequence[Sweep], x: str, y: str) -> str:
    """The whole file."""
    data = drawn(sweeps)
    return rendered(
        TEMPLATE, title=title, x=x, y=y, sweeps=sweeps, labels=data["labels"], unit=UNITS[y], data=for_script(data),
        **vendored(),
    )  # fmt: skip
