"""The end of one test: its verdicts, early stops, and what pytest's report carries."""

from __future__ import annotations

import unittest
import zlib
from typing import Literal

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.discovery import is_missing_device
from pytest_gpuperf.formatting import escape_ci_commands, visible
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Judgement
from pytest_gpuperf.process.gpu_fault import broken_by
from pytest_gpuperf.report.failures import severity, signature
from pytest_gpuperf.revision.process import finish_test
from pytest_gpuperf.run import Run
from pytest_gpuperf.session import exit_policy
from pytest_gpuperf.test_record import CheckedOnly, PerformanceRegression, TestRecord

SKIPS = (pytest.skip.Exception, unittest.SkipTest, pytest.xfail.Exception)
"""Exceptions by which a test opts out; failures of the gate count all the same."""


def finish(item: pytest.Item, problem: BaseException | None, phase: Literal["setup", "call"] = "call") -> None:
    """Judge what the test found and end it: passed, failed, skipped, static only or checked only.

    ``phase`` is the one that ends: a fixture may stop a test before its call.
    Raises what the test raised, unless that was an early stop, or what a measurement of its did; raises
    ``PerformanceRegression`` for what the gate has against it.  A ``pytest.skip`` or ``pytest.xfail`` hides neither.
    """
    run, test = stash.run_of(item.config), stash.record_of(item)
    test.ended_in = phase
    if problem is None or isinstance(problem, SKIPS) or stops_early(item, problem):
        problem = test.failed_measurement or problem
    for fixture in filter(None, (one.record for one in stash.shared_fixtures_of(item))):
        test.shared_kernels += fixture.kernels
        test.cubins |= fixture.cubins
    loss = broken_by(item, run, problem)
    if loss is not None:
        problem, run.gpu_lost = loss, item.nodeid
    stopped = problem is not None and stops_early(item, problem)
    if problem is not None and stopped:
        _note_early_stop(run, test, problem)
    finish_test(item.config)
    failed = problem is not None and not stopped and not isinstance(problem, SKIPS)
    _confirm_suspects(item, run, test, cut_short=failed and isinstance(problem, pytest.fail.Exception))  # or by a fault
    test.whole &= problem is None
    unreadable = ""
    if run.options.active:
        from pytest_gpuperf.session import judge_test  # noqa: PLC0415 40 modules that no plain run needs

        unreadable = judge_test.judge_test(run, test)
    own = isinstance(problem, AttributeError) and problem.obj is getattr(item, "funcargs", {}).get("gpu", item)
    if isinstance(problem, AttributeError) and own and not type(problem.obj).__module__.startswith("pytest_gpuperf."):
        problem.args = (f"{problem}: gpu is this project's own fixture; that of pytest-gpuperf is gpuperf.gpu",)
    if problem is not None and failed:
        if _is_ours(problem):
            first_line, *_ = str(problem).split("\n")  # the others name each file that includes a faulty header
            test.red_signature = f"{type(problem).__name__}: {first_line}"
        raise without_our_frames(item, problem)
    if unreadable:
        test.whole = False
        raise pytest.fail.Exception(escape_ci_commands(unreadable), pytrace=False)
    red = exit_policy.failures(test.judgements, run.options)
    if red:
        test.red_signature, test.severity = signature(red, test.advice), severity(red)
        raise PerformanceRegression(_message(red, run, test))
    if problem is not None and not stopped:
        test.stop("complete", "")  # as on a GPU, the skip is the test's own
        raise problem
    if test.status == "static only" or phase == "setup":  # there is no test to run without its fixture
        raise pytest.skip.Exception(escape_ci_commands(f"{test.status}: {test.reason}"))


def raised_in_test_case(item: pytest.Item) -> BaseException | None:
    """The exception of a test of a ``unittest.TestCase``, whose runner keeps it for its own report.

    Taken from it here, since the test's end may be another one.  Several are left alone: the test and its cleanup.
    """
    kept = getattr(item, "_excinfo", None)
    return kept.pop().value if kept and len(kept) == 1 else None


def end_subtest(item: pytest.Item, problem: BaseException, report: pytest.TestReport) -> None:
    """Let an early stop end a subtest without failing it; its test goes on with the next."""
    test = stash.record_of(item)
    test.whole = False
    if stops_early(item, problem):
        _note_early_stop(stash.run_of(item.config), test, problem)
        report.outcome, report.longrepr = "skipped", (*_place_of(item), f"{test.status}: {test.reason}")


def _place_of(item: pytest.Item) -> tuple[str, int]:
    return str(item.path), (item.location[1] or 0) + 1


def _confirm_suspects(item: pytest.Item, run: Run, test: TestRecord, *, cut_short: bool) -> None:
    """Confirm slower workloads in a second process, unless the test was ``cut_short`` by ``pytest.fail`` or an exit."""
    if test.suspects:
        from pytest_gpuperf.workload import confirm  # noqa: PLC0415 SciPy comes with it

        if cut_short:
            confirm.give_up(test)
        else:
            confirm.confirm(item, run, test)


def stops_early(item: pytest.Item, problem: BaseException) -> bool:
    """Whether this is no failure: the test needs a missing GPU, or a time that this run does not measure."""
    if isinstance(problem, CheckedOnly | DeviceNeeded):
        return True
    return _has_kernels(item) and not stash.run_of(item.config).has_gpu and is_missing_device(problem)


def ends_in_setup(item: pytest.Item, problem: BaseException) -> bool:
    """Whether a fixture ended its test without a failure: it stopped early, or skipped it with a kernel at hand."""
    at_hand = _has_kernels(item) or bool(stash.record_of(item).workloads)
    return stops_early(item, problem) or (at_hand and isinstance(problem, SKIPS))


def _has_kernels(item: pytest.Item) -> bool:
    """Whether the test, or a fixture that it shares with others, has compiled a kernel."""
    return bool(stash.record_of(item).kernels or stash.shared_fixtures_of(item))


def _note_early_stop(run: Run, test: TestRecord, problem: BaseException) -> None:
    if not isinstance(problem, CheckedOnly):
        test.stop("static only", str(run.no_device or problem).splitlines()[0])
    elif test.status != "static only":
        test.stop("checked only", str(problem))


def _is_ours(problem: BaseException) -> bool:
    return type(problem).__module__.startswith("pytest_gpuperf.")


def without_our_frames(item: pytest.Item, problem: BaseException) -> BaseException:
    """An error of ours about the input ends at the line of the test or fixture: the way here says nothing.

    Errors of other modules keep their whole traceback, and so does a bug of ours.
    """
    if not _is_ours(problem):
        return problem
    frame, in_test = problem.__traceback__, False
    own = {str(item.path), *(str(one.file) for one in stash.shared_fixtures_of(item))}
    while frame is not None and frame.tb_next is not None:
        in_test = in_test or frame.tb_frame.f_code.co_filename in own
        if in_test and frame.tb_next.tb_frame.f_globals.get("__name__", "").startswith("pytest_gpuperf"):
            frame.tb_next = None
        frame = frame.tb_next
    problem.args = tuple(escape_ci_commands(one) if isinstance(one, str) else one for one in problem.args)
    problem.__cause__ = None
    problem.__suppress_context__ = True
    return problem


def _message(failed: list[Judgement], run: Run, test: TestRecord) -> str:
    revision = run.revision.name if run.revision is not None else ""
    return escape_ci_commands(exit_policy.failure_message(failed, test.advice, revision, run.options.repeated))


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the evidence on the report (pytest-xdist carries it) and short verdicts into JUnit's properties."""
    run, test = stash.run_of(item.config), stash.record_of(item)
    _confirm_suspects(item, run, test, cut_short=True)
    if run.options.active:
        report.gpuperf = msgspec.json.encode(evidence_of(item, run, test)).decode()  # type: ignore[attr-defined]
    if test.status == "static only" and not hasattr(report, "wasxfail"):
        report.gpuperf_status = test.status  # type: ignore[attr-defined]
        item.user_properties.append(("gpuperf.status", test.status))
        judged = run.options.gates and any(one.verdict.is_pass for one in test.judgements)
        if report.skipped and report.when == "call" and judged:
            report.outcome, report.longrepr = "passed", None  # what can be judged here was, and passed
        elif report.skipped and isinstance(report.longrepr, tuple) and report.longrepr[0] == __file__:
            report.longrepr = (*_place_of(item), report.longrepr[2])  # not the line here that raised it
    for judgement in test.judgements:
        kind = "" if judgement.kind in ("static", "time") else f".{judgement.kind}"
        name = f"gpuperf.{judgement.key.workload}.{judgement.target}{kind}"
        item.user_properties.append((visible(name), judgement.verdict.value))
    report.user_properties = list(item.user_properties)
    if report.failed:
        _attach_failure(report, run, test)


def _attach_failure(report: pytest.TestReport, run: Run, test: TestRecord) -> None:
    """A section of a test that failed by its own assertion: the gate's message."""
    if test.red_signature:
        report.gpuperf_red, report.gpuperf_severity = test.red_signature, test.severity  # type: ignore[attr-defined]
    failed = exit_policy.failures(test.judgements, run.options)
    text = _message(failed, run, test) if failed else ""
    if text and report.longrepr is not None and text not in str(report.longrepr):
        report.sections.append(("gpuperf", text))


def evidence_of(item: pytest.Item, run: Run, test: TestRecord) -> TestEvidence:
    """The test's evidence, as its report carries it."""
    found = TestEvidence(
        module=test.module, test=test.test, status=test.status, reason=test.reason, whole=test.whole,
        workloads=tuple(test.workloads.values()),
        properties={name: str(value) for name, value in item.user_properties},
        cubins={sha256: zlib.compress(test.cubins[sha256]) for sha256 in sorted(test.unrecorded)},
    )  # fmt: skip
    if not any(workload.time for workload in found.workloads):
        return found
    return msgspec.structs.replace(found, device=run.device.facts, session=run.session, peaks=run.measured_peaks)
