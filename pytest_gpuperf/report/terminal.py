"""What the terminal shows of a run: one table of static evidence, one of times, then what needs a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.report.counters import counter_table, counter_words
from pytest_gpuperf.report.hints import print_hints
from pytest_gpuperf.report.tables import Table, static_table, time_table, update_table
from pytest_gpuperf.report.text import describe
from pytest_gpuperf.verdict import Judgement, Verdict

if TYPE_CHECKING:
    from pytest_gpuperf.options import Options
    from pytest_gpuperf.runend import Outcome
    from pytest_gpuperf.session import Book, TestEvidence


def header(options: Options) -> str:
    """The line under pytest's own header: what this run does."""
    if options.ncu_to is not None:
        return "gpuperf: under ncu"
    if options.confirm_to is not None:
        return "gpuperf: confirming suspected regressions"
    if options.record_to is not None:
        return f"gpuperf: recording process {options.record_index + 1} of {options.processes}"
    if options.update:
        task = f"updating baselines ({options.update})"
    else:
        task = "measuring and gating" if options.enabled else "gating counters only"
    if options.ncu:
        task += f", counters {', '.join(options.ncu)}"
    by_hand = options.tolerance is not None
    zone = f"tolerance {options.zone().delta * 100:g} %" if by_hand else f"profile {options.profile}"
    return f"gpuperf: {task}, {zone}, baselines in {options.baselines}"


def summary(reporter: pytest.TerminalReporter, book: Book, outcome: Outcome, options: Options) -> None:
    """Print the tables and the words of this run."""
    if options.is_child:
        return
    if book.gathered_anything or outcome.nothing or outcome.problem:
        reporter.section("gpuperf")
    evidence = [e for e in book.evidence if e.workloads]
    timed = book.judged_times
    if evidence and options.gates and (not timed or reporter.config.get_verbosity() > 0):
        _print(reporter, static_table(evidence))
    if book.gathered_counters and (not timed or reporter.config.get_verbosity() > 0):
        _print(reporter, counter_table(evidence))
    if timed:
        _print(reporter, time_table(evidence))
        _machine(reporter, evidence)
    _words(reporter, evidence)
    print_hints(reporter, evidence)
    if options.ncu:
        counter_words(reporter, evidence, outcome.counter_notes)
    _not_paired(reporter, evidence)
    _static_only(reporter, evidence, timed)
    _update(reporter, outcome)
    _undecided(reporter, book)
    if outcome.not_kept:
        reporter.write_line(outcome.not_kept, yellow=True)
    for text in outcome.shifts:
        reporter.write_line(f"environment shift: {text}", yellow=True)
    for text in (outcome.problem, outcome.environment, outcome.nothing):
        if text:
            reporter.write_line(f"ERROR: {text}", red=True, bold=True)


def _print(reporter: pytest.TerminalReporter, table: Table) -> None:
    for line in table.lines():
        reporter.write_line(line.text, **dict.fromkeys(line.markup, True))
    reporter.write_line("")


def _machine(reporter: pytest.TerminalReporter, evidence: Iterable[TestEvidence]) -> None:
    """Which GPUs and timers the times come from."""
    seen = {}
    for one in evidence:
        if one.session is not None:
            s = one.session
            seen[s.uuid] = (
                f"{s.gpu} {s.uuid[:8]}, driver {s.driver}, {s.toolchain}, timer {s.timer} "
                f"(tick {s.tick_ns:g} ns, overhead {s.overhead_ns:.0f} ns)"
            )
    for line in seen.values():
        reporter.write_line(line)


NEEDS_A_WORD = (Verdict.FASTER, Verdict.BETTER, Verdict.ENV_SHIFT, Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE,
                Verdict.SLOWER, Verdict.WORSE)  # fmt: skip
"""Verdicts that the summary explains; a red test has its message in the failures as well."""
UNDECIDED_SHARE = 0.2
LEAST_UNDECIDED = 3
"""Inconclusive workloads that are worth a word about the machine: so many, and more than this share."""


def _words(reporter: pytest.TerminalReporter, evidence: Iterable[TestEvidence]) -> None:
    """Explain the verdicts that need it; count the workloads that have no baseline."""
    new: list[Judgement] = []
    for one in evidence:
        new += [j for j in one.judgements if j.verdict is Verdict.NEW and j.kind != "counters"]
        for judgement in one.judgements:
            if judgement.verdict in NEEDS_A_WORD:
                _explain(reporter, judgement, one.xfail)
    if new:
        targets = ", ".join(sorted({judgement.target for judgement in new}))
        reporter.write_line(
            f"{len({judgement.key for judgement in new})} workloads have no baseline for {targets}: "
            "record them with pytest --update-baselines=new and commit the files",
            yellow=True,
        )


def _explain(reporter: pytest.TerminalReporter, judgement: Judgement, xfail: str) -> None:
    regressed = judgement.verdict.is_regression
    first, *rest = describe(judgement)
    reporter.write_line(f"{judgement.key.node_id}: {first}", red=regressed, yellow=not regressed)
    for line in [*rest, *([f"    expected: {xfail}"] if regressed and xfail else [])]:
        reporter.write_line(line)


def _not_paired(reporter: pytest.TerminalReporter, evidence: Iterable[TestEvidence]) -> None:
    """Passing workloads that were judged more coarsely than others, by reason."""
    reasons = Counter(
        judgement.time.not_paired
        for one in evidence
        for judgement in one.judgements
        if judgement.time is not None and judgement.time.not_paired and judgement.verdict.is_pass
    )
    for reason, count in reasons.items():
        those = f"{count} workloads were" if count > 1 else "1 workload was"
        reporter.write_line(f"{those} compared with the record alone, which resolves about 5 %: {reason}", yellow=True)


def _undecided(reporter: pytest.TerminalReporter, book: Book) -> None:
    """Where many workloads cannot be decided, it is not for what their authors did."""
    times = [judgement for judgement in book.judgements if judgement.kind == "time"]
    undecided = sum(1 for judgement in times if judgement.verdict is Verdict.INCONCLUSIVE)
    if undecided >= LEAST_UNDECIDED and undecided > UNDECIDED_SHARE * len(times):
        reporter.write_line(
            f"{undecided} of {len(times)} workloads were undecided: the machine is the finding, not the code. "
            f"gpuperf doctor and gpuperf selftest say more about it",
            yellow=True,
        )


def _static_only(reporter: pytest.TerminalReporter, evidence: list[TestEvidence], timed: bool) -> None:
    stopped = [e for e in evidence if e.status == "static only"]
    if stopped and not timed:
        workloads = sum(len(e.workloads) for e in evidence)
        reporter.write_line(
            f"timing needs a GPU: {workloads} workloads were judged by static evidence only ({stopped[0].reason})",
            yellow=True,
        )


def _update(reporter: pytest.TerminalReporter, outcome: Outcome) -> None:
    for text in outcome.replaced:
        reporter.write_line(text, yellow=True)
    if outcome.recorded:
        _print(reporter, update_table(outcome.recorded))
        written = sum(1 for one in outcome.recorded if not one.refused)
        refused = len(outcome.recorded) - written
        reporter.write_line(f"{written} baselines written" + (f", {refused} refused" if refused else ""))
