"""The tables of a run on a terminal: machine code, times and counters, and the baselines that an update wrote.

A table has a row for each workload if they fit a screen or ``-v`` asks for it; else rows for workloads that do not
simply pass, and equal ones of a test function as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.counters.sections import Counters, details
from pytest_gpuperf.formatting import duration, first_of, numbered, percent, quantity, visible
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Recorded
from pytest_gpuperf.model.time_record import SecondaryMetrics, TimeRecord, mean_time_ns
from pytest_gpuperf.model.verdict import EvidenceKind
from pytest_gpuperf.report.document import Row, static_cell
from pytest_gpuperf.report.order import MARKUP, function_of, named, shortened, worst

LEAST_COLUMNS, LEAST_NAME, MOST_CELL = 2, 24, 60
"""Columns of a table that are kept on any terminal, and characters of the first one and of others."""
MOST_LINES = 16
"""Most rows of a table that lists every workload."""
MOST_ROWS = 6
"""Most rows of a table that folds them."""


class Table:
    """Columns as wide as their widest cell, the first and the last flush left; one without a figure is left out.

    On a narrow terminal names in the first column are shortened, then columns give way, the last but one first; the
    line below the table names them.
    """

    def __init__(self, *heads: str) -> None:
        self._heads = heads
        self._rows: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def row(self, *cells: str, markup: tuple[str, ...] = ()) -> None:
        """A cell for each column; one alone runs across."""
        self._rows.append((tuple(map(visible, cells)), markup))

    def lines(self, width: int | None = None) -> list[tuple[str, tuple[str, ...]]]:
        """Each with its marks (names of pytest's terminal writer); ``width`` is the terminal's, None for any."""
        full = [cells for cells, _ in self._rows if len(cells) == len(self._heads)]
        widths = [max(map(len, column)) for column in zip(self._heads, *full, strict=True)]
        kept = [0, *(at for at in range(1, len(widths)) if any(cells[at] != "-" for cells in full))]
        rows = [(self._heads, ("bold",)), *self._rows]
        if width is not None:
            widths = [min(one, MOST_CELL) for one in widths]
            left_out: list[str] = []
            while len(kept) > LEAST_COLUMNS and LEAST_NAME + sum(widths[one] + 2 for one in kept[1:]) > width:
                left_out.insert(0, self._heads[kept.pop(-2)])
            widths[0] = min(widths[0], max(LEAST_NAME, width - sum(widths[one] + 2 for one in kept[1:])))
            rows += [((f"(no room for: {', '.join(left_out)})",), ())] if left_out else []
        return [(self._aligned(cells, widths, kept, width), markup) for cells, markup in rows]

    def _aligned(self, cells: Sequence[str], widths: Sequence[int], kept: Sequence[int], most: int | None) -> str:
        if len(cells) == 1:
            return cells[0] if most is None else shortened(cells[0], most)
        shown = []
        for one in kept:
            cell = shortened(cells[one], widths[one])
            shown.append((cell.rjust if 0 < one < len(cells) - 1 else cell.ljust)(widths[one]))
        return "  ".join(shown).rstrip()


class Cells(NamedTuple):
    """A table's row of one workload."""

    key: Key
    cells: tuple[str, ...]
    """Behind the name."""
    markup: tuple[str, ...] = ()
    passes: bool = False
    """There is nothing to know of it: a folded table leaves it out."""


def table_of(heads: Sequence[str], rows: Sequence[Cells], *, whole: bool) -> Table | None:
    """The table; None where it would have no row.  ``whole``: every workload, however many."""
    groups: dict[object, list[Cells]] = {}
    folded = not whole and len(rows) >= MOST_LINES
    for row in rows:
        if not (folded and row.passes):
            groups.setdefault((function_of(row.key), row.cells) if folded else row.key.node_id, []).append(row)
    table = Table(*heads)
    for group in list(groups.values())[:MOST_ROWS] if folded else ():
        table.row(named([row.key for row in group]), *group[0].cells, markup=group[0].markup)
    for test, those in () if folded else groups.items():
        table.row(str(test), markup=("bold",))
        for row in those:
            table.row(f"  {row.key.workload}", *row.cells, markup=row.markup)
    if folded and (rest := sum(map(len, list(groups.values())[MOST_ROWS:]))):
        table.row(f"and {numbered(rest, 'workload')} more; -v lists every one")
    return table if groups else None


def _judged(row: Row, cells: Iterable[str], kind: EvidenceKind) -> Cells:
    """A row that ends with its verdict on this kind of evidence, and is marked as that is."""
    key, verdict = row.evidence.key, worst(row.evidence.judgements, kind)
    if verdict is None:
        return Cells(key, (*cells, "-"), passes=True)
    return Cells(key, (*cells, verdict.value), MARKUP[verdict], verdict.is_pass)


def static_table(rows: Iterable[Row], *, whole: bool = False) -> Table | None:
    """Registers, spilled bytes and occupancy by architecture."""
    rows = [row for row in rows if row.evidence.static]
    archs = sorted({arch for row in rows for arch in row.evidence.static}, key=arch_order)
    cells = [_judged(row, [static_cell(row.evidence.static.get(arch)) for arch in archs], "static") for row in rows]
    return table_of(("registers / spilled bytes / occupancy", *archs, "verdict"), cells, whole=whole)


def time_table(rows: Iterable[Row], *, whole: bool = False) -> Table | None:
    """Time with its interval, change against the baseline, and rate of every timed workload."""
    cells = [_judged(row, row.time, "time") for row in rows if row.evidence.time_judgement or row.evidence.time]
    return table_of(("device time", "time", "against baseline", "rate, of peak", "verdict"), cells, whole=whole)


_COUNTERS = (
    ("instructions", "smsp__inst_executed.sum", ""),
    ("load sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", ""),
    ("store sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", ""),
    ("L2 sectors", "lts__t_sectors.sum", ""), ("DRAM read", "dram__bytes_read.sum", "B"),
    ("DRAM written", "dram__bytes_write.sum", "B"),
)  # fmt: skip
"""Those that most sets have."""


def counter_table(rows: Iterable[Row], *, whole: bool = False) -> Table | None:
    """A few counters of every workload that has some."""
    found = []
    for row in (row for row in rows if row.evidence.counters):
        figures = [(row.evidence.counters.get(name), unit) for _, name, unit in _COUNTERS]
        cells = ["-" if value is None else quantity(value, unit) for value, unit in figures]
        found.append(_judged(row, cells, "counters"))
    return table_of(("counters of one run", *(head for head, _, _ in _COUNTERS), "verdict"), found, whole=whole)


def details_table(before: Counters, after: Counters) -> Table | None:
    """All that Nsight Compute would show of one workload, section by section; None without counters."""
    table, sections = Table("counters", "unit", "baseline", "now", "change"), details(before, after)
    for name, lines in sections:
        table.row(name, markup=("bold",))
        for line in lines:
            table.row(f"  {line.what}", *line.cells, markup=("bold",) if line.stands_out else ())
    return table if sections else None


# --- an update -----------------------------------------------------------------------------------


def update_table(recorded: Iterable[Recorded], *, whole: bool = False) -> Table | None:
    """Old and new figures of every baseline that an update wrote; refused ones come first."""
    rows = []
    for one in sorted(recorded, key=lambda one: (not one.refused, one.before is None)):
        after, change = ("refused", one.refused) if one.refused else (_figure(one.after), _change(one))
        cells = (one.target, _figure(one.before), after, change)
        rows.append(Cells(one.key, cells, ("yellow",) if one.refused else ()))
    return table_of(("baseline", "target", "before", "after", "change"), rows, whole=whole)


def _change(one: Recorded) -> str:
    if isinstance(one.before, TimeRecord) and isinstance(one.after, TimeRecord):
        if one.after.rounds != one.before.rounds:
            return percent(mean_time_ns(one.after.rounds) / mean_time_ns(one.before.rounds) - 1)
        before, after = (each.secondary or SecondaryMetrics() for each in (one.before, one.after))
        return "counters" if before == after else "secondary metrics"
    if isinstance(one.before, StaticRecord) and isinstance(one.after, StaticRecord):
        differ = compare_static(one.key, one.target, one.before, one.after).changes
        return first_of([f"{one.what} {one.figures}" for one in differ], 3, ",") or "the machine code, no figure"
    return "new"


def _figure(record: TimeRecord | StaticRecord | None) -> str:
    if record is None:
        return "-"
    return duration(mean_time_ns(record.rounds)) if isinstance(record, TimeRecord) else static_cell(record)
