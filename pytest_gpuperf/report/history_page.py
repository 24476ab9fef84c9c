"""A history as one HTML file that opens offline, by the extra ``html`` (Jinja2); uPlot draws the curves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pytest_gpuperf.formatting import percent
from pytest_gpuperf.report.history import MEASURES, Series
from pytest_gpuperf.report.page_parts import for_script, rendered, vendored

TEMPLATE = "history.html"


def as_history_page(series: Sequence[Series]) -> str:
    """The whole file: what changed, that with steps first; where nothing did, all that there is."""
    changed = [one for one in series if len({*_values(one)}) > 1] or series
    drawn = sorted(((one, one.steps) for one in changed), key=lambda pair: not pair[1])
    data = [
        {
            "name": one.name, "unit": MEASURES[one.measure] or one.measure,
            "at": [datetime.fromisoformat(point.date.replace("Z", "+00:00")).timestamp() for point in one.points],
            "commits": [point.commit[:12] for point in one.points], "subjects": [point.subject for point in one.points],
            "values": _values(one),
            "steps": [{"at": step.at, "words": f"{percent(step.ratio - 1)}"} for step in steps],
        }
        for one, steps in drawn
    ]  # fmt: skip
    return rendered(TEMPLATE, data=for_script(data), series=drawn, percent=percent, **vendored())


def _values(series: Series) -> list[float]:
    return [point.value for point in series.points]
