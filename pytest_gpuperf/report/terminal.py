"""The terminal summary of a run: tables of machine code, times and counters, then what needs a word, then the counts.

Whatever names and words come, no line steers the terminal or commands a CI job.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pytest_gpuperf.formatting import harmless, numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Outcome, TestEvidence
from pytest_gpuperf.model.task import ConfirmTask, RevisionTask
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report import closing, remarks
from pytest_gpuperf.report.failures import signature
from pytest_gpuperf.report.message import described
from pytest_gpuperf.report.order import MARKUP, NEEDS_A_WORD, capped, counted, rank_of, worst
from pytest_gpuperf.report.tables import COUNTERS, SECONDARY, Table, static_view, table_of, time_view
from pytest_gpuperf.report.update_table import update_table
from pytest_gpuperf.results import Results

MOST_EXPLAINED, MOST_REMARKS = 5, 3
"""Kinds of verdicts with their words, and remarks of a kind, on the last screen; ``-v`` has all."""


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

    @property
    def stats(self) -> dict[str, list[Any]]:
        """Pytest's own table of reports by outcome, not a copy."""
        return self.reporter.stats

    def write_line(self, line: str, **markup: bool) -> None:
        self.reporter.write_line(harmless(line), **markup)

    def write_sep(self, character: str, title: str) -> None:
        self.reporter.write_sep(character, harmless(title))

    def warn(self, lines: Iterable[str]) -> None:
        """Write lines that a reader of a green run should see."""
        for line in lines:
            self.write_line(line, yellow=True)

    def write_table(self, table: Table | None) -> None:
        """Write the table as wide as the terminal is, or as it takes where nobody looks, as in a log."""
        width = self.reporter._tw.fullwidth if self.reporter.isatty else None
        for line in table.lines(width) if table is not None else ():
            self.write_line(line.text, **dict.fromkeys(line.markup, True))
        if table is not None:
            self.write_line("")


def header(options: Options) -> str:
    """The line under pytest's own header: what this run does."""
    child = options.task
    if isinstance(child, RevisionTask):
        return "gpuperf: telling what the tests of another revision run"
    if child is not None:
        return f"gpuperf: {'confirming suspected regressions' if isinstance(child, ConfirmTask) else 'under ncu'}"
    task = "measuring and gating" if options.enabled else "gating counters only"
    if options.update:
        task = f"updating baselines ({options.update})"
    if options.ncu:
        task += f", counters {', '.join(options.ncu)}"
    opponent = f"against {options.against}" if options.against else f"baselines in {options.baselines}"
    return f"gpuperf: {task}, tolerance {options.tolerance * 100:g} %, {opponent}"


def summary(
    screen: Screen, book: Results, outcome: Outcome, options: Options, failed: Sequence[pytest.TestReport] = ()
) -> None:
    """Print the tables and the remarks of this run; ``failed`` are the tests whose messages pytest has shown."""
    if options.is_child:
        return
    if book.gathered_anything or outcome.nothing or outcome.problem:
        screen.write_sep("=", "gpuperf")
    evidence = _with_findings(book)
    _tables(screen, book, evidence, options)
    _explain_all(screen, evidence, failed)
    _new(screen, evidence, outcome, options)
    most = 0 if screen.stats.get("failed") else MOST_REMARKS
    screen.warn(remarks.hints(evidence, most=None if screen.verbose else most))
    if options.ncu:
        screen.warn(remarks.counter_lines(evidence, outcome.counter_notes, options))
    _update(screen, outcome, book, options)
    screen.warn(run_remarks(book, outcome, options))
    for path in outcome.reports:
        screen.write_line(f"report written to {path}")
    for text in (*outcome.errors, *outcome.unwritten):
        screen.write_line(f"ERROR: {text}", red=True, bold=True)
    _close(screen, evidence, options)


def run_remarks(book: Results, outcome: Outcome, options: Options) -> list[str]:
    """Remarks on the run as a whole, besides tables and single verdicts."""
    evidence = _with_findings(book)
    lines: list[str] = []
    if not options.update:
        lines += [] if options.strict or options.against else remarks.stale_lines(evidence, options.repeated)
    lines += closing.no_gpu_line(evidence, gates=options.gates)
    lines += [*losses(evidence, options), *closing.undecided_line(book.judgements)]
    return [*lines, *filter(None, [outcome.not_kept]), *outcome.left_out]


def _with_findings(book: Results) -> list[TestEvidence]:
    """Evidence of the tests that the summary has something to say about."""
    return [one for one in book.evidence if one.workloads]


def _tables(screen: Screen, book: Results, evidence: Sequence[TestEvidence], options: Options) -> None:
    """Times, or without any the machine code and the counters; ``-v`` shows all of them."""
    timed, whole = any(one.kind == "time" for one in book.judgements), screen.verbose
    if options.gates and (not timed or whole):
        screen.write_table(table_of(static_view(evidence), evidence, whole=whole))
    if not timed or whole:
        screen.write_table(table_of(COUNTERS, evidence, whole=whole))
    if timed:
        screen.write_table(table_of(time_view(evidence), evidence, whole=whole))
        screen.write_table(table_of(SECONDARY, evidence, whole=whole))
        for line in machine_lines(evidence):
            screen.write_line(line)


def machine_lines(evidence: Iterable[TestEvidence]) -> list[str]:
    """GPUs and timers that the times come from."""
    sessions = {one.session.uuid: one.session for one in evidence if one.session is not None}
    return [
        f"{s.gpu} {s.uuid[:8]}, driver {s.driver}, {s.toolchain}, timer {s.timer} "
        f"(tick {s.tick_ns:g} ns, overhead {s.overhead_ns:.0f} ns)"
        for s in sessions.values()
    ]


WITHOUT_CUPTI = (
    "CUPTI cannot be used here (gpuperf doctor says why), so times are taken with CUDA {timer}. What is lost: changes "
    "of kernels shorter than 20 us are seen less surely, and what a callable takes is not told kernel by kernel"
)


def losses(evidence: Iterable[TestEvidence], options: Options) -> list[str]:
    """Losses where the timer is not the best one, and no option chose it."""
    stand_ins = {one.session.timer for one in evidence if one.session is not None} - {"cupti"}
    if not stand_ins or options.timer != "auto":
        return []
    return [WITHOUT_CUPTI.format(timer=" and ".join({"graph": "graphs"}.get(name, name) for name in sorted(stand_ins)))]


def _explain_all(screen: Screen, evidence: Sequence[TestEvidence], failed: Sequence[pytest.TestReport]) -> None:
    """Explain the verdicts that need it and were not shown yet: of those that are alike one, for all."""
    shown = {}
    if screen.config.getoption("tbstyle") not in ("no", "line"):
        red = [*failed, *screen.stats.get("error", ())]  # an error: the test ended in a fixture
        shown = {report.nodeid: report.longreprtext.splitlines() for report in red}
    untold: dict[Key, list[Judgement]] = {}
    for one in (judgement for test in evidence for judgement in test.judgements):
        if one.verdict in NEEDS_A_WORD and not _is_in(shown.get(one.key.node_id, ()), one):
            untold.setdefault(one.key, []).append(one)
    alike: dict[str, list[list[Judgement]]] = {}
    for key, judged in untold.items():
        alike.setdefault(str(key) if screen.verbose else signature(judged, {}), []).append(judged)
    groups = sorted(alike.values(), key=lambda group: rank_of(worst(group[0])))
    most = len(groups) if screen.verbose else MOST_EXPLAINED
    for judged, *others in groups[:most]:
        more = f" and {numbered(len(others), 'workload')} more like it" if others else ""
        regressed = any(one.verdict.is_regression for one in judged)
        first, *rest = described(judged)
        screen.write_line(f"{judged[0].key.node_id}{more}: {first}", red=regressed, yellow=not regressed)
        for line in rest:
            screen.write_line(line)
    if left := [worst(judged) for group in groups[most:] for judged in group]:
        screen.write_line(f"and {counted(left)} (-v explains each)")


def _is_in(shown: Sequence[str], judgement: Judgement) -> bool:
    """True if a failure says this already: that of a test's own check does not, nor the gate of what passes."""
    head = f"{judgement.key.workload}  {judgement.verdict.value}  on "
    return any(line.startswith(head) and f" ({judgement.kind})" in line for line in shown)


def _new(screen: Screen, evidence: Sequence[TestEvidence], outcome: Outcome, options: Options) -> None:
    """Renamed workloads, and the number of those that have no baseline and get none."""
    renamed = remarks.renamed_lines(evidence)
    screen.warn(renamed if screen.verbose else capped(renamed, MOST_REMARKS, "renamed workload"))
    written = {(one.key, one.target) for one in outcome.recorded if not one.refused}
    new = [
        one for test in evidence for one in test.judgements
        if one.verdict is Verdict.NEW and one.kind != "counters" and not one.renamed
        and (one.key, one.target) not in written
    ]  # fmt: skip
    if new:
        targets = ", ".join(dict.fromkeys(judgement.target for judgement in new))
        those = numbered(len({judgement.key for judgement in new}), "workload", "has", "have")
        command = remarks.with_flags("pytest --update-baselines=new", options.repeated)
        remedy = f"record them with {command} and commit the files"
        lack = f"no counterpart in {options.against}" if options.against else f"no baseline for {targets}: {remedy}"
        screen.warn([f"{those} {lack}"])


def _update(screen: Screen, outcome: Outcome, book: Results, options: Options) -> None:
    if outcome.recorded:
        screen.write_table(update_table(outcome.recorded, whole=screen.verbose))
        written = sum(not one.refused for one in outcome.recorded)
        refused = len(outcome.recorded) - written
        screen.write_line(numbered(written, "baseline") + " written" + (f", {refused} refused" if refused else ""))
    elif outcome.updated and not outcome.nothing:
        screen.write_line(closing.none_written(book, options, screen.config.args))


def _close(screen: Screen, evidence: Sequence[TestEvidence], options: Options) -> None:
    """Count the verdicts, and say what to do next."""
    verdicts = list(closing.verdicts_of(evidence).values())
    judged = [verdict for verdict in verdicts if verdict is not None]
    if not judged or options.update:
        return
    screen.write_line(closing.count_line(verdicts), **dict.fromkeys((*MARKUP[min(judged, key=rank_of)], "bold"), True))
    for line in closing.next_steps(evidence, options):
        screen.write_line(line)
