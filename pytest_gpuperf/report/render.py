"""A run as one HTML file that opens offline: a table to sort and to search, with the causes and the counters."""

from __future__ import annotations

from urllib.parse import quote

import jinja2

from pytest_gpuperf.counters.sections import details
from pytest_gpuperf.formatting import visible
from pytest_gpuperf.model.time_record import mean_time_ns
from pytest_gpuperf.report.document import Document, Row
from pytest_gpuperf.report.order import rank_of


def as_page(document: Document, root: str = ".") -> str:
    """The whole file: text is escaped, and its characters that are not printed are written out.

    ``root`` is the folder that the document names files from, as seen from the page.
    """
    first: dict[str, int] = {}
    rows = []
    for place, row in enumerate(document.rows):
        like_at = first.setdefault(row.alike or str(place), place)
        rows.append({
            "row": row, "key": row.evidence.key, "like_at": like_at,
            "like": None if like_at == place else document.rows[like_at],
            "sorted": _sort_keys(row), "searched": _searched(row),
            "sections": details(row.evidence.baseline_counters, row.evidence.counters),
        })  # fmt: skip
    environment = jinja2.Environment(
        finalize=lambda value: visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
        loader=jinja2.PackageLoader("pytest_gpuperf.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report.html").render(
        document=document, report=document.report, rows=rows, root=quote(root)
    )  # fmt: skip


def _sort_keys(row: Row) -> dict[str, float | str]:
    """By column."""
    time, key = row.evidence.time, row.evidence.key
    return {
        "verdict": rank_of(row.verdict), "workload": f"{key.node_id} {key.workload}".lower(),
        "time": -1 if time is None else round(mean_time_ns(time.rounds), 3),
        "ratio": -1 if row.ratio is None else round(row.ratio, 6),
        "code": max((one.profile.registers for one in row.evidence.static.values()), default=-1),
    }  # fmt: skip


def _searched(row: Row) -> str:
    """Text that the page's filter searches: names, verdicts, causes and changed figures."""
    judged = row.evidence.judgements
    words = [row.name, *(one.verdict.value for one in judged), *(one.cause for one in row.evidence.advice)]
    return " ".join(dict.fromkeys([*words, *(change.what for one in judged for change in one.changes)])).lower()
