"""What workloads cost beside their time, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.formatting import duration, quantity
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import BESIDE, Verdict
from pytest_gpuperf.report.tables import Table, filled, filled_by_function
from pytest_gpuperf.report.verdict_order import worst

COLUMNS = ("device memory", "error", "host time")
"""In the order of ``BESIDE``."""


def beside_table(evidence: Sequence[TestEvidence]) -> Table:
    """Every workload that was asked for any of it; behind each figure its change against the record."""
    return filled(_columns(), evidence, _cells, _verdict)


def folded_beside_table(evidence: Sequence[TestEvidence]) -> Table | None:
    """The same by test function, as ``filled_by_function`` says."""
    return filled_by_function(_columns(), evidence, _cells, _verdict)


def _columns() -> Table:
    return Table("beside the time", *COLUMNS, "verdict")


def _verdict(work: WorkloadEvidence) -> Verdict | None:
    return worst(work.judgements, *BESIDE)


def _cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
    """None of a workload that has none of it."""
    found = work.beside or Beside()
    notes = {one.kind: change.note for one in work.judgements for change in one.changes if one.kind in BESIDE}
    figures = (
        None if found.memory_bytes is None else quantity(found.memory_bytes, "B"),
        None if found.accuracy is None else f"{found.accuracy:.3g}",
        None if found.host is None else duration(found.host.time_ns),
    )
    if not any(figures):
        return None
    changes = [notes.get(kind, "").partition(" beside")[0] for kind in BESIDE]
    return tuple(
        "-" if figure is None else f"{figure} ({change})" if change else figure
        for figure, change in zip(figures, changes, strict=True)
    )
