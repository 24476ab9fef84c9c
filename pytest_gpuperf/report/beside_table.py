"""What workloads cost beside their time, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import duration, quantity
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import BESIDE, Judgement, Verdict
from pytest_gpuperf.report.folding import folded
from pytest_gpuperf.report.tables import MARKUP, Table, folded_into, rank_of

COLUMNS = ("device memory", "error", "host time", "compile time")
"""In the order of ``BESIDE``."""


def beside_table(evidence: Sequence[TestEvidence]) -> Table:
    """Every workload that was asked for any of it; behind each figure its change against the record."""
    table = _columns()
    for one in evidence:
        works = [work for work in one.workloads if _cells(work) is not None]
        if works:
            table.heading(f"{one.module}::{one.test}")
        for work in works:
            verdict = worst_beside(work.judgements)
            word, markup = (verdict.value, MARKUP.get(verdict, ())) if verdict else ("-", ())
            table.row(f"  {work.key.workload}", *(_cells(work) or ()), word, markup=markup)
    return table


def folded_beside_table(evidence: Sequence[TestEvidence]) -> Table | None:
    """The same by test function, without those of which every workload passes; None if nothing is left."""
    return folded_into(
        _columns(), folded(evidence, _cells, lambda work: worst_beside(work.judgements), rank_of)
    )  # fmt: skip


def _columns() -> Table:
    return Table("beside the time", *COLUMNS, "verdict")


def worst_beside(judgements: Iterable[Judgement]) -> Verdict | None:
    """The verdict on any of it that a reader has to know first."""
    return min((one.verdict for one in judgements if one.kind in BESIDE), key=rank_of, default=None)


def _cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
    """None of a workload that has none of it."""
    found = work.beside or Beside()
    notes = {one.kind: change.note for one in work.judgements for change in one.changes if one.kind in BESIDE}
    figures = (
        None if found.memory_bytes is None else quantity(found.memory_bytes, "B"),
        None if found.accuracy is None else f"{found.accuracy:.3g}",
        None if found.host is None else duration(found.host.time_ns),
        None if found.compile is None else duration(found.compile.time_ns),
    )
    if not any(figures):
        return None
    changes = [notes.get(kind, "").partition(" beside")[0] for kind in BESIDE]
    return tuple(
        "-" if figure is None else f"{figure} ({change})" if change else figure
        for figure, change in zip(figures, changes, strict=True)
    )
