"""The end of a run: leave or write what was recorded, and refuse to call nothing a success."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context import last_run, stash
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.child_process import progress_of
from pytest_gpuperf.context.repository import branch_of, commit_of
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.explain.code_text import code_differences
from pytest_gpuperf.explain.lines import explain_all
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.plugin_version import __version__
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.model.task import RecordTask, RevisionTask
from pytest_gpuperf.model.verdict import TimeFigures, Verdict
from pytest_gpuperf.report import terminal
from pytest_gpuperf.report.document import document_of
from pytest_gpuperf.report.files import write_reports
from pytest_gpuperf.report.screen import Screen
from pytest_gpuperf.session.collect_counters import counters_at_end
from pytest_gpuperf.session.compare_revision import foreign_code, leave_revision
from pytest_gpuperf.session.keep_ledger import add_up
from pytest_gpuperf.session.missed_records import tell_vanished
from pytest_gpuperf.session.other_toolchains import record_others
from pytest_gpuperf.session.static_gate import ENDED_AT, PUT_BEHIND
from pytest_gpuperf.update.accept import accept
from pytest_gpuperf.update.record import REPLACED, RecordingFailed, leave_rounds

EXIT_NOTHING_MEASURED = 10
"""A gated run that gathered no evidence at all, or under ``CI`` could compare none of it."""
EXIT_NOT_RECORDED = 11
"""A run that could not write what it was asked to: baselines or a report."""
EXIT_ENVIRONMENT = 12
"""A run whose A/A self-pairs came out different: the machine is the finding, not the code."""
EXIT_VANISHED = 13
"""A full run in which no test came to what is on record, under ``--gpuperf-open=fail``: test, file or target gone."""

EXIT_LEDGER = 14
"""A run that is slower by the evidence of many, or drifts, under ``--gpuperf-ledger=gate``."""

OUTCOME: pytest.StashKey[Outcome] = pytest.StashKey()


def finish(session: pytest.Session) -> None:
    """Finish a gated, updating or recording run; may change the exit status."""
    config = session.config
    worker, book = stash.worker_of(config), stash.run_book_of(config)
    outcome = config.stash.setdefault(OUTCOME, Outcome())
    if isinstance(worker.options.task, RecordTask):
        leave_rounds(worker, book, worker.options.task, stash.run_state_of(config).cubins)
    if isinstance(worker.options.task, RevisionTask):
        leave_revision(config, book, worker.options.task)
    if worker.options.is_child:
        return
    if worker.options.against and (problem := foreign_code(config)):
        outcome.problem, session.exitstatus = problem, pytest.ExitCode.USAGE_ERROR
    if worker.options.ncu:
        outcome.counter_notes = counters_at_end(config)
    if worker.options.update is not None:
        if session.exitstatus == pytest.ExitCode.INTERRUPTED:
            outcome.problem = "the run was interrupted: no baseline was written"
        else:
            _update(config, worker, book, outcome)
        lacking = outcome.problem or any(one.refused for one in outcome.recorded)
        if lacking and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = EXIT_NOT_RECORDED
    _keep(config, book, outcome)
    _watch(session, book, outcome)
    _guard(session, book, outcome)
    tell_vanished(session, book, outcome)
    if add_up(config, book, outcome) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = EXIT_LEDGER
    if outcome.vanished and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = EXIT_VANISHED
    _report(session, book, outcome)


def _report(session: pytest.Session, book: Book, outcome: Outcome) -> None:
    """Write the reports that were asked for, when all is known that they tell."""
    options = session.config.stash[stash.OPTIONS]
    if not options.reports:
        return
    evidence = book.evidence
    document = document_of(
        evidence, date=_now(), plugin=__version__, task=terminal.header(options), exit_status=int(session.exitstatus),
        problems=outcome.errors, warnings=terminal.run_remarks(book, outcome, options),
        machines=terminal.machine_lines(evidence), commit=commit_of(session.config.rootpath, options.baselines),
        branch=branch_of(session.config.rootpath),
        code=code_differences(stash.worker_of(session.config).store, evidence),
    )  # fmt: skip
    outcome.reports, outcome.unwritten = map(tuple, write_reports(document, options.reports))
    if outcome.unwritten and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = EXIT_NOT_RECORDED


def _now() -> str:
    """UTC, ISO 8601, seconds."""
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def _keep(config: pytest.Config, book: Book, outcome: Outcome) -> None:
    """Leave the evidence for ``gpuperf explain``."""
    tests = tuple(evidence for evidence in book.evidence if evidence.workloads)
    if not tests:
        return
    outcome.undecided = last_run.undecided_in_a_row(config.rootpath, tests)
    run = last_run.LastRun(
        schema=last_run.SCHEMA, date=_now(), plugin=__version__,
        baselines=str(config.stash[stash.OPTIONS].baselines), tests=tests, undecided=outcome.undecided,
    )  # fmt: skip
    try:
        last_run.keep(config.rootpath, run)
    except last_run.LastRunError as problem:
        outcome.not_kept = str(problem)


def summarise(reporter: Screen, failed: Sequence[pytest.TestReport] = ()) -> None:
    """Print what the run found and did; ``failed`` are all tests that pytest showed as failed."""
    config = reporter.config
    outcome = config.stash.setdefault(OUTCOME, Outcome())
    options, book = config.stash[stash.OPTIONS], stash.run_book_of(config)
    terminal.summary(reporter, book, outcome, options, failed)
    if options.explain and not options.is_child:
        _explain(reporter, book, stash.worker_of(config))


def _explain(reporter: Screen, book: Book, worker: Worker) -> None:
    """State, figures and causes of every workload."""
    reporter.write_sep("=", "gpuperf explains")
    workloads = [(test, work) for test in book.evidence for work in test.workloads]
    try:
        for line in explain_all(worker.store, workloads, worker.compile_cache):
            reporter.write_line(line)
    except BaselineError as problem:
        reporter.write_line(f"ERROR: {problem}", red=True)


def _watch(session: pytest.Session, book: Book, outcome: Outcome) -> None:
    """What the run as a whole says of the machine; a self-pair that differs takes the place of red times."""
    if not book.judged_times:
        return
    from pytest_gpuperf.judge.error_budget import environment_shift, self_pair_alarm  # noqa: PLC0415 brings SciPy
    from pytest_gpuperf.judge.noninferiority import OMEGA  # noqa: PLC0415 SciPy comes with it

    figures = [judgement.time for judgement in book.judgements if judgement.time is not None]
    moved = [
        _by_the_machine(figure)
        for figure in figures
        if figure.record_ratio is not None and figure.pair_slot == "short"  # else the ratio is not that of the rounds
    ]
    outcome.shifts = environment_shift(moved, OMEGA, book.canaries)
    alarms = [one for one in book.evidence if one.self_pair is not None and self_pair_alarm(one.self_pair)]
    if not alarms:
        return
    named = "; ".join(
        f"{one.module}::{one.test} [{one.self_pair.workload}] x{one.self_pair.ratio:.3f} after {one.self_pair.blocks} "
        f"blocks (seed {one.self_pair.seed})"
        for one in alarms
        if one.self_pair is not None
    )
    outcome.environment = (
        f"a launch paired with itself came out different: {named}. The machine is the finding, not the code: no red "
        "verdict on time of this run is to be trusted. Look for other work on the GPU and for moving clocks "
        "(gpuperf doctor), and run again."
    )
    if session.exitstatus == pytest.ExitCode.OK or book.only_times_failed:
        session.exitstatus = EXIT_ENVIRONMENT


def _by_the_machine(figures: TimeFigures) -> float:
    """Log of today's time over the record's, less what the code did to it where the two were paired."""
    of_the_code = figures.ratio if figures.method == "paired" and figures.ratio else 1.0
    return math.log(figures.record_ratio or 1.0) - math.log(of_the_code)


def _guard(session: pytest.Session, book: Book, outcome: Outcome) -> None:
    """A run that gathered nothing fails in its own words, whatever the reason."""
    options = session.config.stash[stash.OPTIONS]
    gathered = book.gathered_anything if options.gates else book.gathered_counters
    incomparable = _nothing_compared(book) if options.open == "fail" and options.update is None else ""
    passed = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    outcome.nothing = incomparable  # if the tests are red too, one line for what each of them says
    if not gathered and passed and not incomparable:
        outcome.nothing = _nothing_gathered(book, options)
    if outcome.nothing and passed:
        session.exitstatus = EXIT_NOTHING_MEASURED


def _nothing_gathered(book: Book, options: Options) -> str:
    if book.tests_run == 0:
        return (
            "nothing was measured: no test ran. Check the paths, -k and -m of this run: "
            "a gate that selects nothing would always be green."
        )
    if not options.gates:
        tests = numbered(book.tests_run, "test", "ran and has no", "ran and none has")
        return (
            f"nothing was counted: {tests} counters. Add --gpuperf to gate times and static evidence as well, or see "
            "to what is said above."
        )
    return f"nothing was measured: {_why_nothing(book)}"


def _nothing_compared(book: Book) -> str:
    """What kept each and every verdict of the run from comparing anything; empty if one did, or if there is none."""
    silent = (Verdict.NOT_COMPARABLE, Verdict.NOT_MEASURED)
    reasons = [judgement.reason for judgement in book.judgements if judgement.verdict is Verdict.NOT_COMPARABLE]
    if not reasons or any(judgement.verdict not in silent for judgement in book.judgements):
        return ""
    return f"nothing was compared: {reasons[0]}. A gate without a comparison would always be green."


def _why_nothing(book: Book) -> str:
    """What the tests of a gated run without evidence did instead."""
    count = book.tests_run
    ended = [one for one in book.evidence if one.status in ENDED_AT]
    if not ended:
        tests = numbered(count, "test", "ran and did not use", "ran and none used")
        return f"{tests} cuda_kernel or gpuperf. Point --gpuperf at tests that do, or leave the flag out."
    callables = sum(len(one.workloads) for one in ended)  # kernels would have left machine code
    if callables:
        those = numbered(callables, "callable", "has", "have")
        return (
            f"{those} no machine code to judge, and times need a GPU. Run on a machine with one, or without --gpuperf."
        )
    if len(ended) < count:
        tests = f"{count} tests ran, and {len(ended)} of them ended before a"
    else:
        tests = numbered(count, "test", "ran and ended before its", "ran and each ended before its")
    return (
        f"{tests} first cuda_kernel(...) or gpuperf(...), at its first need for {ENDED_AT[ended[0].status]}. "
        f"{PUT_BEHIND}, or leave --gpuperf out."
    )


def _update(config: pytest.Config, worker: Worker, book: Book, outcome: Outcome) -> None:
    """Record what changed; a problem is told and nothing is half done."""
    try:
        outcome.recorded += accept(config, worker, book)
        outcome.updated = True
        lines = record_others(config, worker.options, worker.store, outcome.recorded, progress_of(config))
        outcome.other_toolchains = tuple(lines)
    except (RecordingFailed, BaselineError) as problem:
        outcome.problem = str(problem)
    outcome.replaced = config.stash.get(REPLACED, ())
