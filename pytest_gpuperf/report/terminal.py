"""The terminal summary of a run: a table of static evidence, one of times, then remarks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.formatting import describe, harmless, numbered
from pytest_gpuperf.model.result import Outcome, TestEvidence
from pytest_gpuperf.model.task import ConfirmTask, RevisionTask
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report import remarks
from pytest_gpuperf.report.closing import (
    count_line,
    next_steps,
    no_gpu_line,
    none_written,
    undecided_line,
    verdicts_of,
)  # fmt: skip
from pytest_gpuperf.report.order import MARKUP, NEEDS_A_WORD, capped, counted, rank_of
from pytest_gpuperf.report.tables import COUNTERS, SECONDARY, Table, static_view, table_of, time_view, update_table
from pytest_gpuperf.results import Results


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

    @property
    def width(self) -> int | None:
        """Characters of a line; None where nobody looks, as in a log."""
        return self.reporter._tw.fullwidth if self.reporter.isatty else None

    def write_line(self, line: str, **markup: bool) -> None:
        self.reporter.write_line(harmless(line), **markup)

    def write_sep(self, character: str, title: str) -> None:
        self.reporter.write_sep(character, harmless(title))


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
    by_hand = options.tolerance is not None
    zone = f"tolerance {options.limits().tolerance * 100:g} %" if by_hand else f"profile {options.profile}"
    opponent = f"against {options.against}" if options.against else f"baselines in {options.baselines}"
    return f"gpuperf: {task}, {zone}, {opponent}"


def summary(
    reporter: Screen, book: Results, outcome: Outcome, options: Options, failed: Sequence[pytest.TestReport] = ()
) -> None:
    """Print the tables and the remarks of this run; ``failed`` are the tests whose messages pytest has shown."""
    if options.is_child:
        return
    if book.gathered_anything or outcome.nothing or outcome.problem:
        reporter.write_sep("=", "gpuperf")
    evidence = _with_findings(book)
    _tables(reporter, book, evidence, options)
    _explain_all(reporter, evidence, outcome, failed)
    most = 0 if reporter.stats.get("failed") else MOST_REMARKS
    _warn(reporter, remarks.hints(evidence, most=None if reporter.verbose else most))
    if options.ncu:
        _warn(reporter, remarks.counter_lines(evidence, outcome.counter_notes, options))
    _warn(reporter, [*_of_workloads(book, options), *remarks.unreached_lines(book.unreached)])
    _update(reporter, outcome, book, options)
    _warn(reporter, _of_run(book, outcome))
    for path in outcome.reports:
        reporter.write_line(f"report written to {path}")
    for text in (*outcome.errors, *outcome.unwritten):
        reporter.write_line(f"ERROR: {text}", red=True, bold=True)
    _close(reporter, evidence, options)


def _tables(reporter: Screen, book: Results, evidence: Sequence[TestEvidence], options: Options) -> None:
    """Times, or without any the machine code and the counters; ``-v`` shows all of them."""
    timed, whole = book.judged_times, reporter.verbose
    if options.gates and (not timed or whole):
        _print(reporter, table_of(static_view(evidence), evidence, whole=whole))
    if not timed or whole:
        _print(reporter, table_of(COUNTERS, evidence, whole=whole))
    if timed:
        _print(reporter, table_of(time_view(evidence), evidence, whole=whole))
        _print(reporter, table_of(SECONDARY, evidence, whole=whole))
        for line in machine_lines(evidence):
            reporter.write_line(line)
        _warn(reporter, losses(evidence, options))


def _close(reporter: Screen, evidence: Sequence[TestEvidence], options: Options) -> None:
    """Count the verdicts, and say what to do next."""
    verdicts = list(verdicts_of(evidence).values())
    judged = [verdict for verdict in verdicts if verdict is not None]
    if not judged or options.update:
        return
    worst = min(judged, key=rank_of)
    reporter.write_line(count_line(verdicts), **dict.fromkeys((*MARKUP.get(worst, ()), "bold"), True))
    for line in next_steps(evidence, options):
        reporter.write_line(line)


def run_remarks(book: Results, outcome: Outcome, options: Options) -> list[str]:
    """Remarks of the summary on the run as a whole, besides tables and single verdicts."""
    return [*_of_workloads(book, options), *_of_run(book, outcome), *losses(_with_findings(book), options)]


def _of_run(book: Results, outcome: Outcome) -> list[str]:
    return [
        *undecided_line(book.judgements), *filter(None, [outcome.not_kept]), *outcome.machine, *outcome.left_out
    ]  # fmt: skip


def _warn(reporter: Screen, lines: Iterable[str]) -> None:
    for line in lines:
        reporter.write_line(line, yellow=True)


def _with_findings(book: Results) -> list[TestEvidence]:
    """Evidence of the tests that the summary has something to say about."""
    return [one for one in book.evidence if one.workloads or one.unreached]


def _of_workloads(book: Results, options: Options) -> list[str]:
    """Remarks that many workloads have in common: not optimised, stale baselines, not timed."""
    evidence = _with_findings(book)
    lines = [*remarks.unoptimised_lines(evidence)]
    if not options.update:
        lines += remarks.launch_changed_lines(evidence)
        lines += [] if options.strict or options.against else remarks.stale_lines(evidence, options.repeated)
    return lines + no_gpu_line(evidence, gates=options.gates)


def _print(reporter: Screen, table: Table | None) -> None:
    if table is None:
        return
    for line in table.lines(reporter.width):
        reporter.write_line(line.text, **dict.fromkeys(line.markup, True))
    reporter.write_line("")


WITHOUT_CUPTI = (
    "CUPTI cannot be used here (gpuperf doctor says why), so times are taken with CUDA {timer}. What is lost: changes "
    "of kernels shorter than 20 us are seen less surely, and what a callable takes is not told kernel by kernel"
)


def machine_lines(evidence: Iterable[TestEvidence]) -> list[str]:
    """GPUs and timers that the times come from."""
    sessions = {one.session.uuid: one.session for one in evidence if one.session is not None}
    return [
        f"{s.gpu} {s.uuid[:8]}, driver {s.driver}, {s.toolchain}, timer {s.timer} "
        f"(tick {s.tick_ns:g} ns, overhead {s.overhead_ns:.0f} ns)"
        for s in sessions.values()
    ]


def losses(evidence: Iterable[TestEvidence], options: Options) -> list[str]:
    """Losses where the timer is not the best one, and no option chose it."""
    stand_ins = {one.session.timer for one in evidence if one.session is not None} - {"cupti"}
    if not stand_ins or options.timer != "auto":
        return []
    return [WITHOUT_CUPTI.format(timer=" and ".join({"graph": "graphs"}.get(name, name) for name in sorted(stand_ins)))]


MOST_EXPLAINED = 5
MOST_REMARKS = 3
"""Verdicts with their words, and remarks of a kind, on the last screen; ``-v`` has all."""


def _explain_all(
    reporter: Screen, evidence: Sequence[TestEvidence], outcome: Outcome,
    failed: Sequence[pytest.TestReport],
) -> None:  # fmt: skip
    """Explain the verdicts that need it and were not shown yet; count the workloads that get no baseline either."""
    shown = _failures_shown(reporter, failed)
    judged = [judgement for one in evidence for judgement in one.judgements]
    shared = remarks.shared_obstacles(judged)
    _warn(reporter, shared.values())
    untold = [
        judgement for judgement in judged
        if judgement.verdict in NEEDS_A_WORD and remarks.obstacle_of(judgement) not in shared
        and not _is_in(shown.get(judgement.key.node_id, ""), judgement)
    ]  # fmt: skip
    most = len(untold) if reporter.verbose else MOST_EXPLAINED
    untold.sort(key=lambda one: rank_of(one.verdict) if len(untold) > most else 0)
    for judgement in untold[:most]:
        _explain(reporter, judgement)
    if len(untold) > most:
        reporter.write_line(f"and {counted(one.verdict for one in untold[most:])} (-v explains each)")
    written = {(one.key, one.target) for one in outcome.recorded if not one.refused}
    new = [
        j for j in judged
        if j.verdict is Verdict.NEW and j.kind != "counters" and (j.key, j.target) not in written
        and not j.renamed
    ]  # fmt: skip
    renamed = remarks.renamed_lines(evidence)
    _warn(reporter, renamed if reporter.verbose else capped(renamed, MOST_REMARKS, "renamed workload"))
    if new:
        targets = ", ".join(dict.fromkeys(judgement.target for judgement in new))
        those = numbered(len({judgement.key for judgement in new}), "workload", "has", "have")
        options = reporter.config.stash[stash.OPTIONS]
        command = remarks.with_flags("pytest --update-baselines=new", options.repeated)
        remedy = f"record them with {command} and commit the files"
        lack = f"no counterpart in {options.against}" if options.against else f"no baseline for {targets}: {remedy}"
        reporter.write_line(f"{those} {lack}", yellow=True)


def _failures_shown(reporter: Screen, failed: Sequence[pytest.TestReport]) -> dict[str, str]:
    """Text that pytest shows of each failed test, by its node ID; none where it was asked for one line, or for none."""
    if reporter.config.getoption("tbstyle") in ("no", "line"):
        return {}
    red = [*failed, *reporter.stats.get("error", ())]  # an error: the test ended in a fixture
    return {report.nodeid: report.longreprtext for report in red}


def _is_in(shown: str, judgement: Judgement) -> bool:
    """True if a failure says this already: that of a test's own check does not, nor the gate of what passes."""
    head = f"{judgement.key.workload}  {judgement.verdict.value}  on "
    of_kind = (line for line in shown.splitlines() if line.startswith(head) and f" ({judgement.kind})" in line)
    return any(judgement.target in line.removeprefix(head).partition(" (")[0].split(", ") for line in of_kind)


def _explain(reporter: Screen, judgement: Judgement) -> None:
    regressed = judgement.verdict.is_regression
    first, *rest = describe(judgement)
    reporter.write_line(f"{judgement.key.node_id}: {first}", red=regressed, yellow=not regressed)
    for line in rest:
        reporter.write_line(line)


def _update(reporter: Screen, outcome: Outcome, book: Results, options: Options) -> None:
    if outcome.recorded:
        _print(reporter, update_table(outcome.recorded, whole=reporter.verbose))
        written = sum(not one.refused for one in outcome.recorded)
        refused = len(outcome.recorded) - written
        reporter.write_line(numbered(written, "baseline") + " written" + (f", {refused} refused" if refused else ""))
    elif outcome.updated and not outcome.nothing:
        reporter.write_line(none_written(book, options, reporter.config.args))
