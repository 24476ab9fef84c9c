"""Findings of a run, in the order in which a reader asks, for reports that are files.

``markdown`` and ``page`` write it down.  Figures are those of the terminal, in the same words.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.formatting import describe, duration
from pytest_gpuperf.model.advice import CodeDifference
from pytest_gpuperf.model.evidence import Record
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import BESIDE, EvidenceKind, TimeFigures, Verdict
from pytest_gpuperf.process.repository import Commit
from pytest_gpuperf.report.closing import verdicts_of
from pytest_gpuperf.report.message import workload_lines
from pytest_gpuperf.report.red_groups import signature
from pytest_gpuperf.report.remarks import hints_of, obstacle_of, shared_obstacles
from pytest_gpuperf.report.tables import static_cell, time_cells
from pytest_gpuperf.report.verdict_order import NEEDS_A_WORD, RANK, rank_of, worst

SCHEMA = 4
KINDS: tuple[EvidenceKind, ...] = ("time", "static", "counters", *BESIDE)


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
    code: tuple[CodeDifference, ...] = ()
    """Machine code of what failed the gate, beside that on record."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One workload."""

    test: str
    """Node id."""
    workload: str
    verdict: Verdict | None
    """The one of all its evidence that a reader has to know first; None for what nothing judged."""
    by_kind: dict[EvidenceKind, Verdict]
    """The same for each kind of evidence."""
    time: str
    interval: str
    rate: str
    against: str
    """Ratio to the baseline, with its interval."""
    figures: TimeFigures | None
    """Figures behind the verdict on time."""
    machine_code: tuple[str, ...]
    """Registers, spilled bytes and occupancy, by architecture."""
    evidence: WorkloadEvidence
    before: str
    """Time on record, or of what it was paired with; empty without."""
    alike: str
    """What it has in common with others whose words differ in names and figures alone; empty without words."""
    words: tuple[str, ...]
    """Remarks of the terminal on it, line by line; empty if there are none."""

    @property
    def passes(self) -> bool:
        """True if there is nothing to know of it, or nothing judged it."""
        return not self.words and (self.verdict is None or self.verdict.is_pass)


@dataclasses.dataclass(frozen=True)
class Document:
    """A run."""

    report: RunReport
    machines: tuple[str, ...]
    """GPUs and timers that the times come from."""
    rows: tuple[Row, ...]
    """First those that did not simply pass, the worst before the others; the rest in the order of the tests."""

    @property
    def timed(self) -> bool:
        """True if any workload has a time, or a verdict on one."""
        return any(row.figures is not None or row.time != "-" for row in self.rows)

    @property
    def title(self) -> str:
        """``1 SLOWER, 2 NEW, 188 UNCHANGED``"""
        counts = [f"{count} {name}" for name, count in self.report.verdicts.items()]
        return ", ".join(counts) or "nothing was judged"

    @property
    def headline(self) -> str:
        """The title; with the exit status of a run that failed, where no verdict in it is one of a regression."""
        if not self.report.exit_status or any(Verdict(name).is_regression for name in self.report.verdicts):
            return self.title
        return f"{self.title}, and the run failed (exit status {self.report.exit_status})"


def document_of(
    evidence: Sequence[TestEvidence], *, date: str, plugin: str, task: str, exit_status: int,
    problems: Iterable[str], warnings: Iterable[str], machines: Iterable[str], commit: Commit = Commit(),  # noqa: B008
    branch: str = "", code: Sequence[CodeDifference] = (),
) -> Document:  # fmt: skip
    """Put a run's evidence in order."""
    judged = [judgement for one in evidence for judgement in (*one.judgements, *one.unreached)]
    verdicts = Counter(verdict for verdict in verdicts_of(evidence).values() if verdict is not None)
    toolchains = dict.fromkeys(work.toolchain for one in evidence for work in one.workloads if work.toolchain)
    return document_from(RunReport(
        schema=SCHEMA, date=date, plugin=plugin, task=task, exit_status=exit_status,
        verdicts={verdict.value: verdicts[verdict] for verdict in RANK if verdict in verdicts},
        problems=tuple(problems), warnings=(*warnings, *shared_obstacles(judged).values()),
        tests=tuple(msgspec.structs.replace(one, cubins={}) for one in evidence),
        commit=commit.name, dirty=commit.dirty, branch=branch, machines=tuple(machines), toolchains=tuple(toolchains),
        code=tuple(code),
    ))  # fmt: skip


def document_from(report: RunReport) -> Document:
    """The run that a report was written of."""
    judged = [judgement for one in report.tests for judgement in (*one.judgements, *one.unreached)]
    shared = set(shared_obstacles(judged))
    rows = [row for one in report.tests for row in _rows(one, shared)]
    rows.sort(key=lambda row: (row.passes, 0 if row.passes else rank_of(row.verdict)))
    return Document(report, report.machines, tuple(rows))


def _rows(one: TestEvidence, shared: set[tuple[str, str]]) -> list[Row]:
    """Rows of a test's workloads, and of those that it stopped too early for."""
    unreached = [
        WorkloadEvidence(key=key, judgements=tuple(j for j in one.unreached if j.key == key))
        for key in dict.fromkeys(judgement.key for judgement in one.unreached)
    ]
    return [_row(one, work, shared) for work in (*one.workloads, *unreached)]


def _row(one: TestEvidence, work: WorkloadEvidence, shared: set[tuple[str, str]]) -> Row:
    time, interval, rate, against = time_cells(work, one.peaks)
    by_kind = {kind: verdict for kind in KINDS if (verdict := worst(work.judgements, kind)) is not None}
    code = [
        f"{arch} {static_cell(record)}"
        for arch, record in sorted(work.static.items(), key=lambda one: arch_order(one[0]))
    ]
    figures = work.time_figures
    words = tuple(_words(work, shared))
    return Row(
        test=work.key.node_id, workload=work.key.workload,
        verdict=min(by_kind.values(), key=rank_of, default=None), by_kind=by_kind,
        time=time, interval=interval, rate=rate, against=against,
        figures=figures,
        before="" if figures is None or figures.before_ns is None else duration(figures.before_ns),
        evidence=work, machine_code=tuple(code), words=words, alike=_alike(work) if words else "",
    )  # fmt: skip


def _alike(work: WorkloadEvidence) -> str:
    told = [one for one in work.judgements if one.verdict in NEEDS_A_WORD] or list(work.judgements)
    return signature(told, {work.key: work.advice})


def _words(work: WorkloadEvidence, shared: set[tuple[str, str]]) -> list[str]:
    """A regression with its causes, as the failure shows it; other verdicts as the summary does."""
    red = [judgement for judgement in work.judgements if judgement.verdict.is_regression]
    lines = workload_lines(red, work.advice) if red else []
    for judgement in work.judgements:
        if judgement not in red and judgement.verdict in NEEDS_A_WORD and obstacle_of(judgement) not in shared:
            lines += describe(judgement)
    return [*lines, *hints_of(work)]
