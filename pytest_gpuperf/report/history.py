"""Figures of workloads over commits, as lines with their steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_gpuperf.formatting import duration, numbered, percent
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns
from pytest_gpuperf.report.order import function_of, named

BARS = "▁▂▃▄▅▆▇█"
SPARK = 40
"""Points of a line's drawing; of more, the last ones."""
LEAST_STEP = 0.02
"""Records of unchanged code differ by about 1 %."""


class Point(NamedTuple):
    """A figure on record at a commit."""

    commit: str
    date: str
    subject: str
    value: float


class Series(NamedTuple):
    """One figure of a workload over the commits."""

    key: Key
    target: str
    measure: str
    """``time``, in nanoseconds, ``registers`` or ``instructions``."""
    points: tuple[Point, ...]

    @property
    def changed(self) -> bool:
        return len({point.value for point in self.points}) > 1

    @property
    def steps(self) -> list[tuple[int, str]]:
        """Places of points that differ from the one before them, and by how much: ``+2.1 %``."""
        least = LEAST_STEP if self.measure == "time" else 0.0
        pairs = enumerate(itertools.pairwise(point.value for point in self.points), start=1)
        return [(at, percent(new / old - 1)) for at, (old, new) in pairs if old and abs(new / old - 1) > least]


def figures_of(record: TimeRecord | StaticRecord) -> dict[str, float]:
    """Figures of a record that are worth a history."""
    if isinstance(record, TimeRecord):
        return {"time": mean_time_ns(record.rounds)}
    return {"registers": record.profile.registers, "instructions": record.profile.instructions}


def lines_of(series: Sequence[Series]) -> list[str]:
    """Those that changed, with their steps; then how many did not."""
    changed = [one for one in series if one.changed]
    lines = []
    for name, one in _named(changed):
        values = [point.value for point in one.points]
        first, last = (duration(value) if one.measure == "time" else f"{value:g}" for value in (values[0], values[-1]))
        lines.append(f"{name}: {first} -> {last}, {numbered(len(values), 'commit')}  {spark(values)}")
        for place, change in one.steps:
            at = one.points[place]
            lines.append(f"    {change} at {at.commit[:12]} ({at.date[:10]}, {at.subject})")
    if unchanged := len(series) - len(changed):
        lines.append(f"{numbered(unchanged, 'figure')} did not change")
    return lines


def _named(series: Iterable[Series]) -> list[tuple[str, Series]]:
    """Equal series of a test function as one, with their names."""
    alike: dict[tuple[object, ...], list[Series]] = {}
    for one in series:
        alike.setdefault((function_of(one.key), *one[1:]), []).append(one)
    found = []
    for those in alike.values():
        comma = "," if len(those) > 1 else ""
        name = f"{named([one.key for one in those])}{comma} {those[0].measure} on {those[0].target}"
        found.append((name, those[0]))
    return found


def spark(values: Sequence[float]) -> str:
    """``▁▁▁▇▇``: the last figures between their least and most."""
    shown = values[-SPARK:]
    low, high = min(shown), max(shown)
    if low == high:
        return BARS[0] * len(shown)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in shown)
