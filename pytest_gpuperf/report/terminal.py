"""The terminal summary of a run: tables of times, machine code and counters, then explained verdicts, then the counts.

Whatever names and words come, no line steers the terminal or commands a CI job.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterable, Sequence

import pytest

from pytest_gpuperf.formatting import escape_ci_commands, numbered
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.model.task import ConfirmTask, RevisionTask
from pytest_gpuperf.options import GITHUB, Options
from pytest_gpuperf.report import remarks, tables
from pytest_gpuperf.report.annotations import annotations_of
from pytest_gpuperf.report.document import Row, rows_of
from pytest_gpuperf.report.files import SUMMARY_VARIABLE
from pytest_gpuperf.report.order import MARKUP, counted, rank_of
from pytest_gpuperf.results import Results

MOST_EXPLAINED = 5
"""Kinds of verdicts with their words on the last screen; ``-v`` has all."""


@dataclasses.dataclass(frozen=True)
class Screen:
    """Pytest's terminal, for text of this plugin that others may have had a hand in."""

    reporter: pytest.TerminalReporter

    @property
    def config(self) -> pytest.Config:
        return self.reporter.config

    @property
    def verbose(self) -> bool:
        """Whether the run was asked to tell more, by ``-v``."""
        return self.config.get_verbosity() > 0

    def write_line(self, line: str, **markup: bool) -> None:
        self.reporter.write_line(escape_ci_commands(line), **markup)

    def warn(self, lines: Iterable[str]) -> None:
        """Write lines that a reader of a green run should see."""
        for line in lines:
            self.write_line(line, yellow=True)

    def write_table(self, table: tables.Table | None) -> None:
        """Write the table as wide as the terminal is, or as it takes where nobody looks, as in a log."""
        if table is None:
            return
        for line, markup in table.lines(self.reporter._tw.fullwidth if self.reporter.isatty else None):
            self.write_line(line, **dict.fromkeys(markup, True))
        self.write_line("")


def header(options: Options) -> str:
    """The line under pytest's own header: what this run does."""
    child = options.task
    if child is not None:
        tasks = {RevisionTask: "running another revision's tests", ConfirmTask: "confirming suspected regressions"}
        return f"gpuperf: {tasks.get(type(child), 'under ncu')}"
    task = "measuring and gating" if options.enabled else "gating counters only"
    if options.update:
        task = f"updating baselines ({options.update})"
    if options.ncu:
        task += f", counters {', '.join(options.ncu)}"
    reference = f"against {options.against}" if options.against else f"baselines in {options.baselines}"
    least = f" or {options.min_delta_us:g} us" if options.min_delta_us else ""
    return f"gpuperf: {task}, tolerance {options.tolerance * 100:g} %{least}, {reference}"


def summary(
    screen: Screen, results: Results, outcome: Outcome, options: Options, failed: Sequence[pytest.TestReport] = ()
) -> None:
    """Print the tables and the remarks of this run; ``failed`` are the tests whose messages pytest has shown."""
    if options.is_child:
        return
    if results.gathered_anything or outcome.nothing or outcome.problem:
        screen.reporter.write_sep("=", "gpuperf")
    rows = rows_of(results.evidence)
    _tables(screen, rows, results, options)
    _explain(screen, rows, failed)
    if options.ncu:
        screen.warn(remarks.counter_lines(results.evidence, outcome.counter_notes))
    screen.write_table(tables.update_table(outcome.recorded, whole=screen.verbose))
    if outcome.recorded or (outcome.updated and not outcome.nothing):
        screen.write_line(remarks.update_line(results, rows, outcome, options, screen.config.args))
    screen.warn(remarks.run_remarks(results, outcome, options))
    for path in outcome.reports:
        screen.write_line(f"report written to {path}")
    if os.environ.get(SUMMARY_VARIABLE) and GITHUB in options.reports:
        _annotate(screen, rows, "warning" if options.advisory else "error")
    for text in (*outcome.errors, *outcome.unwritten):
        screen.write_line(f"ERROR: {text}", red=True, bold=True)
    _close(screen, rows, options)


def _annotate(screen: Screen, rows: Sequence[Row], level: str) -> None:
    """Print workflow commands of our own, as they are."""
    red = [report for name in ("failed", "error") for report in screen.reporter.stats.get(name, ())]
    tests = {one.nodeid: (one.location[0], (one.location[1] or 0) + 1) for one in red if one.location}
    for line in annotations_of(rows, tests, screen.config.rootpath, level):
        screen.reporter.write_line(line)


def _tables(screen: Screen, rows: Sequence[Row], results: Results, options: Options) -> None:
    """Times, or without any the machine code and the counters; ``-v`` shows all of them."""
    whole = screen.verbose
    timed = any(one.kind == "time" for one in results.judgements)
    if options.gates and (not timed or whole):
        screen.write_table(tables.static_table(rows, whole=whole))
    if not timed or whole:
        screen.write_table(tables.counter_table(rows, whole=whole))
    if timed:
        screen.write_table(tables.time_table(rows, whole=whole))
        for line in remarks.machine_lines(results.evidence):
            screen.write_line(line)


def _explain(screen: Screen, rows: Iterable[Row], failed: Sequence[pytest.TestReport]) -> None:
    """Print the lines of workloads that no failure message has shown; of alike workloads only the first."""
    shown: set[str] = set()
    if screen.config.getoption("tbstyle") not in ("no", "line"):
        red = [*failed, *screen.reporter.stats.get("error", ())]  # an error: the test ended in a fixture
        shown = {f"{report.nodeid} {line}" for report in red for line in report.longreprtext.splitlines()}
    alike: dict[str, list[tuple[Row, list[str]]]] = {}
    for row in rows:
        if lines := _not_shown(row, shown):
            alike.setdefault(row.name if screen.verbose else row.alike, []).append((row, lines))
    groups = list(alike.values())
    most = len(groups) if screen.verbose else MOST_EXPLAINED
    for (row, lines), *others in groups[:most]:
        more = f" and {numbered(len(others), 'workload')} more like it" if others else ""
        regressed = row.verdict is not None and row.verdict.is_regression
        screen.write_line(f"{row.evidence.key.node_id}{more}: {lines[0]}", red=regressed, yellow=not regressed)
        for line in lines[1:]:
            screen.write_line(line)
    if left := [row.verdict for group in groups[most:] for row, _ in group]:
        screen.write_line(f"and {counted(left)} (-v explains each)")


def _not_shown(row: Row, shown: Collection[str]) -> list[str]:
    """Its lines, without verdicts that were ``shown`` for its test and the lines below them."""
    found, is_new = [], False
    for line in row.lines:
        if line and not line.startswith(" "):
            is_new = f"{row.evidence.key.node_id} {line}" not in shown
        found += [line] * is_new
    return found


def _close(screen: Screen, rows: Sequence[Row], options: Options) -> None:
    """Count the verdicts, and say what to do next."""
    verdicts = [row.verdict for row in rows]
    judged = [verdict for verdict in verdicts if verdict is not None]
    if not judged or options.update:
        return
    line = f"{numbered(len(verdicts), 'workload')}: {counted(verdicts)}"
    screen.write_line(line, **dict.fromkeys((*MARKUP[min(judged, key=rank_of)], "bold"), True))
    for step in remarks.next_steps(rows, options):
        screen.write_line(step)
