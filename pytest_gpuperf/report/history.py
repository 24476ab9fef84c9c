"""Figures of workloads over commits, as lines with their steps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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


def figures_of(record: TimeRecord | StaticRecord) -> dict[str, float]:
    """Figures of a record that are worth a history."""
    if isinstance(record, TimeRecord):
        return {"time": mean_time_ns(record.rounds)}
    return {"registers": record.profile.registers, "instructions": record.profile.instructions}


def lines_of(series: Sequence[Series]) -> list[str]:
    """Those that changed, with their steps, equal ones of a test function as one; then how many did not."""
    alike: dict[tuple[object, ...], list[Series]] = {}
    for one in series:
        if len({point.value for point in one.points}) > 1:
            alike.setdefault((function_of(one.key), *one[1:]), []).append(one)
    lines = []
    for those in alike.values():
        _, target, measure, points = those[0]
        first, *_, last = (duration(one.value) if measure == "time" else f"{one.value:g}" for one in points)
        name = f"{named([one.key for one in those])} {measure} on {target}"
        spark = _spark([one.value for one in points])
        lines.append(f"{name}: {first} -> {last}, {numbered(len(points), 'commit')}  {spark}")
        least = LEAST_STEP if measure == "time" else 0.0
        for old, new in itertools.pairwise(points):
            if old.value and abs(new.value / old.value - 1) > least:
                change = percent(new.value / old.value - 1)
                lines.append(f"    {change} at {new.commit[:12]} ({new.date[:10]}, {new.subject})")
    if unchanged := len(series) - sum(map(len, alike.values())):
        lines.append(f"{numbered(unchanged, 'figure')} did not change")
    return lines


def _spark(values: Sequence[float]) -> str:
    """``▁▁▁▇▇``: the last figures, which are not all the same, between their least and most."""
    shown = values[-SPARK:]
    low, high = min(shown), max(shown)
    return "".join(BARS[round((value - low) / ((high - low) or 1) * (len(BARS) - 1))] for value in shown)
