"""Findings of a run, in the order in which a reader asks, for reports that are files.

``markdown`` and ``page`` write it down.  Figures are those of the terminal, in the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import duration, quantity, ratio
from pytest_gpuperf.model.evidence import Record, StaticRecord, schema_of
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.time_record import mean_time_ns
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.report.failures import signature
from pytest_gpuperf.report.message import described, hints_of, workload_lines
from pytest_gpuperf.report.order import RANK, rank_of, worst

SCHEMA = 8
MOST_OF_PEAK = 1.1
"""A larger share of a peak is not shown: a warm L2 or tensor cores exceed the measured peak."""


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
    """Workloads by their worst verdict, as ``document_of`` counts them."""
    problems: tuple[str, ...]
    """Reasons why the run as a whole is not to be trusted, or is incomplete."""
    warnings: tuple[str, ...]
    tests: tuple[TestEvidence, ...]
    commit: str = ""
    """Full commit id of the repository around pytest's root; empty outside of one."""
    dirty: bool = False
    """Tracked files differ from it."""
    branch: str = ""
    machines: tuple[str, ...] = ()
    """GPUs and timers that the times come from."""
    toolchains: tuple[str, ...] = ()
    """Compilers of the machine code: ``nvrtc 13.0.88``."""
    baselines: str = ""
    """Folder of the baselines, as seen from pytest's root."""


class TimeCells(NamedTuple):
    """The time of a workload as text, the most important first; ``-`` for a missing figure."""

    time: str = "-"
    """``51.2 us -> 52.3 us ±0.10 %``: that of the baseline too, where it is known."""
    against: str = "-"
    """Its ratio to the baseline."""
    rate: str = "-"
    """With its share of the measured peak."""


class Row(NamedTuple):
    """One workload."""

    evidence: WorkloadEvidence
    verdict: Verdict | None
    """The one of all its evidence that a reader has to know first; None for what nothing judged."""
    time: TimeCells
    machine_code: tuple[str, ...]
    """Registers, spilled bytes and occupancy, by architecture."""
    lines: tuple[str, ...]
    """Remarks of the terminal on it, line by line; empty if there are none."""
    alike: str
    """Key of rows whose lines differ only in names and figures; empty without lines."""

    @property
    def name(self) -> str:
        """``copy of test_a.py::test_copy``"""
        return f"{self.evidence.key.workload} of {self.evidence.key.node_id}"

    @property
    def ratio(self) -> float | None:
        """Ratio of its time to that of the baseline; None without one."""
        figures = self.evidence.time_figures
        return figures.ratio if figures is not None else None

    @property
    def passes(self) -> bool:
        """True if there is nothing to know of it, or nothing judged it."""
        return not self.lines and (self.verdict is None or self.verdict.is_pass)


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


def document_of(report: RunReport) -> Document:
    """Put a run's evidence in order; its report gets the counts of verdicts and the compilers, and loses cubins."""
    rows = rows_of(report.tests)
    verdicts = Counter(row.verdict for row in rows)
    toolchains = dict.fromkeys(work.toolchain for one in report.tests for work in one.workloads if work.toolchain)
    report = msgspec.structs.replace(
        report, tests=tuple(msgspec.structs.replace(one, cubins={}) for one in report.tests),
        verdicts={verdict.value: verdicts[verdict] for verdict in RANK if verdict in verdicts},
        toolchains=tuple(toolchains),
    )  # fmt: skip
    return Document(report, tuple(rows))


def read_report(
    path: Path, remedy: str = "write it anew with pytest --gpuperf --gpuperf-report=FILE.json"
) -> RunReport:
    """The report in a file.  Raises ``GpuperfError`` with the ``remedy`` if it is damaged or of another version."""
    try:
        content = path.read_bytes()
        schema = schema_of(content)
        if schema != SCHEMA:
            raise GpuperfError(f"{path} has schema {schema}, this version reads {SCHEMA}: {remedy}")
        return msgspec.json.decode(content, type=RunReport)
    except OSError as problem:
        raise GpuperfError(f"{path} cannot be read ({problem}): {remedy}") from problem
    except ValueError as problem:  # of msgspec, or no UTF-8
        raise GpuperfError(f"{path} is no report of a run ({problem}): {remedy}") from problem


def rows_of(tests: Iterable[TestEvidence]) -> list[Row]:
    """First workloads that did not simply pass, the worst before the others; the rest in the order of the tests."""
    rows = [_row(one, work) for one in tests for work in one.workloads]
    rows.sort(key=lambda row: (row.passes, 0 if row.passes else rank_of(row.verdict)))
    return rows


def _row(one: TestEvidence, work: WorkloadEvidence) -> Row:
    """Its words are a regression with its causes, as the failure shows it, then other verdicts and likely causes."""
    archs = sorted(work.static, key=arch_order)
    code = tuple(f"{arch} {static_cell(work.static[arch])}" for arch in archs)
    explained = [
        one for one in work.judgements if one.renamed or not (one.verdict.is_pass or one.verdict is Verdict.NEW)
    ]
    red = [judged for judged in explained if judged.verdict.is_regression]
    others = [judged for judged in explained if judged not in red]
    lines = [*(workload_lines(red, work.advice) if red else []), *described(others), *hints_of(work)]
    alike = signature(explained or work.judgements, {work.key: work.advice}) if lines else ""
    return Row(work, worst(work.judgements), time_cells(work, one.peaks), code, tuple(lines), alike)


def static_cell(record: StaticRecord | None) -> str:
    """Registers, spilled bytes and occupancy: ``40 / 0 / 75%``."""
    if record is None:
        return "-"
    profile = record.profile
    occupancy = "-" if record.occupancy is None else f"{record.occupancy.fraction:.0%}"
    spilled = "?" if profile.spill_bytes is None else profile.spill_bytes
    return f"{profile.registers} / {spilled} / {occupancy}"


def time_cells(work: WorkloadEvidence, peaks: Mapping[str, float]) -> TimeCells:
    """``peaks`` are the ceilings of the GPU that were measured in this run; per second."""
    figures, time, rates = work.time_figures, "", []
    if work.time is not None:
        time_ns = mean_time_ns(work.time.rounds)
        time = duration(time_ns)
        declared = ((work.time.bytes, "B/s", "copy_bandwidth"), (work.time.flops, "FLOP/s", "fp32"))
        rates = [_of_peak(each / time_ns * 1e9, unit, peaks.get(peak)) for each, unit, peak in declared if each]
    if figures is not None and figures.before_ns is not None and figures.after_ns is not None:
        time = f"{duration(figures.before_ns)} -> {duration(figures.after_ns)}"
    if work.time is not None and work.interval_ns is not None:
        time += f" ±{(work.interval_ns[1] - work.interval_ns[0]) / 2 / time_ns * 100:.2f} %"
    if work.time is not None and work.time.timer == "elapsed":
        total = sum(work.time.kernel_breakdown.values())
        time += " elapsed" + (f", sum {duration(total)}" if total else "")
    elif work.elapsed_ns is not None:
        time += f", elapsed {duration(work.elapsed_ns)}"
    against = "" if figures is None else ratio(figures)
    return TimeCells(time or "-", against or "-", "  ".join(rates) or "-")


def _of_peak(per_second: float, unit: str, peak: float | None) -> str:
    """``3.86 TB/s, 90 %``; no share for tensor cores, which exceed the peak of multiply-adds."""
    share = per_second / peak if peak else 0.0
    return quantity(per_second, unit) + (f", {share:.0%}".replace("%", " %") if 0 < share <= MOST_OF_PEAK else "")
