"""Counters in the terminal: a table where nothing else was measured, and remarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_gpuperf.counters import catalogue as c
from pytest_gpuperf.formatting import numbered, quantity
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.remarks import with_flags
from pytest_gpuperf.report.screen import Screen
from pytest_gpuperf.report.tables import Table, filled, filled_by_function, of_kind

COLUMNS = (
    ("instructions", c.INSTRUCTIONS, ""), ("load sectors", c.LOAD_SECTORS, ""), ("store sectors", c.STORE_SECTORS, ""),
    ("L2 sectors", c.L2_SECTORS, ""), ("DRAM read", c.DRAM_READ, "B"), ("DRAM written", c.DRAM_WRITE, "B"),
)  # fmt: skip


def counter_table(evidence: Sequence[TestEvidence]) -> Table:
    """The counters that most sets have, of every workload that has any."""
    return filled(_columns(), evidence, _cells, of_kind("counters"))


def folded_counter_table(evidence: Sequence[TestEvidence]) -> Table | None:
    """The same by test function, as ``filled_by_function`` says."""
    return filled_by_function(_columns(), evidence, _cells, of_kind("counters"))


def _columns() -> Table:
    return Table("counters of one run", *(head for head, _, _ in COLUMNS), "verdict")


def _cells(work: WorkloadEvidence) -> tuple[str, ...] | None:
    figures = [(work.counters.get(metric.name), unit) for _, metric, unit in COLUMNS]
    row = tuple("-" if value is None else quantity(value, unit) for value, unit in figures)
    return row if work.counters else None


def counter_words(reporter: Screen, evidence: Iterable[TestEvidence], notes: Sequence[str], options: Options) -> None:
    """Writes how many workloads passed by their counters, which have none and why, and the notes of collecting."""
    judged = [judgement for one in evidence for judgement in one.judgements if judgement.kind == "counters"]
    verdicts = Counter(judgement.verdict for judgement in judged)
    if judged:
        reporter.write_line("counters: " + ", ".join(f"{n} {verdict.value}" for verdict, n in verdicts.items()))
    if verdicts[Verdict.NEW] and not options.update:
        those = numbered(verdicts[Verdict.NEW], "workload", "has", "have")
        command = with_flags("pytest --update-baselines=new --gpuperf-ncu", options.repeated)
        reporter.write_line(
            f"{those} no counters on record: record them with {command} and commit the files", yellow=True
        )
    reasons = Counter(judgement.reason for judgement in judged if judgement.verdict is Verdict.NOT_MEASURED)
    for reason, count in reasons.items():
        those = numbered(count, "workload", "has", "have")
        reporter.write_line(f"{those} no counters: {reason}", yellow=True)
    passing = Counter(note for one in judged if one.verdict is Verdict.UNCHANGED for note in one.notes)
    for note, count in passing.items():
        reporter.write_line(f"counters of {numbered(count, 'workload')}: {note}")
    for note in notes:
        reporter.write_line(f"counters: {note}", yellow=True)
