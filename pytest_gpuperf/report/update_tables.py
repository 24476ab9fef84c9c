"""What an update wrote and what it refused, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.formatting import duration, first_of, numbered, percent
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import StaticRecord, TimeRecord
from pytest_gpuperf.model.result import Recorded
from pytest_gpuperf.model.timed_round import mean_time_ns
from pytest_gpuperf.report.folding import MOST_LINES, function_of
from pytest_gpuperf.report.tables import Table, static_cell

MOST_CHANGES = 3
"""Figures that an update names of one workload."""


def update_table(recorded: Sequence[Recorded]) -> Table:
    """Old and new figures of every baseline that an update wrote, and what it refused."""
    table = Table("baseline", "target", "before", "after", "change")
    for one in recorded:
        if one.refused:
            table.row(str(one.key), one.target, _figure(one.before), "refused", one.refused, markup=("yellow",))
        else:
            table.row(str(one.key), one.target, _figure(one.before), _figure(one.after), _change(one))
    return table


def folded_update_table(recorded: Sequence[Recorded]) -> Table:
    """The same by test function: how many baselines of which targets, and what changed of the first one."""
    functions: dict[tuple[str, str, str], list[Recorded]] = {}
    for one in recorded:
        change = (one.refused and "refused") or ("new" if one.before is None else "changed")
        functions.setdefault((function_of(one.key), change, one.refused), []).append(one)
    table = Table("baselines", "targets", "number", "change")
    rows = sorted(functions.items(), key=lambda item: ("refused", "changed", "new").index(item[0][1]))
    for (name, change, refused), those in rows[:MOST_LINES]:
        targets = ", ".join(dict.fromkeys(one.target for one in those))
        said = refused or (_first_change(those) if change == "changed" else change)
        table.row(name, targets, str(len(those)), said, markup=("yellow",) if refused else ())
    if len(rows) > MOST_LINES:
        table.note(f"and {numbered(len(rows) - MOST_LINES, 'test function')} more; -v lists every baseline")
    return table


def _first_change(recorded: Sequence[Recorded]) -> str:
    first, *others = dict.fromkeys(map(_change, recorded))
    return f"{first} (the first; they differ)" if others else first


def _change(one: Recorded) -> str:
    if isinstance(one.before, TimeRecord) and isinstance(one.after, TimeRecord):
        if one.after.rounds == one.before.rounds:
            return _beside_words(one.before.beside or Beside(), one.after.beside or Beside()) or "counters"
        return percent(mean_time_ns(one.after.rounds) / mean_time_ns(one.before.rounds) - 1)
    if isinstance(one.before, StaticRecord) and isinstance(one.after, StaticRecord):
        differ = compare_static(one.key, one.target, one.before, one.after).changes
        changes = [f"{change.what} {change.figures}" for change in differ]
        return first_of(changes, MOST_CHANGES, ",") or "the machine code, and no figure of it"
    return "new"


def _beside_words(before: Beside, after: Beside) -> str:
    """``memory 4096 -> 8192 bytes, host time``: figures beside the time that were recorded."""
    named = [("error", before.accuracy, after.accuracy), ("host time", before.host, after.host)]
    words = [name for name, old, new in named if old != new]
    if before.memory_bytes != after.memory_bytes:
        old = "" if before.memory_bytes is None else f"{before.memory_bytes} -> "
        words.insert(0, f"device memory {old}{after.memory_bytes} bytes")
    return ", ".join(words)


def _figure(record: TimeRecord | StaticRecord | None) -> str:
    if record is None:
        return "-"
    return duration(mean_time_ns(record.rounds)) if isinstance(record, TimeRecord) else static_cell(record)
