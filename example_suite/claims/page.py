"""The page of the claims, docs/results/claims.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

KERNELS = "../../example_suite"
DOCUMENTS = {
    "GTC25": 'GTC 2025, "CUDA Techniques to Maximize Compute and Instruction Throughput"',
    "NOTES": "notes on that talk",
    "GTC23": 'GTC 2023, "What the profiler is telling you: optimizing your CUDA application"',
    "BLOG": 'R. Bourgeois, "Five basic performance advice for porting kernels to the GPU"',
    "COURSE": 'the "Optimization" chapter of a CUDA course',
}
HEADER = """\
# What the documents claim, and what an example run found

The kernels of `example_suite/` follow talks and articles that claim figures, most of them on other GPUs. This page says
of each claim what became of it on one GPU. It is made by

    pytest --gpuperf --gpuperf-ncu=$(python example_suite/claims metrics) --gpuperf-report=run.json example_suite
    python example_suite/claims record run.json
    python example_suite/claims report

The last command needs no GPU: the figures are in the repository.

{run}

{documents}

## How many

{counts}

A verdict follows by rule from the document's figure and the measured one. *Reproduced*: within 15 % of the document's
figure, or inside the range it gives; a count has to be equal. *Direction holds, more* or *less*: there is an effect of
the claimed direction, larger or smaller. Of what *can* happen, the direction is all. *Contradicted*: there is no effect
(less than 1 %), or the opposite one. *Document's erratum*: the document is mistaken in itself. *Not comparable here*:
the figure is of another chip and has no direction, or the table says why.

## Claim by claim
"""
HEAD = ["| claim | the document says | where | its figure | measured | verdict |", "|---|---|---|---|---|---|"]


def text_of(claims: Mapping[str, Any], on_record: Mapping[str, Any]) -> str:
    """The page in Markdown.  Raises ``KeyError`` for a claim that needs a figure and has none on record."""
    figures = {name: on_record["figures"][name] if claim.formula else [] for name, claim in claims.items()}
    verdicts = [claim.verdict((figures[name] or [None])[0]) for name, claim in claims.items()]
    kinds = dict.fromkeys(verdicts)
    counts = [f"| {kind} | {verdicts.count(kind)} |" for kind in sorted(kinds, key=lambda one: -verdicts.count(one))]
    run = [f"| {name} | {value} |" for name, value in on_record["run"].items()]
    text = HEADER.format(
        run="\n".join(["| | |", "|---|---|", *run]),
        documents="\n".join(f"* {key}: {title}" for key, title in DOCUMENTS.items()),
        counts="\n".join(["| verdict | claims |", "|---|---|", *counts, f"| all | {len(verdicts)} |"]),
    )
    tests = {file.stem.removeprefix("test_") for file in Path(__file__).parents[1].glob("test_*.py")}
    families: dict[str, list[str]] = {}
    for claim, verdict in zip(claims.values(), verdicts, strict=True):
        families.setdefault(claim.family, []).append(_row(claim, verdict, figures[claim.id]))
    for family, rows in families.items():
        link = f"[test_{family}.py]({KERNELS}/test_{family}.py)" if family in tests else "Of other families."
        text += "\n".join([f"\n### {family}\n", link, "", *HEAD, *rows, ""])
    return text


def _row(claim: Any, verdict: str, found: Sequence[float]) -> str:
    shown = f" ({claim.shown})" if claim.shown not in ("", "text") else ""
    where = f"{claim.document}: {claim.place}{shown}" + (f"; {claim.gpu}" if claim.gpu not in ("", "any") else "")
    reasons = [
        reason["text"].replace("{}", number(figure))
        for reason, figure in zip(claim.because, found[1:], strict=True)
    ] if claim.because else []  # fmt: skip
    why = "; ".join([one for one in (claim.why, *reasons) if one])
    said = with_unit(range_of(claim), claim.unit) if "says" in claim.given else ""
    measured = with_unit(number(found[0]), claim.unit) if found else ""
    cells = (claim.id, claim.text, where, said, measured, f"{verdict}: {why}" if why else verdict)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def range_of(claim: Any) -> str:
    """``3.87``, ``2 to 5``, ``at least 2``, ``more than 1`` where 1 is no effect."""
    says = claim.given["says"]
    if not isinstance(says, list):
        return number(says)
    low, high = says
    if high is None:
        return f"{'more than' if low == claim.neutral_figure else 'at least'} {number(low)}"
    if low is None:
        return f"{'less than' if high == claim.neutral_figure else 'at most'} {number(high)}"
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def with_unit(figure: str, unit: str) -> str:
    return f"{figure} {unit}" if figure and unit else figure


def number(figure: float) -> str:
    """Counts in full, all else to three significant digits."""
    return f"{figure:.0f}" if abs(figure) >= 1000 and math.isfinite(figure) else f"{figure or 0.0:.3g}"
