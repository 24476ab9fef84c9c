"""Long lists made short: workloads by test function, equal remarks once, names that fit their column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pytest_gpuperf.formatting import columns, numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.report.verdict_order import rank_of

MOST_LINES = 16
"""Of a table; a longer one is folded."""
MOST_FUNCTIONS = 6
"""Test functions that a folded table lists."""
MOST_ROWS = 3
"""Kinds of workloads that it lists of one."""
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

CellsOf = Callable[[WorkloadEvidence], tuple[str, ...] | None]
"""What a table has of a workload; None if that has no row."""
VerdictOf = Callable[[WorkloadEvidence], Verdict | None]
_Cells = tuple[WorkloadEvidence, tuple[str, ...]]


class FoldedRow(NamedTuple):
    """Workloads of one test function that look alike."""

    name: str
    cells: tuple[str, ...]
    verdict: Verdict | None


class Folded(NamedTuple):
    """One test function."""

    heading: str
    """``test_k.py::test_scale[…]  64 workloads: 3 WORSE, 61 UNCHANGED``; empty where one row says it all."""
    rows: tuple[FoldedRow, ...]
    """Those to know first."""
    more: int
    """Other workloads that do not simply pass."""


def function_of(key: Key) -> str:
    """The test without its parameters: ``test_k.py::test_scale``."""
    return f"{key.module}::{key.test.partition('[')[0]}"


def counted(verdicts: Iterable[Verdict | None]) -> str:
    """``3 WORSE, 61 UNCHANGED``: those to know first come first."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[one]} {one.value if one else 'not judged'}" for one in sorted(counts, key=rank_of))


def folded(evidence: Iterable[TestEvidence], cells_of: CellsOf, verdict_of: VerdictOf) -> list[Folded]:
    """Test functions of which some workloads do not simply pass, the worst first."""
    functions: dict[str, list[_Cells]] = {}
    for one in evidence:
        for work in one.workloads:
            if (cells := cells_of(work)) is not None:
                functions.setdefault(function_of(work.key), []).append((work, cells))
    found = []
    for name, works in functions.items():
        verdicts = [verdict_of(work) for work, _ in works]
        told = [(work, cells) for work, cells in works if not _passes(verdict_of(work))]
        if told:
            found.append((min(map(rank_of, verdicts)), _function(name, works, told, verdict_of)))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _passes(verdict: Verdict | None) -> bool:
    return verdict is None or verdict.is_pass


def _function(name: str, works: Sequence[_Cells], told: Sequence[_Cells], verdict_of: VerdictOf) -> Folded:
    parameters = f"[{ELLIPSIS}]" if any("[" in work.key.test for work, _ in works) else ""
    counts = counted(verdict_of(work) for work, _ in works)
    alike: dict[tuple[tuple[str, ...], Verdict | None], list[str]] = {}
    for work, cells in sorted(told, key=lambda one: rank_of(verdict_of(one[0]))):
        alike.setdefault((cells, verdict_of(work)), []).append(work.key.workload)
    rows = [FoldedRow(first_and_alike(names), cells, verdict) for (cells, verdict), names in alike.items()]
    shown = list(alike.values())[:MOST_ROWS]
    if len(rows) == 1 and len(told) == len(works):
        many = f"  {numbered(len(works), 'workload')}" if len(works) > 1 else f"  {works[0][0].key.workload}"
        return Folded("", (rows[0]._replace(name=f"{name}{parameters}{many}"),), 0)
    return Folded(
        heading=f"{name}{parameters}  {numbered(len(works), 'workload')}: {counts}",
        rows=tuple(rows[:MOST_ROWS]), more=len(told) - sum(map(len, shown)),
    )  # fmt: skip


def first_and_alike(names: Sequence[str]) -> str:
    """``work and 3 alike``: the first name for all that look the same."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} alike"


def said_once(lines: Iterable[tuple[str, str]], most: int = 6) -> list[str]:
    """Remarks, each with who it is about, and the rest counted.

    Those that differ in figures alone, and in the test that their last words name, share a line.
    """
    about: dict[str, list[tuple[str, str]]] = {}
    for who, text in lines:
        about.setdefault(re.sub(r" [\d.]+ ", " 0 ", text.rpartition(": ")[0]), []).append((who, text))
    found = []
    for those in about.values():
        more = f" and {len(those) - 1} more" if len(those) > 1 else ""
        found.append(f"{those[0][0]}{more}: {those[0][1]}")
    return capped(found, most, "remark")


def capped(lines: Sequence[str], most: int, what: str) -> list[str]:
    """As many of them, then how many more there are."""
    if len(lines) <= most + 1:
        return list(lines)
    more = " more" if most else ""
    return [*lines[:most], f"{'and ' if most else ''}{numbered(len(lines) - most, what)}{more} (-v lists all)"]


def shortened(text: str, width: int) -> str:
    """At most so many columns: the middle of a long name goes."""
    if columns(text) <= width:
        return text
    most = min(width, len(text) - 1)
    while columns(short := _without_middle(text, most)) > width:
        most -= 1
    return short


def _without_middle(text: str, most: int) -> str:
    """So many characters of it."""
    if most <= 1:
        return text[:most]
    tail = (most - 1) // 2
    return text[: most - 1 - tail] + ELLIPSIS + (text[-tail:] if tail else "")
