"""The page of the profiler's figures, docs/results/details.md: which row of ``gpuperf explain --details`` has each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import page

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.counters.sections import SECTIONS, SectionRow
from pytest_gpuperf.formatting import quantity
from pytest_gpuperf.report.tables import details_table

ROOT = Path(__file__).parents[2]
REPLAY = ROOT / "tests" / "replays" / "counters" / "nvidia-h200.json"
GPU = "nvidia-h200"
TALKS = ("GTC23", "GTC25", "NOTES")
"""The documents that read a kernel by its profile."""
ROWS = [row for rows in SECTIONS.values() for row in rows]
MOST_ROWS = 4
SHOWN = ("transpose32", "transpose_copy", "transpose_naive")
HEADER = """\
# The documents' figures in our tables

The two profiler talks behind the example suite read kernels by what Nsight Compute shows. This page says in which rows
of `gpuperf explain NODEID --details` each of their figures is found, with what an H200 counted. It is made by

    python example_suite/claims details

without a GPU, of the counters in the repository. [claims.md](claims.md) has the same figures with their verdicts.

{families} families, {figures} figures: {one} are a row themselves, {several} follow from rows, {partly} need a metric
that no table has.

## One comparison

`{before}` of {family} as the baseline, `{after}` now:

```text
{table}
```

## Figure by figure
"""
HEAD = ["| figure | the document says | its figure | measured | our rows |", "|---|---|---|---|---|"]


def recorded_report() -> dict[str, Any]:
    """The report of a run on the H200 that finds what the repository holds: machine code, times and counters."""
    counted = json.loads(REPLAY.read_text(encoding="utf-8"))
    tests: dict[str, Any] = {}
    for key, records in BaselineStore(ROOT / "baselines").workloads().items():
        test = tests.setdefault(key.node_id, {"module": key.module, "test": key.test, "workloads": []})
        counters = counted["workloads"].get(key.node_id, {}).get(key.workload, ())
        time = msgspec.to_builtins(records.times[GPU]) if GPU in records.times else {}
        replayed = dict(zip(counted["metrics"], counters, strict=False))
        work = {"key": {"workload": key.workload}, "counters": time.get("counters", {}) | replayed}
        launch = {name: time[name] for name in ("grid", "block") if name in time}
        work["static"] = {arch: msgspec.to_builtins(one) | launch for (arch, _), one in records.static.items()}
        work |= {"identity": {}, "time": time} if time else {}
        test["workloads"].append(work)
    return {"tests": [*tests.values()]}


def text_of(claims: Mapping[str, Any], report: Mapping[str, Any], evaluated: Any) -> str:
    """The page in Markdown; ``evaluated(report, claims, read)`` has each claim's figures and fills ``read``."""
    read: list[tuple[Any, str]] = []
    families: dict[str, list[str]] = {}
    counts = {"one": 0, "several": 0, "partly": 0}
    for claim in [one for one in claims.values() if one.kind == "counter" and one.document in TALKS and one.formula]:
        read.clear()
        ((_, figures, problem),) = evaluated(report, [claim], read)
        assert not problem, f"{claim.id}: {problem}"
        kind, rows = _rows_of(figures[0], read)
        counts[kind] += 1
        says, where = page.with_unit(page.range_of(claim), claim.unit), f"{claim.document}: {claim.text}"
        measured = page.with_unit(page.number(figures[0]), claim.unit)
        families.setdefault(claim.family, []).append(f"| {claim.id} | {where} | {says} | {measured} | {rows} |")
    family, before, after = SHOWN
    sides = [_counters_of(report, family, name) for name in (before, after)]
    table = details_table(*sides)
    assert table is not None
    text = HEADER.format(
        families=len(families), figures=sum(counts.values()), **counts, family=family, before=before, after=after,
        table="\n".join(line for line, _ in table.lines()),
    )  # fmt: skip
    return text + "".join("\n".join([f"\n### {name}\n", *HEAD, *rows, ""]) for name, rows in families.items())


def _counters_of(report: Mapping[str, Any], family: str, workload: str) -> dict[str, float]:
    works = [
        work for one in report["tests"] if one["module"].endswith(f"/test_{family}.py") for work in one["workloads"]
    ]
    return next(work["counters"] for work in works if work["key"]["workload"] == workload)


def _rows_of(figure: float, read: list[tuple[Any, str]]) -> tuple[str, str]:
    """The row that is the figure, else all that have the metrics read for it, with the values of their workloads."""
    works = list({work.workload: work for work, _ in read}.values())
    metrics = {metric for _, metric in read}
    fitting = [row for row in ROWS if {*row.metrics} <= metrics]
    for row in fitting:
        if any(_is(row.of(work.counters), figure) for work in works):
            return "one", _with_values(row, works)
    chosen = list(_covering(metrics))
    lacking = metrics - {name for row in chosen for name in row.metrics}
    texts = [_with_values(row, works) for row in chosen]
    if len(texts) > MOST_ROWS:
        texts = [f"{len(chosen)} rows of {next(name for name, rows in SECTIONS.items() if chosen[0] in rows)}"]
    return "partly" if lacking else "several", "; ".join([*texts, *(f"not: `{name}`" for name in sorted(lacking))])


def _covering(metrics: set[str]) -> Iterator[SectionRow]:
    """Rows that have all of the metrics: first those of no others, of several before those of one."""
    left = set(metrics)
    for row in sorted(ROWS, key=lambda row: (len({*row.metrics} - metrics), -len({*row.metrics}))):
        if {*row.metrics} & left:
            left -= {*row.metrics}
            yield row


def _is(value: float | None, figure: float) -> bool:
    return value is not None and math.isclose(value, figure, rel_tol=1e-6)


def _with_values(row: SectionRow, works: list[Any]) -> str:
    values = [(work.workload, row.of(work.counters)) for work in works]
    shown = [f"{name} {quantity(value)} {row.unit}".rstrip() for name, value in values if value is not None]
    return f"**{row.what}**: {', '.join(shown)}"
