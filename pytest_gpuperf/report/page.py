"""A run as one HTML file that opens offline, by the extra ``html`` (Jinja2): each ratio drawn beside its tolerance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import jinja2

from pytest_gpuperf.formatting import percent
from pytest_gpuperf.model.verdict import TimeFigures
from pytest_gpuperf.report.document import Document, Row

TEMPLATE = "report.html"
WIDTH = 240.0
"""Width of a drawing, in pixels; the baseline is in its middle."""
LEAST_SPAN, MOST_SPAN = 0.02, 0.3
"""Bounds of half a drawing's width, in log ratio; between them, it is what the widest interval needs."""


@dataclasses.dataclass(frozen=True)
class Bar:
    """One ratio, in pixels from the left."""

    low: float
    high: float
    point: float
    accepted: float
    """Distance from the middle up to which the tolerance accepts."""
    beyond: bool
    """True if the ratio lies outside of the drawing."""

    @property
    def inward(self) -> int:
        """Pixels from the edge that the ratio is beyond to the back of a triangle that points there."""
        return -9 if self.point > WIDTH / 2 else 9


def as_page(document: Document) -> str:
    """The whole file."""
    span = span_of(row.figures for row in document.rows)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_gpuperf.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(TEMPLATE).render(
        document=document, report=document.report, width=WIDTH,
        ends=[percent(math.expm1(end)) for end in (-span, span)],
        rows=[(row, bar_of(row.figures, span), _searched(row)) for row in document.rows],
    )  # fmt: skip


def span_of(figures: Iterable[TimeFigures | None]) -> float:
    """Log ratio that half of a drawing stands for."""
    reach = [LEAST_SPAN]
    for one in figures:
        if one is not None and one.ratio is not None:
            reach += [abs(math.log(end)) for end in (one.ratio, *(one.interval or ())) if end > 0]
    return min(1.1 * max(reach), MOST_SPAN)


def bar_of(figures: TimeFigures | None, span: float) -> Bar | None:
    """Positions of the interval, the ratio and the tolerance; None without a ratio."""
    if figures is None or figures.ratio is None or figures.ratio <= 0:
        return None
    low, high = figures.interval or (figures.ratio, figures.ratio)
    return Bar(
        low=_place(low, span), high=_place(high, span), point=_place(figures.ratio, span),
        accepted=_place(1 + figures.tolerance, span), beyond=abs(math.log(figures.ratio)) > span,
    )  # fmt: skip


def _place(ratio: float, span: float) -> float:
    """Pixels from the left, within the drawing."""
    share = math.log(ratio) / span if ratio > 0 else -1.0
    return round(WIDTH / 2 * (1 + min(max(share, -1.0), 1.0)), 1)


def _searched(row: Row) -> str:
    """Text that the page's filter searches."""
    return " ".join([row.test, row.workload, *(verdict.value for verdict in row.by_kind.values())]).lower()
