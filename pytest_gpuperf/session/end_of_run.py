"""The end of a run: it writes records and reports, and refuses to call an empty run a success."""

from __future__ import annotations

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import numbered, utc_now
from pytest_gpuperf.model import __version__
from pytest_gpuperf.process import last_run
from pytest_gpuperf.process.repository import branch_of, commit_of
from pytest_gpuperf.report import remarks, terminal
from pytest_gpuperf.report.document import SCHEMA, RunReport, document_of
from pytest_gpuperf.report.files import write_reports
from pytest_gpuperf.revision.against import with_itself
from pytest_gpuperf.run import Run
from pytest_gpuperf.session.missing import PUT_BEHIND, elsewhere, note_missing
from pytest_gpuperf.update import accept

EXIT_NOTHING_MEASURED = 10
"""A gated run gathered no evidence at all."""


def finish(session: pytest.Session) -> None:
    """Finish a gated, updating or recording run; may change the exit status."""
    config, run = session.config, stash.run_of(session.config)
    outcome = run.outcome
    if run.options.is_child:
        return
    if run.revision is not None:
        itself = "" if run.options.against_env else with_itself(config, run.revision)
        outcome.left_out += (itself,) if itself else ()
    if run.options.update is not None:
        _update(session, run)
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        outcome.nothing = _nothing_measured(run)
    note_missing(session, run, outcome)
    if outcome.nothing:
        session.exitstatus = EXIT_NOTHING_MEASURED
    elif session.exitstatus == pytest.ExitCode.OK and outcome.failed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    _report(session, run)
    if session.exitstatus == pytest.ExitCode.OK and outcome.unwritten:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _update(session: pytest.Session, run: Run) -> None:
    """Record what changed; a problem is reported, and nothing is half done."""
    outcome = run.outcome
    if session.exitstatus == pytest.ExitCode.INTERRUPTED:
        outcome.problem = "the run was interrupted: no baseline was written"
        return
    try:
        if problem := elsewhere(run):
            raise BaselineError(problem)
        outcome.recorded += accept(run)
        outcome.updated = True
    except (BaselineError, pytest.UsageError) as problem:
        outcome.problem = str(problem)
    except KeyboardInterrupt:
        session.exitstatus = pytest.ExitCode.INTERRUPTED
        outcome.problem = "the run was interrupted while it recorded: no baseline is half written; see git status"


def _report(session: pytest.Session, run: Run) -> None:
    """Write the reports that were asked for, and one for ``gpuperf explain``, when all is known that they tell."""
    options, outcome, evidence = run.options, run.outcome, run.results.evidence
    root, folder = session.config.rootpath, options.baselines
    gathered = any(one.workloads for one in evidence)
    try:
        evidence = last_run.keep_ncu_reports(root, evidence) if gathered else evidence
    except GpuperfError as problem:
        outcome.left_out += (str(problem),)
    kept = dict.fromkeys(work.ncu_report for one in evidence for work in one.workloads if work.ncu_report)
    outcome.counter_notes += tuple(f"ncu-ui {file} shows the kernels of red tests, baselines included" for file in kept)
    report = RunReport(
        schema=SCHEMA, date=utc_now(), plugin=__version__, task=terminal.header(options), verdicts={},
        exit_status=int(session.exitstatus), tests=tuple(evidence), problems=tuple(outcome.errors),
        warnings=tuple(remarks.run_remarks(run.results, outcome, options)),
        machines=tuple(remarks.machine_lines(evidence)),
        baselines=str(folder.relative_to(root) if folder.is_relative_to(root) else folder),
    )  # fmt: skip
    if gathered:
        try:
            last_run.keep(root, msgspec.json.encode(report))
        except GpuperfError as problem:
            outcome.left_out += (str(problem),)
    if options.reports:
        commit = commit_of(root, folder)
        report = msgspec.structs.replace(report, commit=commit.name, dirty=commit.dirty, branch=branch_of(root))
        written, unwritten = write_reports(document_of(report), options.reports, root)
        outcome.reports, outcome.unwritten = tuple(written), tuple(unwritten)


def _nothing_measured(run: Run) -> str:
    """Why this run may not be called a success although its tests passed; empty if it may."""
    options, results = run.options, run.results
    works = [work for one in results.evidence for work in one.workloads]
    if results.gathered_anything if options.gates else any(work.counters for work in works):
        return ""
    if not results.tests_run:
        return "nothing was measured: no test ran. A gate that selects nothing is always green: check paths and -k"
    tests = numbered(results.tests_run, "test", "ran and has no", "ran and have no")
    if not options.gates:
        return f"nothing was counted: {tests} counters, for the reason above; --gpuperf gates times too"
    needs_gpu = any(one.status == "static only" for one in results.evidence)
    return (
        f"nothing was measured: {tests} kernel or time to judge{' without a GPU' if needs_gpu else ''}. To do: "
        f"let it call cuda_kernel(...) or gpuperf(...), {PUT_BEHIND}, or leave --gpuperf out"
    )
