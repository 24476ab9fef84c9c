"""Figures of workloads over commits: as lines with their steps, as CSV, and as a page whose curves uPlot draws."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from pytest_gpuperf.formatting import duration, numbered, percent
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns
from pytest_gpuperf.report.render import for_script, rendered, vendored

BARS = "▁▂▃▄▅▆▇█"
SPARK = 40
"""Points of a line's drawing; of more, the last ones."""
MEASURES = {"time": "ns", "registers": "", "instructions": ""}
"""Units of the figures."""
LEAST_STEP = 0.02
"""Records of unchanged code differ by about 1 %."""


class Point(NamedTuple):
    commit: str
    date: str
    subject: str
    value: float


class HistoryStep(NamedTuple):
    at: int
    """Index of the point that differs from the one before it."""
    ratio: float
    """To the one before."""


class Series(NamedTuple):
    key: Key
    target: str
    measure: str
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        return f"{self.key} {self.measure} on {self.target}"

    @property
    def steps(self) -> list[HistoryStep]:
        least = LEAST_STEP if self.measure == "time" else 0.0
        pairs = enumerate(itertools.pairwise(point.value for point in self.points), start=1)
        steps = [HistoryStep(at, new / old) for at, (old, new) in pairs if old]
        return [step for step in steps if abs(step.ratio - 1) > least]


def figures_of(record: TimeRecord | StaticRecord) -> dict[str, float]:
    """Figures of a record that are worth a history."""
    if isinstance(record, TimeRecord):
        return {"time": mean_time_ns(record.rounds)}
    return {"registers": record.profile.registers, "instructions": record.profile.instructions}


def lines_of(series: Sequence[Series]) -> list[str]:
    """Those that changed, with their steps; then how many did not."""
    lines, unchanged = [], 0
    for one in series:
        values = [point.value for point in one.points]
        if len(set(values)) == 1:
            unchanged += 1
            continue
        points = numbered(len(values), "commit")
        lines.append(f"{one.name}: {_shown(one, values[0])} -> {_shown(one, values[-1])}, {points}  {spark(values)}")
        for step in one.steps:
            at = one.points[step.at]
            lines.append(f"    {percent(step.ratio - 1)} at {at.commit[:12]} ({at.date[:10]}, {at.subject})")
    if unchanged:
        lines.append(f"{numbered(unchanged, 'figure')} did not change")
    return lines


def _shown(series: Series, value: float) -> str:
    return duration(value) if series.measure == "time" else f"{value:g}"


def spark(values: Sequence[float]) -> str:
    """``▁▁▁▇▇``: the last figures between their least and most."""
    shown = values[-SPARK:]
    low, high = min(shown), max(shown)
    if low == high:
        return BARS[0] * len(shown)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in shown)


def as_csv(series: Iterable[Series]) -> str:
    """A row for each point."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("commit", "date", "subject", "test", "workload", "target", "measure", "unit", "value"))
    for one in series:
        for at in one.points:
            writer.writerow((
                at.commit, at.date, _inert(at.subject), _inert(one.key.node_id), _inert(one.key.workload), one.target,
                one.measure, MEASURES[one.measure], at.value,
            ))  # fmt: skip
    return out.getvalue()


def _inert(text: str) -> str:
    """No spreadsheet takes it for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def as_history_page(series: Sequence[Series]) -> str:
    """One HTML file that opens offline: the figures that changed, those with steps first; all of them if none did."""
    changed = [one for one in series if len({point.value for point in one.points}) > 1] or series
    drawn = sorted(((one, one.steps) for one in changed), key=lambda pair: not pair[1])
    data = [
        {
            "name": one.name, "unit": MEASURES[one.measure] or one.measure,
            "at": [datetime.fromisoformat(point.date.replace("Z", "+00:00")).timestamp() for point in one.points],
            "commits": [point.commit[:12] for point in one.points], "subjects": [point.subject for point in one.points],
            "values": [point.value for point in one.points],
            "steps": [{"at": step.at, "words": f"{percent(step.ratio - 1)}"} for step in steps],
        }
        for one, steps in drawn
    ]  # fmt: skip
    return rendered("history.html", data=for_script(data), series=drawn, percent=percent, **vendored())
