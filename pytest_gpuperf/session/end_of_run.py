"""The end of a run: leave or write what was recorded, and refuse to call nothing a success."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.context import last_run, stash
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.child_process import progress_of
from pytest_gpuperf.context.repository import branch_of, commit_of
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.explain.code_text import code_differences
from pytest_gpuperf.explain.lines import explain_all
from pytest_gpuperf.formatting import utc_now
from pytest_gpuperf.model.plugin_version import __version__
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.report import terminal
from pytest_gpuperf.report.document import document_of
from pytest_gpuperf.report.files import write_reports
from pytest_gpuperf.report.screen import Screen
from pytest_gpuperf.session import run_parts, whole_run
from pytest_gpuperf.session.collect_counters import counters_at_end
from pytest_gpuperf.session.compare_revision import chosen_by_name, ran_foreign_code, with_itself
from pytest_gpuperf.session.missed_records import tell_vanished
from pytest_gpuperf.session.other_toolchains import record_others
from pytest_gpuperf.session.revision_side import leave_revision
from pytest_gpuperf.session.run_scope import scope_of
from pytest_gpuperf.session.taken_back import fail_hidden, has_red, looks_green
from pytest_gpuperf.update.accept import accept
from pytest_gpuperf.update.removed import records_removed, removed_line

EXIT_NOTHING_MEASURED = 10
"""A gated run gathered no evidence at all or, under ``CI``, could compare none of it."""
EXIT_NOT_RECORDED = 11
"""A run could not write what it was asked to: baselines, all or some of them, or a report."""
EXIT_VANISHED = 13
"""A run had no baselines, and another folder has those of its tests.  Under ``--gpuperf-open=fail`` also: no test of a
full run reached what is on record, or a run ended before its last test."""

UNWRITTEN = "the run was interrupted: no baseline was written"
OUTCOME: pytest.StashKey[Outcome] = pytest.StashKey()


def finish(session: pytest.Session) -> None:
    """Finish a gated, updating or recording run; may change the exit status."""
    config = session.config
    worker, book = stash.worker_of(config), stash.run_book_of(config)
    outcome = config.stash.setdefault(OUTCOME, Outcome())
    if isinstance(worker.options.task, RevisionTask):
        leave_revision(config, book, worker.options.task)
    if worker.options.is_child:
        return
    if session.exitstatus and looks_green(session.exitstatus):  # pytest.exit(..., returncode=256)
        session.exitstatus = pytest.ExitCode.INTERRUPTED
    if worker.options.against and (problem := ran_foreign_code(config)):
        outcome.problem, session.exitstatus = problem, pytest.ExitCode.USAGE_ERROR
    if worker.revision is not None:
        words = (with_itself(config, worker.revision), chosen_by_name(book, worker.revision))
        outcome.left_out += tuple(filter(None, words))
    if worker.options.ncu:
        outcome.counter_notes, outcome.unwritten = counters_at_end(config)
    if worker.options.update is not None:
        if session.exitstatus == pytest.ExitCode.INTERRUPTED:
            outcome.problem = UNWRITTEN
        else:
            _update(session, worker, book, outcome)
        lacking = outcome.problem or any(one.refused for one in outcome.recorded)
        if lacking:
            _end_with(session, EXIT_NOT_RECORDED)
    outcome.hidden = fail_hidden(book, worker.options)
    if session.testsfailed or has_red(book, worker.options):  # pytest.exit(..., returncode=0) may have ended the run
        _end_with(session, pytest.ExitCode.TESTS_FAILED)
    _keep(config, book, outcome)
    outcome.machine = whole_run.of_the_machine(book)
    _guard(session, book, outcome)
    tell_vanished(session, book, outcome)
    if outcome.vanished or outcome.elsewhere:
        _end_with(session, EXIT_VANISHED)
    _report(session, book, outcome)
    if outcome.unwritten:
        _end_with(session, EXIT_NOT_RECORDED)


def _end_with(session: pytest.Session, status: int) -> None:
    """Let a run that is a success so far end with this status."""
    if session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = status


def _report(session: pytest.Session, book: Book, outcome: Outcome) -> None:
    """Write the reports that were asked for, when all is known that they tell."""
    options = session.config.stash[stash.OPTIONS]
    if not options.reports:
        return
    evidence = book.evidence
    shard, part, told = None, None, outcome
    if options.shard is not None:  # what vanished, and whether anything was measured, is for all shards together
        shard, part = options.shard, run_parts.part_of(session, book)
        told = dataclasses.replace(outcome, left_out=(), vanished=(), elsewhere="")
    document = document_of(
        evidence, date=utc_now(), plugin=__version__, task=terminal.header(options),
        exit_status=int(session.exitstatus), problems=told.errors, warnings=terminal.run_remarks(book, told, options),
        machines=terminal.machine_lines(evidence), commit=commit_of(session.config.rootpath, options.baselines),
        branch=branch_of(session.config.rootpath), shard=shard, part=part,
        code=code_differences(stash.worker_of(session.config).store, evidence),
    )  # fmt: skip
    written, unwritten = write_reports(document, options.reports)
    outcome.reports, outcome.unwritten = tuple(written), (*outcome.unwritten, *unwritten)


def _keep(config: pytest.Config, book: Book, outcome: Outcome) -> None:
    """Leave the evidence for ``gpuperf explain``, with what tests did not come to."""
    tests = tuple(evidence for evidence in book.evidence if evidence.workloads or evidence.unreached)
    if not any(evidence.workloads for evidence in tests):
        return
    outcome.undecided = last_run.undecided_in_a_row(config.rootpath, tests)
    run = last_run.LastRun(
        schema=last_run.SCHEMA, date=utc_now(), plugin=__version__,
        baselines=str(config.stash[stash.OPTIONS].baselines), tests=tests, undecided=outcome.undecided,
        root=str(config.rootpath),
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


def _guard(session: pytest.Session, book: Book, outcome: Outcome) -> None:
    """A run that gathered nothing fails in its own words, whatever the reason; of a shard, all shards together do."""
    options = session.config.stash[stash.OPTIONS]
    passed = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    nothing = whole_run.nothing_measured(book, options, passed=passed)
    if options.shard is not None and run_parts.has_tests(session.config):
        outcome.left_out += (run_parts.LEFT_TO_MERGE.format(nothing),) if nothing else ()
        session.exitstatus = pytest.ExitCode.OK if passed else session.exitstatus
        return
    outcome.nothing = nothing
    if nothing and passed:
        session.exitstatus = EXIT_NOTHING_MEASURED


def _update(session: pytest.Session, worker: Worker, book: Book, outcome: Outcome) -> None:
    """Record what changed; a problem is told and nothing is half done."""
    config = session.config
    try:
        scope = scope_of(config)
        removed = records_removed(config, worker.store, book.evidence, is_full=scope.full and scope.whole)
        outcome.recorded += accept(config, worker, book, removed)
        outcome.left_out += (removed_line(removed),) if removed else ()
        outcome.updated = True
        lines = record_others(config, worker.options, worker.store, outcome.recorded, progress_of(config))
        outcome.other_toolchains = tuple(lines)
    except (BaselineError, pytest.UsageError) as problem:
        outcome.problem = str(problem)
    except KeyboardInterrupt:
        session.exitstatus = pytest.ExitCode.INTERRUPTED
        outcome.problem = "the run was interrupted while it recorded: no baseline is half written; see git status"
