"""Judgement of one book: a test's, or that of a fixture which tests share."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.compile.nvrtc_options import unoptimised_by
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.kernel_labels import AmbiguousKernel
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.explain.estimates import Estimates
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.session import advise_test
from pytest_gpuperf.session.compare_revision import reworded
from pytest_gpuperf.session.follow_renames import name_origins
from pytest_gpuperf.session.static_gate import in_order, judge_static, unreached, unrecorded_cubins


def judge_book(config: pytest.Config, worker: Worker, book: TestBook, *, stopped: bool, whole: bool) -> str:
    """Static judgements, what a test that ``stopped`` early or ran to its end, ``whole``, did not come to, and causes.

    Returns why a baseline cannot be read; empty if all of them can.
    """
    try:
        if isinstance(worker.options.task, RevisionTask):
            worker.visited.add(Path.cwd().resolve())
            _add_unlaunched(book, stopped=stopped)
            book.unrecorded = set(book.cubins)
        if worker.options.gates:
            _judge_static(worker, book, stopped=stopped)
            name_origins(config, worker, book, whole=whole)
            _judge_unreached(worker, book, stopped=stopped, whole=whole)
            if worker.revision is not None:
                _in_words_of(worker.revision, book)
        if not worker.options.is_child:
            _name_unoptimised(book)
            advise_test.advise_test(worker, book)
    except (BaselineError, AmbiguousKernel) as problem:
        return str(problem)
    return ""


def _judge_static(worker: Worker, book: TestBook, *, stopped: bool) -> None:
    _add_unlaunched(book, stopped=stopped)
    estimates = Estimates(worker.store, book.cubins, worker.compile_cache)
    for workload in list(book.workloads.values()):
        unrecorded = unrecorded_cubins(worker.store, workload, updates=worker.options.update is not None)
        book.unrecorded |= unrecorded & book.cubins.keys()
        book.add(in_order(worker, judge_static(worker, workload, book.workloads.values(), estimates)))


def _add_unlaunched(book: TestBook, *, stopped: bool) -> None:
    """Let the evidence have every kernel of the test."""
    for workload in book.unlaunched(stopped=stopped):
        book.add(workload)


def _name_unoptimised(book: TestBook) -> None:
    """Let the evidence of kernels, and of what launches them, have the option that keeps them from being optimised."""
    kernels = [kernel for one in (book, *book.shared) for kernel in one.kernels]
    options = [(kernel, option) for kernel in kernels if (option := unoptimised_by(kernel.options))]
    for workload in list(book.workloads.values()) if options else ():
        option = next((option for kernel, option in options if kernel.is_launched_by(workload)), "")
        book.add(msgspec.structs.replace(workload, unoptimised=option))


def _in_words_of(revision: Revision, book: TestBook) -> None:
    for workload in list(book.workloads.values()):
        judgements = tuple(reworded(revision, one) for one in workload.judgements)
        there = revision.tolerances.get(str(workload.key))
        book.add(msgspec.structs.replace(workload, judgements=judgements, tolerance_there=there))


def _judge_unreached(worker: Worker, book: TestBook, *, stopped: bool, whole: bool) -> None:
    """An update of a whole test leaves records that it has no workload for to ``--update-baselines=all``."""
    if not stopped and (not whole or worker.options.update is not None):
        return
    told_by_new_name = worker.options.missing == "fail" or worker.revision is not None
    renamed = {work.was for work in book.workloads.values()} if told_by_new_name else set()
    book.unreached = tuple(one for one in unreached(worker, book, stopped=stopped) if one.key not in renamed)
