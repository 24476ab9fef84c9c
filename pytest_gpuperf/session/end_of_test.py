"""The end of one test: static judgement, early stops, and what the report carries."""

from __future__ import annotations

import unittest
import zlib
from typing import Literal

import msgspec
import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.early_stop import CheckedOnly
from pytest_gpuperf.context.marker import settings_of
from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.discovery import is_missing_device
from pytest_gpuperf.formatting import harmless, visible
from pytest_gpuperf.model.advice import Advice
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Judgement
from pytest_gpuperf.process.gpu_words import broken_by, memory_words
from pytest_gpuperf.report.red_groups import severity, signature
from pytest_gpuperf.revision.process import leave_test
from pytest_gpuperf.session import exit_policy, taken_back


def finish(item: pytest.Item, problem: BaseException | None, phase: Literal["setup", "call"] = "call") -> None:
    """Judge what the test found and end it: passed, failed, skipped, static only or checked only.

    ``phase`` is the one that ends: a fixture may stop a test before its call.
    Raises what the test raised, unless that was an early stop, or what a thread of its own did; raises pytest's failure
    for a regression.  A ``pytest.skip`` of the test's own hides neither.
    """
    worker, book = stash.worker_of(item.config), stash.book_of(item)
    book.ended_in = phase
    if problem is None or _is_skip(problem) or stops_early(item, problem):
        problem = book.failed_in_thread or problem
    book.shared = tuple(one.book for one in stash.shared_fixtures_of(item))
    book.whole = problem is None and not book.subtest_stopped and worker.options.gates and worker.has_gpu
    loss = broken_by(item, worker, problem)
    if loss is not None:
        problem, book.faulted, book.whole = loss, True, False
        stash.run_state_of(item.config).gpu_lost = item.nodeid
    book.memory = memory_words(worker, problem)
    stopped = problem is not None and stops_early(item, problem)
    skipped = _is_skip(problem)
    if problem is not None and stopped:
        _note_early_stop(worker, book, problem)
    leave_test(item.config)
    failed_by_pytest = isinstance(problem, pytest.fail.Exception)  # a fault too: nothing can be confirmed then
    _settle_pending(item, worker, book, cut_short=failed_by_pytest)
    failed_itself = problem is not None and not stopped and not skipped
    if worker.options.active:
        early = stopped or book.subtest_stopped
        unreadable = _judge(item, worker, book, stopped=early, whole=problem is None and not early, red=failed_itself)
        if unreadable and not failed_itself:  # else that comes first
            raise pytest.fail.Exception(harmless(unreadable), pytrace=False)
    if problem is not None and failed_itself:
        if type(problem).__module__.startswith("pytest_gpuperf."):
            said, *_ = str(problem).split("\n")  # the rest of a compiler's words names each file that has the header
            book.red_signature, book.red_by_error = f"{type(problem).__name__}: {said}", True
        raise without_our_frames(item, problem)
    failed = exit_policy.failures(_all_judgements(book), worker.options)
    if failed and settings_of(item).xfail is None:
        book.red_signature, book.severity = signature(failed, _advice(book)), severity(failed)
        raise pytest.fail.Exception(_message(failed, worker, book), pytrace=False)
    if problem is not None and skipped:
        raise problem
    if book.status == "static only":
        raise pytest.skip.Exception(harmless(f"static only: {book.reason}"))


def _judge(item: pytest.Item, worker: Worker, book: TestBook, *, stopped: bool, whole: bool, red: bool) -> str:
    """Judge what the test shares with others and its own.  Returns why a baseline cannot be read; empty if all can."""
    from pytest_gpuperf.session import judge_book, shared_kernels  # noqa: PLC0415 40 modules that no plain run needs

    of_shared = shared_kernels.judge(item, worker, book, stops_early, failed_itself=red)
    return judge_book.judge_book(item.config, worker, book, stopped=stopped, whole=whole) or of_shared


def checked_only(problem: BaseException) -> BaseException:
    """What ends the test whose fixture stopped early, for this."""
    return pytest.skip.Exception(harmless(f"checked only: {problem}"))


def raised_in_test_case(item: pytest.Item) -> BaseException | None:
    """What the test of a ``unittest.TestCase`` raised: its runner keeps that to itself, to be reported later.

    Taken from it here, since the test's end may be another one.  Several are left alone: the test and its cleanup.
    """
    kept = getattr(item, "_excinfo", None)
    return kept.pop().value if kept and len(kept) == 1 else None


def end_subtest(item: pytest.Item, problem: BaseException, report: pytest.TestReport) -> None:
    """Let what stops a test early stop a subtest without failing it; its test goes on with the next."""
    if stops_early(item, problem):
        worker, book = stash.worker_of(item.config), stash.book_of(item)
        book.subtest_stopped = True
        _note_early_stop(worker, book, problem)
        report.outcome = "skipped"
        report.longrepr = (*_place_of(item), f"{book.status}: {book.reason}")


def _place_of(item: pytest.Item) -> tuple[str, int]:
    return str(item.path), (item.location[1] or 0) + 1


def _settle_pending(item: pytest.Item, worker: Worker, book: TestBook, *, cut_short: bool) -> None:
    """Confirm what is slower in a second process, unless the test was ``cut_short`` by ``pytest.fail`` or an exit."""
    state = stash.run_state_of(item.config)
    if not state.has_suspects:
        return
    from pytest_gpuperf.workload import confirm  # noqa: PLC0415 SciPy comes with it

    if cut_short:
        confirm.give_up(state, book)
    else:
        confirm.confirm(item, worker, state, book)


def _judgements(*books: TestBook) -> list[Judgement]:
    return [judgement for book in books for workload in book.workloads.values() for judgement in workload.judgements]


def _all_judgements(book: TestBook) -> list[Judgement]:
    """Those that a test answers for, what it did not come to included."""
    books = (book, *book.answers_for)
    return [*_judgements(*books), *(judgement for one in books for judgement in one.unreached)]


def _is_skip(problem: BaseException | None) -> bool:
    return isinstance(problem, pytest.skip.Exception | unittest.SkipTest)


def stops_early(item: pytest.Item, problem: BaseException) -> bool:
    """Whether this is no failure: the test wanted a GPU that is not there, or a time that this run does not take."""
    if isinstance(problem, CheckedOnly | DeviceNeeded):
        return True
    compiled = any(book.kernels for book in _books(item))
    return compiled and not stash.worker_of(item.config).has_gpu and is_missing_device(problem)


def ends_in_setup(item: pytest.Item, problem: BaseException) -> bool:
    """Whether a fixture ended its test without a failure: it stopped early, or skipped it with a kernel at hand."""
    skips = pytest.skip.Exception | unittest.SkipTest | pytest.xfail.Exception
    at_hand = any(book.kernels or book.workloads for book in _books(item))
    return stops_early(item, problem) or (at_hand and isinstance(problem, skips))


def _books(item: pytest.Item) -> list[TestBook]:
    """The test's own, and those of the fixtures that it shares with others."""
    return [stash.book_of(item), *(one.book for one in stash.shared_fixtures_of(item))]


def _note_early_stop(worker: Worker, book: TestBook, problem: BaseException) -> None:
    if not isinstance(problem, CheckedOnly):
        book.stop("static only", str(worker.no_device or problem).splitlines()[0])
    elif book.status != "static only":
        book.stop("checked only", str(problem))


def without_our_frames(item: pytest.Item, problem: BaseException) -> BaseException:
    """An error of ours about the input ends at the line of the test or fixture: the way here says nothing.

    Errors of other modules keep their whole traceback, and so does a bug of ours.
    """
    if not type(problem).__module__.startswith("pytest_gpuperf."):
        return problem
    frame = problem.__traceback__
    own = {str(item.path), *(str(one.file) for one in stash.shared_fixtures_of(item))}
    while frame is not None and frame.tb_frame.f_code.co_filename not in own:
        frame = frame.tb_next
    while frame is not None and frame.tb_next is not None:
        if frame.tb_next.tb_frame.f_globals.get("__name__", "").startswith("pytest_gpuperf"):
            frame.tb_next = None
        frame = frame.tb_next
    problem.args = tuple(harmless(one) if isinstance(one, str) else one for one in problem.args)  # a compiler's log
    problem.__cause__ = None
    problem.__suppress_context__ = True
    return problem


def _message(failed: list[Judgement], worker: Worker, book: TestBook) -> str:
    revision = worker.revision.name if worker.revision is not None else ""
    return harmless(exit_policy.failure_message(failed, _advice(book), revision, worker.options.repeated))


def _advice(book: TestBook) -> dict[Key, tuple[Advice, ...]]:
    books = (book, *book.answers_for)
    return {work.key: work.advice for one in books for work in one.workloads.values() if work.advice}


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the evidence on the report (pytest-xdist carries it) and short verdicts into JUnit's properties."""
    worker, book = stash.worker_of(item.config), stash.book_of(item)
    _settle_pending(item, worker, book, cut_short=True)
    if worker.options.active:
        evidence = evidence_of(worker, stash.run_state_of(item.config), book, item)
        report.gpuperf = msgspec.json.encode(evidence).decode()  # type: ignore[attr-defined]
        if book.answers_for:  # beside its own
            found = [_evidence_of_book(one) for one in book.answers_for]
            report.gpuperf_shared = msgspec.json.encode(found).decode()  # type: ignore[attr-defined]
    if book.status == "static only":
        report.gpuperf_status = book.status  # type: ignore[attr-defined]
        item.user_properties.append(("gpuperf.status", book.status))
        if report.skipped and report.when == "call" and _was_gated(worker, book):
            report.outcome, report.longrepr = "passed", None  # what can be judged here was, and passed
        elif report.skipped and isinstance(report.longrepr, tuple) and report.longrepr[0] == __file__:
            report.longrepr = (*_place_of(item), report.longrepr[2])  # not the line here that raised it
    if settings_of(item).xfail is None:
        taken_back.fail_expected(report, _all_judgements(book), worker.options)
    if report.failed and book.memory:
        report.sections.append(("gpuperf: memory of the GPU", book.memory))
    if report.failed and book.red_signature:
        report.gpuperf_red, report.gpuperf_severity = book.red_signature, book.severity  # type: ignore[attr-defined]
        report.gpuperf_error = book.red_by_error  # type: ignore[attr-defined]
    for judgement in _all_judgements(book):
        kind = "" if judgement.kind in ("static", "time") else f".{judgement.kind}"
        name = f"gpuperf.{judgement.key.workload}.{judgement.target}{kind}"
        item.user_properties.append((visible(name), judgement.verdict.value))
    report.user_properties = list(item.user_properties)
    if report.failed and report.longrepr is not None:
        _add_section(report, book, worker)


def _was_gated(worker: Worker, book: TestBook) -> bool:
    """Whether machine code of this test was compared with a baseline, and nothing of it is open."""
    judged = _judgements(book, *book.shared)
    return worker.options.gates and any(one.verdict.is_pass for one in judged)


def _add_section(report: pytest.TestReport, book: TestBook, worker: Worker) -> None:
    """A test that failed by its own assertion still shows what the gate would have said."""
    failed = exit_policy.failures(_judgements(book, *book.answers_for), worker.options)
    text = _message(failed, worker, book) if failed else ""
    if text and text not in str(report.longrepr):
        report.sections.append(("gpuperf", text))


def _parameters(item: pytest.Item) -> dict[str, str]:
    """Those of a parametrised test that are numbers or text."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec is not None else {}
    return {name: str(value) for name, value in params.items() if isinstance(value, int | float | str)}


def evidence_of(worker: Worker, state: RunState, book: TestBook, item: pytest.Item) -> TestEvidence:
    """What this test found, as it travels."""
    found = msgspec.structs.replace(
        _evidence_of_book(book), parameters=_parameters(item), xfail=settings_of(item).xfail or "",
        self_pair=state.self_pair_readings.pop(item.nodeid, None),
    )  # fmt: skip
    if not any(workload.time for workload in found.workloads):
        return found
    return msgspec.structs.replace(
        found, device=worker.device.facts, session=worker.session,
        peaks=worker.measured_peaks,
        peak_bytes=worker.opened.memory().peak if worker.opened is not None and not book.faulted else 0,
    )  # fmt: skip


def _evidence_of_book(book: TestBook) -> TestEvidence:
    """What is known of a test or of a fixture that tests share, timed or not."""
    return TestEvidence(
        module=book.module, test=book.test, status=book.status, reason=book.reason,
        workloads=tuple(book.workloads.values()), unreached=book.unreached, whole=book.whole,
        cubins={sha256: zlib.compress(book.cubins[sha256]) for sha256 in sorted(book.unrecorded)},
    )  # fmt: skip
