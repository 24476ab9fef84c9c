"""A run as one HTML file that opens offline, and what all pages share: Jinja2, and uPlot 1.6.32 to draw figures.

uPlot has the MIT licence and is embedded as it was released.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from pytest_gpuperf.formatting import visible
from pytest_gpuperf.model.time_record import mean_time_ns
from pytest_gpuperf.report.curves import found_curves
from pytest_gpuperf.report.document import Document, Row
from pytest_gpuperf.report.order import rank_of

MOST_SWEEPS = 20


def rendered(template: str, **values: Any) -> str:
    """The page of a template: text is escaped, and its characters that are not printed are written out."""
    environment = jinja2.Environment(
        finalize=lambda value: visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
        loader=jinja2.PackageLoader("pytest_gpuperf.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(template).render(**values)


def vendored() -> dict[str, Markup]:
    """``plot_script`` and ``plot_style``, for a template to embed as they are."""
    folder = Path(__file__).parent / "templates" / "vendor"
    return {
        "plot_script": Markup((folder / "uPlot.iife.min.js").read_text(encoding="utf-8")),
        "plot_style": Markup((folder / "uPlot.min.css").read_text(encoding="utf-8")),
    }


def for_script(data: object) -> Markup:
    """JSON for a ``<script type="application/json">``: nothing in it ends the element, whatever names say."""
    text = msgspec.json.encode(data).decode()
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def as_page(document: Document) -> str:
    """The whole file."""
    first: dict[str, int] = {}
    alike = [first.setdefault(row.alike or str(place), place) for place, row in enumerate(document.rows)]
    sweeps = found_curves(document.report.tests)[:MOST_SWEEPS]
    data = {
        "ratios": _ratios(document.rows), "rounds": _rounds(document.rows), "blocks": _blocks(document.rows),
        "sweeps": [one.data for one in sweeps],
    }  # fmt: skip
    rows = [
        {
            "row": row, "key": row.evidence.key, "like": None if alike[place] == place else document.rows[alike[place]],
            "like_at": alike[place], "sorted": _sort_keys(row), "searched": _searched(row),
        }
        for place, row in enumerate(document.rows)
    ]  # fmt: skip
    return rendered("report.html", document=document, report=document.report, rows=rows, sweeps=sweeps,
                    drawn=bool(data["ratios"]), data=for_script(data), **vendored())  # fmt: skip


def _sort_keys(row: Row) -> dict[str, float | str]:
    """What columns are sorted by."""
    time, key = row.evidence.time, row.evidence.key
    registers = max((one.profile.registers for one in row.evidence.static.values()), default=-1)
    return {
        "verdict": rank_of(row.verdict), "workload": f"{key.node_id} {key.workload}".lower(),
        "time": -1 if time is None else round(mean_time_ns(time.rounds), 3),
        "ratio": -1 if row.ratio is None else round(row.ratio, 6), "code": registers,
    }  # fmt: skip


def _ratios(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Ratios with their intervals, the largest first."""
    found = []
    for row in rows:
        figures = row.evidence.time_figures
        if figures is not None and figures.ratio is not None and figures.ratio > 0:
            low, high = figures.interval or (figures.ratio, figures.ratio)
            found.append({
                "name": row.name, "ratio": _short(figures.ratio), "low": _short(low), "high": _short(high),
                "accepted": _short(1 + figures.tolerance),
            })  # fmt: skip
    return sorted(found, key=lambda one: -one["ratio"])


def _rounds(rows: Iterable[Row]) -> dict[int, dict[str, Any]]:
    """Rounds of this run and the time on record, in microseconds, by the number of the row."""
    found = {}
    for place, row in enumerate(rows):
        if row.evidence.time is not None:
            figures, rounds = row.evidence.time_figures, row.evidence.time.rounds
            before = None if figures is None or figures.before_ns is None else _short(figures.before_ns / 1e3)
            found[place] = {"rounds": [_short(one.midmean / 1e3) for one in rounds], "before": before}
    return found


def _blocks(rows: Iterable[Row]) -> dict[int, dict[str, Any]]:
    """Ratios of paired blocks and the path of the e-value, by the number of the row."""
    return {
        place: {
            "ratios": figures.block_ratios, "path": figures.log_e_path, "accepted": _short(1 + figures.tolerance),
            "needed": figures.log_e_needed,
        }
        for place, row in enumerate(rows)
        if (figures := row.evidence.time_figures) is not None and figures.block_ratios
    }  # fmt: skip


def _short(value: float) -> float:
    """Six significant digits: more cannot be seen."""
    return float(f"{value:.6g}")


def _searched(row: Row) -> str:
    """Text that the page's filter searches: names, verdicts, causes and what changed."""
    judged = row.evidence.judgements
    words = [row.name, *(one.verdict.value for one in judged), *(one.cause for one in row.evidence.advice)]
    return " ".join(dict.fromkeys([*words, *(change.what for one in judged for change in one.changes)])).lower()
