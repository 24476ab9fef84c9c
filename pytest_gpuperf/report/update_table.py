"""The table of what an update wrote and refused."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.formatting import duration, first_of, numbered, percent
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import Recorded
from pytest_gpuperf.model.time_record import Beside, TimeRecord, mean_time_ns
from pytest_gpuperf.report.order import function_of, named
from pytest_gpuperf.report.tables import MOST_LINES, Table, static_cell

MOST_CHANGES = 3
"""Figures that an update names of one workload."""


def update_table(recorded: Sequence[Recorded], *, whole: bool = False) -> Table:
    """Old and new figures of every baseline that an update wrote, and what it refused, which comes first.

    Of many, equal ones of a test function are one row.
    """
    folded = not whole and len(recorded) >= MOST_LINES
    alike: dict[tuple[str, ...], list[Recorded]] = {}
    for one in recorded:
        after, change = ("refused", one.refused) if one.refused else (_figure(one.after), _change(one))
        name = function_of(one.key) if folded else f"{one.key} {one.target}"
        alike.setdefault((name, _figure(one.before), after, change), []).append(one)
    table = Table("baseline", "target", "before", "after", "change", left_out=(2, 3), words=True)
    groups = sorted(alike.items(), key=lambda item: (not item[1][0].refused, item[1][0].before is None))
    most = MOST_LINES if folded else len(groups)
    for (_, before, after, change), those in groups[:most]:
        targets = ", ".join(dict.fromkeys(one.target for one in those))
        markup = ("yellow",) if those[0].refused else ()
        table.row(named([one.key for one in those]), targets, before, after, change, markup=markup)
    if rest := sum(len(those) for _, those in groups[most:]):
        table.row(f"and {numbered(rest, 'baseline')} more; -v lists every one")
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
