"""Curves over a parameter as one HTML file that opens offline, by the extra ``html`` (Jinja2); uPlot draws them."""

from __future__ import annotations

from collections.abc import Sequence

import jinja2
import msgspec

from pytest_gpuperf.report.sweep import UNITS, Sweep, drawn
from pytest_gpuperf.report.vendored import for_script, vendored

TEMPLATE = "sweep.html"


def as_sweep_page(title: str, sweeps: Sequence[Sweep], x: str, y: str) -> str:
    """The whole file."""
    data = drawn(sweeps)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_gpuperf.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(TEMPLATE).render(
        title=title, x=x, y=y, sweeps=sweeps, labels=data["labels"], unit=UNITS[y],
        data=for_script(msgspec.json.encode(data).decode()), **vendored(),
    )  # fmt: skip
