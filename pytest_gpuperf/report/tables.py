"""The tables of a run: machine code, times, secondary metrics and counters of workloads.

A table lists every workload if it fits a screen or ``-v`` asks for it; else the workloads that do not simply pass, the
worst first, and equal ones of a test function as one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.counters import catalogue as c
from pytest_gpuperf.formatting import columns, duration, numbered, quantity, ratio, visible
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.time_record import Beside, mean_time_ns
from pytest_gpuperf.model.verdict import BESIDE, EvidenceKind, Verdict
from pytest_gpuperf.report.order import ELLIPSIS, MARKUP, function_of, named, rank_of, shortened, worst

LEAST_COLUMNS, LEAST_NAME = 2, 24
"""Columns of a table that are kept on any terminal, and characters of the first one."""
MOST_LINES = 16
"""Of a table that lists every workload."""
MOST_ROWS = 6
"""Of a table that folds them."""
MOST_OF_PEAK = 1.1
"""A larger share of a peak is none of it: what a warm L2 delivers, what tensor cores multiply."""


class Line(NamedTuple):
    """One line of a table and how it is marked (names of pytest's terminal writer)."""

    text: str
    markup: tuple[str, ...] = ()


class Table:
    """Columns as wide as their widest cell; the first is flush left, headings and notes run across.

    A column without a figure is left out.  Where the terminal is narrower, names in the first column are shortened, and
    then columns left out from the left.
    """

    def __init__(self, *columns: str, left_out: tuple[int, ...] = (), words: bool = False) -> None:
        """``left_out`` are the columns that go first where there is no room; ``words`` are in the last one."""
        self._columns = columns
        self._left_out = left_out
        self._words = words
        self._rows: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def row(self, *cells: str, markup: tuple[str, ...] = ()) -> None:
        """A cell for each column; one alone runs across."""
        self._rows.append((tuple(map(visible, cells)), markup))

    def __len__(self) -> int:
        return 1 + len(self._rows)

    def lines(self, width: int | None = None) -> list[Line]:
        """``width`` is that of the terminal, in columns; None for as much as it takes."""
        full = [cells for cells, _ in self._rows if len(cells) == len(self._columns)]
        widths = [max(columns(cell) for cell in column) for column in zip(self._columns, *full, strict=True)]
        if width is not None and self._words:
            widths[-1] = min(widths[-1], max(LEAST_NAME, width // 2))
        kept = [0, *(at for at in range(1, len(widths)) if any(cells[at] != "-" for cells in full))]
        if width is not None:
            while len(kept) > LEAST_COLUMNS and LEAST_NAME + sum(widths[one] + 2 for one in kept[1:]) > width:
                kept.remove(next((one for one in self._left_out if one in kept), kept[1]))
            widths[0] = min(widths[0], max(LEAST_NAME, width - sum(widths[one] + 2 for one in kept[1:])))
        rows = [(self._columns, ("bold",)), *self._rows]
        return [Line(self._aligned(cells, widths, kept, width), markup) for cells, markup in rows]

    def _aligned(self, cells: Sequence[str], widths: Sequence[int], kept: Sequence[int], most: int | None) -> str:
        if len(cells) == 1:
            return cells[0] if most is None else shortened(cells[0], most)
        shown = []
        for one in kept:
            words = self._words and one == kept[-1]
            cut = textwrap.shorten(cells[one], widths[one], placeholder=ELLIPSIS) if words else cells[one]
            cell = shortened(cut, widths[one])
            room = " " * (widths[one] - columns(cell))
            shown.append(cell + room if one == 0 or words else room + cell)
        return "  ".join(shown).rstrip()


class View(NamedTuple):
    """What a table says of a workload."""

    heads: tuple[str, ...]
    """Of all columns but the last, which is the verdict."""
    cells: Callable[[WorkloadEvidence], tuple[str, ...] | None]
    """Behind the workload's name; None for a workload that has no row."""
    kinds: tuple[EvidenceKind, ...]
    """Evidence that the verdict is on."""
    verdict: str = "verdict"
    left_out: tuple[int, ...] = ()
    """Columns that go first where there is no room."""


class _Row(NamedTuple):
    key: Key
    cells: tuple[str, ...]
    verdict: Verdict | None

    def into(self, table: Table, name: str) -> None:
        """The row ends with its verdict and is marked as that is."""
        shown, markup = (self.verdict.value, MARKUP[self.verdict]) if self.verdict else ("-", ())
        table.row(name, *self.cells, shown, markup=markup)


def table_of(view: View, evidence: Iterable[TestEvidence], *, whole: bool = False) -> Table | None:
    """The table; None where it would have no row.  ``whole``: every workload, however many."""
    works = [work for one in evidence for work in one.workloads]
    cells = ((work, view.cells(work)) for work in works)
    rows = [_Row(work.key, one, worst(work.judgements, *view.kinds)) for work, one in cells if one is not None]
    tests: dict[str, list[_Row]] = {}
    for row in rows:
        tests.setdefault(row.key.node_id, []).append(row)
    table = Table(*view.heads, view.verdict, left_out=view.left_out)
    if not whole and len(tests) + len(rows) >= MOST_LINES:
        _fold(table, rows)
    else:
        for test, those in tests.items():
            table.row(test, markup=("bold",))
            for row in those:
                row.into(table, f"  {row.key.workload}")
    return table if len(table) > 1 else None


def _fold(table: Table, rows: Iterable[_Row]) -> None:
    """Fill the table with what does not simply pass."""
    alike: dict[tuple[object, ...], list[_Row]] = {}
    for row in rows:
        if row.verdict is not None and not row.verdict.is_pass:
            alike.setdefault((function_of(row.key), *row[1:]), []).append(row)
    groups = sorted(alike.values(), key=lambda group: rank_of(group[0].verdict))
    for group in groups[:MOST_ROWS]:
        group[0].into(table, named([row.key for row in group]))
    if rest := sum(map(len, groups[MOST_ROWS:])):
        table.row(f"and {numbered(rest, 'workload')} more; -v lists every one")


# --- machine code --------------------------------------------------------------------------------


def static_view(evidence: Iterable[TestEvidence]) -> View:
    """Registers, spilled bytes and occupancy by architecture."""
    archs = sorted({arch for one in evidence for work in one.workloads for arch in work.static}, key=arch_order)

    def cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
        return tuple(static_cell(work.static.get(arch)) for arch in archs) if work.static else None

    return View(("registers / spilled bytes / occupancy", *archs), cells, ("static",), "static verdict")


def static_cell(record: StaticRecord | None) -> str:
    """Registers, spilled bytes and occupancy: ``40 / 0 / 75%``."""
    if record is None:
        return "-"
    profile = record.profile
    occupancy = "-" if record.occupancy is None else f"{record.occupancy.fraction:.0%}"
    spilled = "?" if profile.spill_bytes is None else profile.spill_bytes
    return f"{profile.registers} / {spilled} / {occupancy}"


# --- times ---------------------------------------------------------------------------------------


class TimeCells(NamedTuple):
    """The time of a workload in words; ``-`` for what it has not."""

    time: str = "-"
    interval: str = "-"
    rate: str = "-"
    """With its share of the measured peak."""
    step: str = "-"
    """``51.2 us -> 52.3 us``: the times of its ratio."""
    against: str = "-"
    """Its ratio to the baseline."""

    @property
    def whole(self) -> str:
        """``51.2 us → 52.3 us ±0.10 %``"""
        step = self.time if "-" in (self.step, self.time) else self.step.replace("->", "→")
        return step if self.interval == "-" else f"{step} {self.interval}"


def time_view(evidence: Sequence[TestEvidence]) -> View:
    """Time with its interval, rate, and change against the baseline of every timed workload."""
    peaks = {name: value for one in evidence for name, value in one.peaks.items()}

    def cells(work: WorkloadEvidence) -> TimeCells | None:
        return time_cells(work, peaks) if work.time_judgement or work.time else None

    heads = ("device time", "time", "95 %", "rate, of peak", "before -> after", "against baseline")
    return View(heads, cells, ("time",), left_out=(4, 2, 3))


def time_cells(work: WorkloadEvidence, peaks: Mapping[str, float]) -> TimeCells:
    """``peaks`` are the ceilings of the GPU that were measured in this run; per second."""
    figures = work.time_figures
    found = TimeCells()
    if figures is not None:
        found = found._replace(against=ratio(figures) or "-")
        if figures.before_ns is not None and figures.after_ns is not None:
            found = found._replace(step=f"{duration(figures.before_ns)} -> {duration(figures.after_ns)}")
    if work.time is None:
        return found
    time_ns = mean_time_ns(work.time.rounds)
    found = found._replace(time=duration(time_ns))
    if work.interval_ns is not None:
        found = found._replace(interval=f"±{(work.interval_ns[1] - work.interval_ns[0]) / 2 / time_ns * 100:.2f} %")
    declared = ((work.time.bytes, "B/s", "copy_bandwidth"), (work.time.flops, "FLOP/s", "fma_throughput"))
    rates = [
        _of_peak(amount / time_ns * 1e9, unit, peaks.get(peak)) for amount, unit, peak in declared if amount is not None
    ]
    return found._replace(rate="  ".join(rates) or "-")


def _of_peak(per_second: float, unit: str, peak: float | None) -> str:
    """``3.86 TB/s, 90 %``; of what tensor cores do, the throughput of multiply-adds is no peak."""
    share = per_second / peak if peak else 0.0
    return quantity(per_second, unit) + (f", {share:.0%}".replace("%", " %") if 0 < share <= MOST_OF_PEAK else "")


# --- secondary metrics and counters --------------------------------------------------------------


def _secondary_cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
    """Each figure, and behind it its change against the baseline."""
    found = work.beside or Beside()
    notes = {one.kind: change.note for one in work.judgements for change in one.changes if one.kind in BESIDE}
    figures = (
        None if found.memory_bytes is None else quantity(found.memory_bytes, "B"),
        None if found.accuracy is None else f"{found.accuracy:.3g}",
        None if found.host is None else duration(found.host.time_ns),
    )
    changes = [notes.get(kind, "").partition(" beside")[0] for kind in BESIDE]
    cells = (
        "-" if figure is None else f"{figure} ({change})" if change else figure
        for figure, change in zip(figures, changes, strict=True)
    )
    return tuple(cells) if any(figures) else None


SECONDARY = View(("secondary metrics", "device memory", "error", "host time"), _secondary_cells, tuple(BESIDE))
"""In the order of ``BESIDE``."""

_COUNTERS = (
    ("instructions", c.INSTRUCTIONS, ""), ("load sectors", c.LOAD_SECTORS, ""), ("store sectors", c.STORE_SECTORS, ""),
    ("L2 sectors", c.L2_SECTORS, ""), ("DRAM read", c.DRAM_READ, "B"), ("DRAM written", c.DRAM_WRITE, "B"),
)  # fmt: skip
"""Those that most sets have."""


def _counter_cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
    figures = [(work.counters.get(metric.name), unit) for _, metric, unit in _COUNTERS]
    row = tuple("-" if value is None else quantity(value, unit) for value, unit in figures)
    return row if work.counters else None


COUNTERS = View(("counters of one run", *(head for head, _, _ in _COUNTERS)), _counter_cells, ("counters",))
