"""Causes of what changed in a test, put to its evidence."""

from __future__ import annotations

import msgspec

from pytest_gpuperf.advise.limiting_resource import state_of
from pytest_gpuperf.compile.version import toolchain
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.explain.estimates import Estimates
from pytest_gpuperf.explain.workload_comparison import WorkloadComparison, explain_each
from pytest_gpuperf.model.verdict import Verdict

TELLING = frozenset({Verdict.SLOWER, Verdict.WORSE, Verdict.BETTER, Verdict.SAME})
"""Verdicts on what is not what it was.  Where nothing that gates got worse, advice may know of something that did."""


def advise_test(worker: Worker, book: TestBook) -> None:
    """Name the causes of what changed in this test; of every workload, and its state, if the run asks for it.

    Raises ``BaselineError``.
    """
    asked = [
        work
        for work in book.workloads.values()
        if worker.options.explain or any(judgement.verdict in TELLING for judgement in work.judgements)
    ]
    if not asked:
        return
    compiler = toolchain() if any(work.static for work in asked) else ""
    facts = worker.device.facts if worker.has_gpu else None
    store, workloads = worker.store, book.workloads.values()
    estimates = Estimates(store, book.cubins, worker.compile_cache)
    comparisons = [
        WorkloadComparison(store, estimates, work, compiler if work.static else "", workloads, facts) for work in asked
    ]
    for work, found in zip(asked, explain_each(estimates, comparisons), strict=True):
        state = state_of(found.after, worker.measured_peaks)
        book.add(msgspec.structs.replace(work, advice=found.advice, state=state))
