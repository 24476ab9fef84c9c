"""A run as one HTML file that opens offline, by the extra ``html`` (Jinja2); uPlot draws its figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pytest_gpuperf.formatting import quantity
from pytest_gpuperf.model.time_record import mean_time_ns
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.report.curves import found_curves
from pytest_gpuperf.report.document import Document, Row
from pytest_gpuperf.report.render import for_script, rendered, vendored
from pytest_gpuperf.report.tables import peaks_of
from pytest_gpuperf.report.verdict_order import rank_of

TEMPLATE = "report.html"
PLACES = 4
"""Significant digits of what is drawn."""
MOST_SWEEPS = 20
MOST_FIGURES = 16
DIRECTIONS = ("worse", "better", "neutral")


def as_page(document: Document) -> str:
    """The whole file."""
    first: dict[str, int] = {}
    alike = [first.setdefault(row.alike or str(place), place) for place, row in enumerate(document.rows)]
    sweeps = found_curves(document.report.tests)[:MOST_SWEEPS]
    data = {
        "ratios": _ratios(document.rows), "rounds": _rounds(document.rows), "roofline": _roofline(document),
        "blocks": _blocks(document.rows), "sweeps": [one.data for one in sweeps],
    }  # fmt: skip
    codes = {(one.key.node_id, one.key.workload): one for one in document.report.code}
    return rendered(
        TEMPLATE, document=document, report=document.report, data=for_script(data),
        rows=[
            {
                "row": row, "like": None if alike[place] == place else alike[place],
                "sorted": _sort_keys(row), "searched": _searched(row),
                "changes": _changes(row), "code": codes.get((row.test, row.workload)),
            }
            for place, row in enumerate(document.rows)
        ],
        verdicts=[(name, count, name) for name, count in document.report.verdicts.items()],
        timed=document.timed, drawn=bool(data["ratios"]), roofline=bool(data["roofline"]), sweeps=sweeps, **vendored(),
    )  # fmt: skip


def _sort_keys(row: Row) -> dict[str, float | str]:
    """What columns are sorted by."""
    time = row.evidence.time
    figures = row.figures
    registers = max((one.profile.registers for one in row.evidence.static.values()), default=-1)
    return {
        "verdict": rank_of(row.verdict), "workload": f"{row.test} {row.workload}".lower(),
        "time": -1 if time is None else round(mean_time_ns(time.rounds), 3),
        "ratio": -1 if figures is None or figures.ratio is None else round(figures.ratio, 6), "code": registers,
    }  # fmt: skip


def _ratios(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Ratios with their intervals, the largest first."""
    found = []
    for place, row in enumerate(rows):
        figures = row.figures
        if figures is None or figures.ratio is None or figures.ratio <= 0:
            continue
        low, high = figures.interval or (figures.ratio, figures.ratio)
        found.append({
            "row": place, "name": f"{row.workload} of {row.test}", "ratio": _short(figures.ratio), "low": _short(low),
            "high": _short(high), "accepted": _short(1 + figures.tolerance),
        })  # fmt: skip
    return sorted(found, key=lambda one: -one["ratio"])


def _rounds(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Rounds of this run and the time on record, in microseconds, by the number of the row."""
    found = {}
    for place, row in enumerate(rows):
        if row.evidence.time is not None:
            before = row.figures.before_ns if row.figures is not None else None
            found[str(place)] = {
                "rounds": [_short(one.midmean / 1e3) for one in row.evidence.time.rounds],
                "before": None if before is None else _short(before / 1e3),
            }
    return found


def _blocks(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Ratios of paired blocks and the path of the e-value, by the number of the row."""
    found = {}
    for place, row in enumerate(rows):
        figures = row.figures
        if figures is not None and figures.block_ratios:
            needed = figures.log_e_needed
            found[str(place)] = {
                "ratios": figures.block_ratios,
                "path": figures.log_e_path,
                "accepted": _short(1 + figures.tolerance),
                "needed": None if needed is None else _short(needed),
            }
    return found


class _Figure(NamedTuple):
    """A figure that differs, on any of the row's targets."""

    what: str
    direction: str
    cells: tuple[str, ...]
    """``32 -> 40`` by target, in the order of ``_Changes.targets``; empty where it is the same."""


class _Changes(NamedTuple):
    targets: tuple[str, ...]
    figures: tuple[_Figure, ...]
    """What got worse first."""


def _changes(row: Row) -> _Changes:
    """Figures that differ, by architecture or GPU model."""
    found: dict[str, dict[str, Change]] = {}
    for one in row.evidence.judgements:
        for change in one.changes:
            found.setdefault(f"{change.what}, {change.unit}" if change.unit else change.what, {})[one.target] = change
    targets = tuple(dict.fromkeys(target for changes in found.values() for target in changes))
    figures = [
        _Figure(
            what,
            min((change.direction for change in changes.values()), key=DIRECTIONS.index),
            tuple(" \u2192 ".join(changes[target].shown) if target in changes else "" for target in targets),
        )
        for what, changes in found.items()
    ]
    figures.sort(key=lambda one: DIRECTIONS.index(one.direction))
    return _Changes(targets, tuple(figures[:MOST_FIGURES]))


def _roofline(document: Document) -> dict[str, Any]:
    """Operations per byte and per second of those that declare both, under the measured ceilings; empty without any."""
    peaks = peaks_of(document.report.tests)
    points = []
    for place, row in enumerate(document.rows):
        time = row.evidence.time
        if time is not None and time.bytes and time.flops:
            speed = time.flops / mean_time_ns(time.rounds) * 1e9
            points.append({
                "row": place, "name": f"{row.workload} of {row.test}", "intensity": _short(time.flops / time.bytes),
                "speed": _short(speed), "says": quantity(speed, "FLOP/s"),
            })  # fmt: skip
    if not points or not {"copy_bandwidth", "fma_throughput"} <= peaks.keys():
        return {}
    return {"points": points, "bandwidth": peaks["copy_bandwidth"], "throughput": peaks["fma_throughput"]}


def _short(value: float) -> float:
    return float(f"{value:.{PLACES + 2}g}")


def _searched(row: Row) -> str:
    """Text that the page's filter searches: names, verdicts, causes and what changed."""
    causes = [one.cause for one in row.evidence.advice]
    changed = [change.what for one in row.evidence.judgements for change in one.changes]
    verdicts = [verdict.value for verdict in row.by_kind.values()]
    words = dict.fromkeys([row.test, row.workload, *verdicts, *causes, *changed])
    return " ".join(words).lower()
