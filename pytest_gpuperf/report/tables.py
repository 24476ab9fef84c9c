"""Evidence as tables of text: static figures per architecture, and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.formatting import columns, duration, numbered, quantity, ratio, visible
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.timed_round import mean_time_ns
from pytest_gpuperf.model.verdict import EvidenceKind, Verdict
from pytest_gpuperf.report.folding import MOST_FUNCTIONS, CellsOf, VerdictOf, folded, shortened
from pytest_gpuperf.report.verdict_order import MARKUP, worst

MOST_OF_PEAK = 1.1
"""A larger share of a peak is none of it: what a warm L2 delivers, what tensor cores multiply."""
LISTED = 3
"""Unchanged workloads of one test that a short table lists; of more it says how many."""


class Line(NamedTuple):
    """One line of a table and how it is marked (names of pytest's terminal writer)."""

    text: str
    markup: tuple[str, ...] = ()


class Table:
    """Columns as wide as their widest cell; the first is flush left, headings and notes run across.

    Where the terminal is narrower, names in the first column are shortened, and then columns left out from the left.
    """

    def __init__(self, *columns: str, left_out: tuple[int, ...] = ()) -> None:
        """``left_out`` are the columns that go first where there is no room."""
        self._columns = columns
        self._left_out = left_out
        self._rows: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    @property
    def width(self) -> int:
        """Columns."""
        return len(self._columns)

    def heading(self, text: str) -> None:
        self._rows.append(((text,), ("bold",)))

    def note(self, text: str) -> None:
        self._rows.append(((text,), ()))

    def row(self, *cells: str, markup: tuple[str, ...] = ()) -> None:
        self._rows.append((tuple(map(visible, cells)), markup))

    def judged_row(self, name: str, cells: Sequence[str], verdict: Verdict | None) -> None:
        """A row that ends with a verdict and is marked as that is."""
        self.row(name, *cells, verdict.value if verdict else "-", markup=MARKUP.get(verdict, ()) if verdict else ())

    def __len__(self) -> int:
        return 1 + len(self._rows)

    def lines(self, width: int | None = None) -> list[Line]:
        """``width`` is that of the terminal, in columns; None for as much as it takes."""
        full = [cells for cells, _ in self._rows if len(cells) == len(self._columns)]
        widths = [max(columns(cell) for cell in column) for column in zip(self._columns, *full, strict=True)]
        kept = list(range(len(widths)))
        if width is not None:
            while len(kept) > LEAST_COLUMNS and LEAST_NAME + sum(widths[one] + 2 for one in kept[1:]) > width:
                kept.remove(next((one for one in self._left_out if one in kept), kept[1]))
            widths[0] = min(widths[0], max(LEAST_NAME, width - sum(widths[one] + 2 for one in kept[1:])))
        head = Line(_aligned(self._columns, widths, kept, width), ("bold",))
        return [head, *(Line(_aligned(cells, widths, kept, width), markup) for cells, markup in self._rows)]


LEAST_COLUMNS = 2
LEAST_NAME = 24
"""Columns of a table that are kept on any terminal, and characters of the first one."""


def _aligned(cells: Sequence[str], widths: Sequence[int], kept: Sequence[int], most: int | None) -> str:
    if len(cells) == 1:
        return cells[0] if most is None else shortened(cells[0], most)
    rest = [" " * (widths[one] - columns(cells[one])) + cells[one] for one in kept[1:]]
    name = shortened(cells[0], widths[0])
    return "  ".join([name + " " * (widths[0] - columns(name)), *rest]).rstrip()


# --- any kind of evidence ------------------------------------------------------------------------


def of_kind(kind: EvidenceKind) -> VerdictOf:
    """What a table of this kind of evidence says of a workload."""
    return lambda work: worst(work.judgements, kind)


def filled(table: Table, evidence: Iterable[TestEvidence], cells_of: CellsOf, verdict_of: VerdictOf) -> Table:
    """The table with a row for each workload that has cells, below its test."""
    for one in evidence:
        rows = [(work, cells) for work in one.workloads if (cells := cells_of(work)) is not None]
        if rows:
            table.heading(one.node_id)
        for work, cells in rows:
            table.judged_row(f"  {work.key.workload}", cells, verdict_of(work))
    return table


def filled_by_function(
    table: Table, evidence: Iterable[TestEvidence], cells_of: CellsOf, verdict_of: VerdictOf,
    not_reached: Sequence[str] = (),
) -> Table | None:  # fmt: skip
    """The same by test function, without those of which every workload passes; None if nothing is left."""
    functions = folded(evidence, cells_of, verdict_of)
    for one in functions[:MOST_FUNCTIONS]:
        if one.heading:
            table.heading(one.heading)
        for row in one.rows:
            table.judged_row(f"  {row.name}" if one.heading else row.name, row.cells, row.verdict)
        if one.more:
            table.note(f"  and {one.more} more")
    left = functions[MOST_FUNCTIONS:]
    if left:
        table.note(f"and {numbered(len(left), 'test function')} more; -v lists every workload")
    if not_reached:
        cells = [""] * (table.width - 2)
        table.judged_row(f"{numbered(len(not_reached), 'workload')} not reached", cells, Verdict.NOT_MEASURED)
    return table if functions or not_reached else None


# --- machine code --------------------------------------------------------------------------------


def static_table(evidence: Sequence[TestEvidence], *, short: bool = False) -> Table:
    """Registers, spilled bytes and occupancy by architecture; a ``short`` one counts what is unchanged on all."""
    table, cells_of = _machine_code(evidence)
    for one in evidence:
        if has_static_rows(one):
            table.heading(one.node_id)
        counted = [work for work in one.workloads if short and work.static and _is_unchanged(work)]
        if len(counted) <= LISTED:
            counted = []
        for work in one.workloads:
            cells = cells_of(work)
            if cells is not None and work not in counted:
                table.judged_row(f"  {work.key.workload}", cells, worst(work.judgements, "static"))
        if counted:
            table.note(f"  {len(counted)} workloads UNCHANGED")
        for name in dict.fromkeys(judgement.key.workload for judgement in one.unreached):
            table.judged_row(f"  {name}", ["-"] * (table.width - 2), Verdict.NOT_MEASURED)
    return table


def folded_static_table(evidence: Sequence[TestEvidence]) -> Table | None:
    """The same by test function, as ``filled_by_function`` says."""
    table, cells_of = _machine_code(evidence)
    return filled_by_function(table, evidence, cells_of, of_kind("static"), unreached(evidence))


def _machine_code(evidence: Iterable[TestEvidence]) -> tuple[Table, CellsOf]:
    """An empty table, and what a workload has in it."""
    archs = sorted({arch for one in evidence for work in one.workloads for arch in work.static}, key=arch_order)

    def cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
        return tuple(static_cell(work.static.get(arch)) for arch in archs) if work.static else None

    return Table("registers / spilled bytes / occupancy", *archs, "static verdict"), cells


def unreached(evidence: Iterable[TestEvidence]) -> list[str]:
    """Names of workloads that their tests stopped too early for."""
    return list(dict.fromkeys(str(judgement.key) for one in evidence for judgement in one.unreached))


def peaks_of(evidence: Iterable[TestEvidence]) -> dict[str, float]:
    """Ceilings of the GPU that were measured in this run; per second."""
    return {name: value for one in evidence for name, value in one.peaks.items()}


def has_static_rows(one: TestEvidence) -> bool:
    """True if a table of static evidence has rows for this test: for callables it has none."""
    return bool(one.unreached) or any(work.static for work in one.workloads)


def _is_unchanged(work: WorkloadEvidence) -> bool:
    """True if it is unchanged on every architecture that it was compiled for."""
    return {j.verdict for j in work.judgements if j.kind == "static"} == {Verdict.UNCHANGED}


def static_cell(record: StaticRecord | None) -> str:
    """Registers, spilled bytes and occupancy: ``40 / 0 / 75%``."""
    if record is None:
        return "-"
    profile = record.profile
    occupancy = "-" if record.occupancy is None else f"{record.occupancy.fraction:.0%}"
    spilled = "?" if profile.spill_bytes is None else profile.spill_bytes
    return f"{profile.registers} / {spilled} / {occupancy}"


# --- times ---------------------------------------------------------------------------------------


def time_table(evidence: Sequence[TestEvidence]) -> Table:
    """Time with its interval, rate, change against the baseline and verdict of every timed workload."""
    table, cells = _times(evidence)
    return filled(table, evidence, cells, of_kind("time"))


def folded_time_table(evidence: Sequence[TestEvidence]) -> Table | None:
    """The same by test function, as ``filled_by_function`` says."""
    table, cells = _times(evidence)
    return filled_by_function(table, evidence, cells, of_kind("time"))


def _times(evidence: Iterable[TestEvidence]) -> tuple[Table, CellsOf]:
    """An empty table, and what a workload has in it; in little room, what a verdict does not rest on goes first."""
    stepped = any(_step(work) for one in evidence for work in one.workloads)
    peaks = peaks_of(evidence)

    def cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
        if work.time_judgement is None and work.time is None:
            return None
        *found, against = time_cells(work, peaks)
        return (*found, *((_step(work) or "-",) if stepped else ()), against)

    steps, left_out = (("before -> after",), (4, 2, 3)) if stepped else ((), (2, 3))
    names = ("device time", "time", "95 %", "rate, of peak", *steps, "against baseline", "verdict")
    return Table(*names, left_out=left_out), cells


def _step(work: WorkloadEvidence) -> str:
    """``51.2 us -> 52.3 us``: what its ratio is of; empty without one."""
    figures = work.time_figures
    if figures is None or figures.before_ns is None or figures.after_ns is None:
        return ""
    return f"{duration(figures.before_ns)} -> {duration(figures.after_ns)}"


def time_cells(work: WorkloadEvidence, peaks: Mapping[str, float]) -> tuple[str, str, str, str]:
    """Time, its interval, its rates with their shares of the measured ``peaks``, and its ratio to the baseline."""
    judged = work.time_judgement
    against = ratio(judged.time) if judged and judged.time else ""
    if work.time is None:
        return "-", "-", "-", against
    time_ns = mean_time_ns(work.time.rounds)
    interval = "-"
    if work.interval_ns is not None:
        interval = f"±{(work.interval_ns[1] - work.interval_ns[0]) / 2 / time_ns * 100:.2f} %"
    rates = []
    if work.time.bytes is not None:
        rates.append(_of_peak(work.time.bytes / time_ns * 1e9, "B/s", peaks.get("copy_bandwidth")))
    if work.time.flops is not None:
        rates.append(_of_peak(work.time.flops / time_ns * 1e9, "FLOP/s", peaks.get("fma_throughput")))
    return duration(time_ns), interval, "  ".join(rates) or "-", against or "-"


def _of_peak(per_second: float, unit: str, peak: float | None) -> str:
    """``3.86 TB/s, 90 %``; of what tensor cores do, the throughput of multiply-adds is no peak."""
    share = per_second / peak if peak else 0.0
    return quantity(per_second, unit) + (f", {share:.0%}".replace("%", " %") if 0 < share <= MOST_OF_PEAK else "")
