"""The tables of a run: machine code, times, secondary metrics and counters of workloads, and what an update wrote.

A table lists every workload if it fits a screen or ``-v`` asks for it; else the workloads that do not simply pass, by
test function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.counters import catalogue as c
from pytest_gpuperf.formatting import duration, first_of, numbered, percent, quantity, ratio
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.time_record import Beside, TimeRecord, mean_time_ns
from pytest_gpuperf.model.verdict import BESIDE, EvidenceKind, Verdict
from pytest_gpuperf.report.folding import ELLIPSIS, counted, function_of
from pytest_gpuperf.report.text_table import Table
from pytest_gpuperf.report.verdict_order import rank_of, worst

MOST_LINES = 16
"""Of a table that lists every workload."""
MOST_FUNCTIONS = 6
"""Test functions that a shorter one lists."""
MOST_ROWS = 3
"""Kinds of workloads that it lists of one."""
MOST_OF_PEAK = 1.1
"""A larger share of a peak is none of it: what a warm L2 delivers, what tensor cores multiply."""
MOST_CHANGES = 3
"""Figures that an update names of one workload."""


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

    def verdict_of(self, work: WorkloadEvidence) -> Verdict | None:
        return worst(work.judgements, *self.kinds)

    def empty(self) -> Table:
        return Table(*self.heads, self.verdict, left_out=self.left_out)


_Row = tuple[WorkloadEvidence, tuple[str, ...]]


def table_of(view: View, evidence: Iterable[TestEvidence], *, whole: bool = False) -> Table | None:
    """The table; None where it would have no row.  ``whole``: every workload, however many."""
    tests: dict[str, list[_Row]] = {}
    for one in evidence:
        rows = [(work, cells) for work in one.workloads if (cells := view.cells(work)) is not None]
        if rows:
            tests.setdefault(one.node_id, []).extend(rows)
    table = view.empty()
    if not whole and len(tests) + sum(map(len, tests.values())) >= MOST_LINES:
        _fold(view, table, [row for rows in tests.values() for row in rows])
    else:
        for name, rows in tests.items():
            table.heading(name)
            for work, cells in rows:
                table.judged_row(f"  {work.key.workload}", cells, view.verdict_of(work))
    return table if len(table) > 1 else None


def _fold(view: View, table: Table, rows: Iterable[_Row]) -> None:
    """Fill the table with test functions of which some workloads do not simply pass, the worst first."""
    functions: dict[str, list[_Row]] = {}
    for row in rows:
        functions.setdefault(function_of(row[0].key), []).append(row)
    ranks = {name: min(rank_of(view.verdict_of(work)) for work, _ in rows) for name, rows in functions.items()}
    listed = sorted((name for name in functions if not all(_passes(view, row) for row in functions[name])),
                    key=ranks.__getitem__)  # fmt: skip
    for name in listed[:MOST_FUNCTIONS]:
        _fold_function(view, table, name, functions[name])
    if len(listed) > MOST_FUNCTIONS:
        table.note(f"and {numbered(len(listed) - MOST_FUNCTIONS, 'test function')} more; -v lists every workload")


def _passes(view: View, row: _Row) -> bool:
    verdict = view.verdict_of(row[0])
    return verdict is None or verdict.is_pass


def _fold_function(view: View, table: Table, name: str, rows: Sequence[_Row]) -> None:
    """Equal rows as one, below a heading that counts the verdicts; one line where all rows are equal."""
    name += f"[{ELLIPSIS}]" if any("[" in work.key.test for work, _ in rows) else ""
    alike: dict[tuple[Verdict | None, tuple[str, ...]], list[str]] = {}
    for work, cells in sorted(rows, key=lambda row: rank_of(view.verdict_of(row[0]))):
        if not _passes(view, (work, cells)):
            alike.setdefault((view.verdict_of(work), cells), []).append(work.key.workload)
    number = numbered(len(rows), "workload")
    if len(alike) == 1 and sum(map(len, alike.values())) == len(rows):
        ((verdict, cells),) = alike
        table.judged_row(f"{name}  {number if len(rows) > 1 else rows[0][0].key.workload}", cells, verdict)
        return
    table.heading(f"{name}  {number}: {counted(view.verdict_of(work) for work, _ in rows)}")
    for (verdict, cells), names in list(alike.items())[:MOST_ROWS]:
        more = f" and {len(names) - 1} alike" if len(names) > 1 else ""
        table.judged_row(f"  {names[0]}{more}", cells, verdict)
    if rest := sum(map(len, list(alike.values())[MOST_ROWS:])):
        table.note(f"  and {rest} more")


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


def time_view(evidence: Sequence[TestEvidence]) -> View:
    """Time with its interval, rate, and change against the baseline of every timed workload."""
    stepped = any(_step(work) for one in evidence for work in one.workloads)
    peaks = peaks_of(evidence)

    def cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
        if work.time_judgement is None and work.time is None:
            return None
        *found, against = time_cells(work, peaks)
        return (*found, *((_step(work) or "-",) if stepped else ()), against)

    steps, left_out = (("before -> after",), (4, 2, 3)) if stepped else ((), (2, 3))
    heads = ("device time", "time", "95 %", "rate, of peak", *steps, "against baseline")
    return View(heads, cells, ("time",), left_out=left_out)


def peaks_of(evidence: Iterable[TestEvidence]) -> dict[str, float]:
    """Ceilings of the GPU that were measured in this run; per second."""
    return {name: value for one in evidence for name, value in one.peaks.items()}


def _step(work: WorkloadEvidence) -> str:
    """``51.2 us -> 52.3 us``: the times of its ratio; empty without one."""
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


SECONDARY = View(("secondary metrics", "device memory", "error", "host time"), _secondary_cells, BESIDE)
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


# --- updates -------------------------------------------------------------------------------------


def update_table(recorded: Sequence[Recorded], *, whole: bool = False) -> Table:
    """Old and new figures of every baseline that an update wrote, and what it refused; of many, by test function."""
    if not whole and len(recorded) >= MOST_LINES:
        return _folded_update(recorded)
    table = Table("baseline", "target", "before", "after", "change")
    for one in recorded:
        after, change = ("refused", one.refused) if one.refused else (_figure(one.after), _change(one))
        markup = ("yellow",) if one.refused else ()
        table.row(str(one.key), one.target, _figure(one.before), after, change, markup=markup)
    return table


def _folded_update(recorded: Sequence[Recorded]) -> Table:
    """How many baselines of which targets, and what changed of the first one."""
    functions: dict[tuple[str, str], list[Recorded]] = {}
    for one in recorded:
        change = one.refused or ("new" if one.before is None else "changed")
        functions.setdefault((function_of(one.key), change), []).append(one)
    order = Counter({"changed": 1, "new": 2})  # what was refused comes first
    table = Table("baselines", "targets", "number", "change")
    rows = sorted(functions.items(), key=lambda item: order[item[0][1]])
    for (name, change), those in rows[:MOST_LINES]:
        changes = list(dict.fromkeys(map(_change, those))) if change == "changed" else [change]
        more = " (the first; they differ)" if len(changes) > 1 else ""
        targets = ", ".join(dict.fromkeys(one.target for one in those))
        markup = ("yellow",) if those[0].refused else ()
        table.row(name, targets, str(len(those)), f"{changes[0]}{more}", markup=markup)
    if len(rows) > MOST_LINES:
        table.note(f"and {numbered(len(rows) - MOST_LINES, 'test function')} more; -v lists every baseline")
    return table


def _change(one: Recorded) -> str:
    if isinstance(one.before, TimeRecord) and isinstance(one.after, TimeRecord):
        if one.after.rounds != one.before.rounds:
            return percent(mean_time_ns(one.after.rounds) / mean_time_ns(one.before.rounds) - 1)
        before, after = one.before.beside or Beside(), one.after.beside or Beside()
        figures = (("device memory", before.memory_bytes, after.memory_bytes), ("error", before.accuracy,
                   after.accuracy), ("host time", before.host, after.host))  # fmt: skip
        return ", ".join(name for name, old, new in figures if old != new) or "counters"
    if isinstance(one.before, StaticRecord) and isinstance(one.after, StaticRecord):
        differ = compare_static(one.key, one.target, one.before, one.after).changes
        changes = [f"{change.what} {change.figures}" for change in differ]
        return first_of(changes, MOST_CHANGES, ",") or "the machine code, and no figure of it"
    return "new"


def _figure(record: TimeRecord | StaticRecord | None) -> str:
    if record is None:
        return "-"
    return duration(mean_time_ns(record.rounds)) if isinstance(record, TimeRecord) else static_cell(record)
