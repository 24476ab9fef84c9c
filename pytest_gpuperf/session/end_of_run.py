"""The end of a run: leave or write what was recorded, and refuse to call nothing a success."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.context import stash
from pytest_gpuperf.explain.code_text import code_differences
from pytest_gpuperf.explain.lines import explain_all
from pytest_gpuperf.formatting import utc_now
from pytest_gpuperf.model import __version__
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.process import last_run
from pytest_gpuperf.process.repository import branch_of, commit_of
from pytest_gpuperf.report import terminal
from pytest_gpuperf.report.document import document_of
from pytest_gpuperf.report.files import write_reports
from pytest_gpuperf.report.terminal import Screen
from pytest_gpuperf.results import Results
from pytest_gpuperf.revision.against import chosen_by_name, with_itself
from pytest_gpuperf.run import Run
from pytest_gpuperf.session import whole_run
from pytest_gpuperf.session.collect_counters import counters_at_end
from pytest_gpuperf.session.note_missing import note_missing
from pytest_gpuperf.update.accept import accept
from pytest_gpuperf.update.removed import records_removed, removed_line

EXIT_NOTHING_MEASURED = 10
"""A gated run gathered no evidence at all or, under ``CI``, could compare none of it."""

UNWRITTEN = "the run was interrupted: no baseline was written"


def finish(session: pytest.Session) -> None:
    """Finish a gated, updating or recording run; may change the exit status."""
    config = session.config
    worker, book = stash.run_of(config), stash.run_of(config).results
    outcome = worker.outcome
    if worker.options.is_child:
        return
    if worker.revision is not None:
        itself = "" if worker.options.against_python else with_itself(config, worker.revision)
        words = (itself, chosen_by_name(book, worker.revision))
        outcome.left_out += tuple(filter(None, words))
    if worker.options.ncu:
        outcome.counter_notes = counters_at_end(config)
    if worker.options.update is not None:
        if session.exitstatus == pytest.ExitCode.INTERRUPTED:
            outcome.problem = UNWRITTEN
        else:
            _update(session, worker, book, outcome)
        lacking = outcome.problem or any(one.refused for one in outcome.recorded)
        if lacking:
            _end_with(session, pytest.ExitCode.TESTS_FAILED)
    _keep(config, book, outcome)
    outcome.machine = whole_run.of_the_machine(book)
    _guard(session, book, outcome)
    note_missing(session, book, outcome)
    if outcome.missing:
        _end_with(session, pytest.ExitCode.TESTS_FAILED)
    _report(session, book, outcome)
    if outcome.unwritten:
        _end_with(session, pytest.ExitCode.TESTS_FAILED)


def _end_with(session: pytest.Session, status: int) -> None:
    """Let a run that is a success so far end with this status."""
    if session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = status


def _report(session: pytest.Session, book: Results, outcome: Outcome) -> None:
    """Write the reports that were asked for, when all is known that they tell."""
    options = session.config.stash[stash.OPTIONS]
    if not options.reports:
        return
    evidence = book.evidence
    document = document_of(
        evidence, date=utc_now(), plugin=__version__, task=terminal.header(options),
        exit_status=int(session.exitstatus), problems=outcome.errors,
        warnings=terminal.run_remarks(book, outcome, options),
        machines=terminal.machine_lines(evidence), commit=commit_of(session.config.rootpath, options.baselines),
        branch=branch_of(session.config.rootpath),
        code=code_differences(stash.run_of(session.config).store, evidence),
    )  # fmt: skip
    written, unwritten = write_reports(document, options.reports)
    outcome.reports, outcome.unwritten = tuple(written), tuple(unwritten)


def _keep(config: pytest.Config, book: Results, outcome: Outcome) -> None:
    """Leave the evidence for ``gpuperf explain``, with what tests did not come to."""
    tests = tuple(evidence for evidence in book.evidence if evidence.workloads or evidence.unreached)
    if not any(evidence.workloads for evidence in tests):
        return
    run = last_run.LastRun(
        schema=last_run.SCHEMA, date=utc_now(), plugin=__version__,
        baselines=str(config.stash[stash.OPTIONS].baselines), tests=tests,
        root=str(config.rootpath),
    )  # fmt: skip
    try:
        last_run.keep(config.rootpath, run)
    except last_run.LastRunError as problem:
        outcome.not_kept = str(problem)


def summarise(reporter: Screen, failed: Sequence[pytest.TestReport] = ()) -> None:
    """Print what the run found and did; ``failed`` are all tests that pytest showed as failed."""
    config = reporter.config
    options, run = config.stash[stash.OPTIONS], stash.run_of(config)
    outcome, book = run.outcome, run.results
    terminal.summary(reporter, book, outcome, options, failed)
    if options.explain and not options.is_child:
        _explain(reporter, book, run)


def _explain(reporter: Screen, book: Results, worker: Run) -> None:
    """State, figures and causes of every workload."""
    reporter.write_sep("=", "gpuperf explains")
    workloads = [(test, work) for test in book.evidence for work in test.workloads]
    try:
        for line in explain_all(worker.store, workloads, worker.compile_cache):
            reporter.write_line(line)
    except BaselineError as problem:
        reporter.write_line(f"ERROR: {problem}", red=True)


def _guard(session: pytest.Session, book: Results, outcome: Outcome) -> None:
    """A run that gathered nothing fails in its own words, whatever the reason."""
    options = session.config.stash[stash.OPTIONS]
    passed = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    outcome.nothing = whole_run.nothing_measured(book, options, passed=passed)
    if outcome.nothing and passed:
        session.exitstatus = EXIT_NOTHING_MEASURED


def _update(session: pytest.Session, worker: Run, book: Results, outcome: Outcome) -> None:
    """Record what changed; a problem is told and nothing is half done."""
    config = session.config
    try:
        removed = records_removed(config, worker.store, book.evidence)
        outcome.recorded += accept(config, worker, book, removed)
        outcome.left_out += (removed_line(removed),) if removed else ()
        outcome.updated = True
    except (BaselineError, pytest.UsageError) as problem:
        outcome.problem = str(problem)
    except KeyboardInterrupt:
        session.exitstatus = pytest.ExitCode.INTERRUPTED
        outcome.problem = "the run was interrupted while it recorded: no baseline is half written; see git status"
