"""Findings of a run, in the order in which a reader asks, for reports that are files.

``markdown`` and ``page`` write it down.  Figures are those of the terminal, in the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.model.evidence import Record
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.process.repository import Commit
from pytest_gpuperf.report.closing import verdicts_of
from pytest_gpuperf.report.failures import signature
from pytest_gpuperf.report.message import described, workload_lines
from pytest_gpuperf.report.order import NEEDS_A_WORD, RANK, rank_of, worst
from pytest_gpuperf.report.remarks import hints_of
from pytest_gpuperf.report.tables import TimeCells, static_cell, time_cells

SCHEMA = 4


class RunReport(Record, frozen=True):
    """A run as JSON: what was asked, how it ended, and all evidence with its verdicts.

    ``docs/reference/report.schema.json`` is its JSON schema; ``gpuperf report`` makes the other forms of it.
    """

    schema: int
    date: str
    """UTC, ISO 8601, seconds."""
    plugin: str
    task: str
    """Task of the run, as the terminal's header says it."""
    exit_status: int
    verdicts: dict[str, int]
    """Workloads by their worst verdict."""
    problems: tuple[str, ...]
    """Reasons why the run as a whole is not to be trusted, or did not do what it was asked to."""
    warnings: tuple[str, ...]
    tests: tuple[TestEvidence, ...]
    commit: str = ""
    """Of the repository around pytest's root, in full; empty outside of one."""
    dirty: bool = False
    """Tracked files differ from it."""
    branch: str = ""
    machines: tuple[str, ...] = ()
    """GPUs and timers that the times come from."""
    toolchains: tuple[str, ...] = ()
    """Compilers of the machine code: ``nvrtc 13.0.88``."""


class Row(NamedTuple):
    """One workload."""

    evidence: WorkloadEvidence
    verdict: Verdict | None
    """The one of all its evidence that a reader has to know first; None for what nothing judged."""
    time: TimeCells
    machine_code: tuple[str, ...]
    """Registers, spilled bytes and occupancy, by architecture."""
    words: tuple[str, ...]
    """Remarks of the terminal on it, line by line; empty if there are none."""
    alike: str
    """What it has in common with others whose words differ in names and figures alone; empty without words."""

    @property
    def name(self) -> str:
        """``copy of test_a.py::test_copy``"""
        return f"{self.evidence.key.workload} of {self.evidence.key.node_id}"

    @property
    def ratio(self) -> float | None:
        """Of its time to that of the baseline; None without one."""
        figures = self.evidence.time_figures
        return figures.ratio if figures is not None else None

    @property
    def passes(self) -> bool:
        """True if there is nothing to know of it, or nothing judged it."""
        return not self.words and (self.verdict is None or self.verdict.is_pass)


class Document(NamedTuple):
    """A run."""

    report: RunReport
    rows: tuple[Row, ...]
    """First those that did not simply pass, the worst before the others; the rest in the order of the tests."""

    @property
    def timed(self) -> bool:
        """True if any workload has a time, or a verdict on one."""
        return any(row.time != TimeCells() or row.evidence.time_figures is not None for row in self.rows)

    @property
    def headline(self) -> str:
        """``1 SLOWER, 2 NEW, 188 UNCHANGED``; with the exit status of a run that failed without a regression."""
        report = self.report
        title = ", ".join(f"{count} {name}" for name, count in report.verdicts.items()) or "nothing was judged"
        if not report.exit_status or any(Verdict(name).is_regression for name in report.verdicts):
            return title
        return f"{title}, and the run failed (exit status {report.exit_status})"


def document_of(
    evidence: Sequence[TestEvidence], *, date: str, plugin: str, task: str, exit_status: int,
    problems: Iterable[str], warnings: Iterable[str], machines: Iterable[str], commit: Commit = Commit(),  # noqa: B008
    branch: str = "",
) -> Document:  # fmt: skip
    """Put a run's evidence in order."""
    verdicts = Counter(verdict for verdict in verdicts_of(evidence).values() if verdict is not None)
    toolchains = dict.fromkeys(work.toolchain for one in evidence for work in one.workloads if work.toolchain)
    return document_from(RunReport(
        schema=SCHEMA, date=date, plugin=plugin, task=task, exit_status=exit_status,
        verdicts={verdict.value: verdicts[verdict] for verdict in RANK if verdict in verdicts},
        problems=tuple(problems), warnings=tuple(warnings),
        tests=tuple(msgspec.structs.replace(one, cubins={}) for one in evidence),
        commit=commit.name, dirty=commit.dirty, branch=branch, machines=tuple(machines), toolchains=tuple(toolchains),
    ))  # fmt: skip


def document_from(report: RunReport) -> Document:
    """The run that a report was written of."""
    rows = [_row(one, work) for one in report.tests for work in one.workloads]
    rows.sort(key=lambda row: (row.passes, 0 if row.passes else rank_of(row.verdict)))
    return Document(report, tuple(rows))


def _row(one: TestEvidence, work: WorkloadEvidence) -> Row:
    archs = sorted(work.static, key=arch_order)
    code = tuple(f"{arch} {static_cell(work.static[arch])}" for arch in archs)
    words = _words(work)
    telling = [one for one in work.judgements if one.verdict in NEEDS_A_WORD] or work.judgements
    alike = signature(telling, {work.key: work.advice}) if words else ""
    return Row(work, worst(work.judgements), time_cells(work, one.peaks), code, tuple(words), alike)


def _words(work: WorkloadEvidence) -> list[str]:
    """A regression with its causes, as the failure shows it; other verdicts as the summary does."""
    red = [judgement for judgement in work.judgements if judgement.verdict.is_regression]
    others = [judgement for judgement in work.judgements if judgement not in red and judgement.verdict in NEEDS_A_WORD]
    return [*(workload_lines(red, work.advice) if red else []), *described(others), *hints_of(work)]
