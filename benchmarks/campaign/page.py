"""The page of a campaign: a row for each workload and slowdown, and whether the promises were kept."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLUMNS = ("workload", "us", "slower by", "verdicts", "SLOWER", "not confirmed", "SAME", "FASTER", "other",
           "ratio, median", "scatter", "blocks", "seconds, median", "most", "to confirm")  # fmt: skip


def report(file: Path, title: str, verdicts: Sequence[dict[str, Any]], wanted: dict[int, float]) -> int:
    """Write and print the page; 1 if equal work was red, or too few of the slower were (``wanted`` shares)."""
    cells: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for one in verdicts:
        cells.setdefault((one["workload"], one["percent"]), []).append(one)
    rows = [COLUMNS, ["---"] * len(COLUMNS), *(_row(*cell, found) for cell, found in sorted(cells.items()))]
    lines = [f"# Verdicts of known truth: {title}", "", *(f"| {' | '.join(map(str, row))} |" for row in rows), ""]
    broken = not verdicts
    for percent in sorted({percent for _, percent in cells}):
        names = [one["verdict"] for one in verdicts if one["percent"] == percent]
        red, least = names.count("SLOWER"), wanted.get(percent, 0.0) * len(names)
        broken |= red > 0 if not percent else red < least
        lines.append(f"* +{percent} %: {red} of {len(names)} SLOWER" + (f", wanted {least:g}" if least else ""))
    lines.append("* a promise is broken" if broken else "* no promise is broken")
    text = "\n".join(lines) + "\n"
    print(text)
    file.write_text(text, encoding="utf-8")
    return int(broken)


def _row(workload: str, percent: int, found: Sequence[dict[str, Any]]) -> tuple[object, ...]:
    names = [one["verdict"] for one in found]
    counts = [names.count(name) for name in ("SLOWER", "SAME", "FASTER")]
    unheard = sum(one.get("reason", "").startswith("not confirmed") for one in found)
    ratios, blocks, lengths, seconds, more = (
        [one[key] for one in found if one.get(key)]
        for key in ("ratio", "blocks", "duration_ns", "seconds", "more_seconds")
    )
    return (
        workload, f"{_median(lengths) / 1000:.4g}", f"{percent} %", len(found), counts[0], unheard, *counts[1:],
        len(found) - sum(counts), f"{_median(ratios):.4f}", f"{100 * statistics.pstdev(ratios or [0]):.2f} %",
        f"{_median(blocks):g}", f"{_median(seconds):.2f}", f"{max(seconds, default=0):.2f}", f"{_median(more):.2f}",
    )  # fmt: skip


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")
