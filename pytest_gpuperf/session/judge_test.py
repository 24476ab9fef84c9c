"""Judgement of one test by what it found, and the causes of what changed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from pytest_gpuperf.advise.limiting_resource import state_of
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.compile.compiler_options import unoptimised_by
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.endings import AmbiguousKernel
from pytest_gpuperf.explain.estimates import Estimates
from pytest_gpuperf.explain.workload_comparison import WorkloadComparison, explain_each
from pytest_gpuperf.model.task import Revision, RevisionTask
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.revision.against import reworded
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.run import Run
from pytest_gpuperf.session.name_renames import name_origins
from pytest_gpuperf.session.not_reached import not_reached
from pytest_gpuperf.session.static_gate import in_order, judge_static, unrecorded_cubins
from pytest_gpuperf.test_record import CompiledKernel, TestRecord

EXPLAINED = frozenset({Verdict.SLOWER, Verdict.WORSE, Verdict.BETTER, Verdict.SAME})
"""Verdicts on changed code.  Where nothing that gates got worse, advice may know of something that did."""


def judge_test(config: pytest.Config, run: Run, test: TestRecord, *, stopped: bool, whole: bool) -> str:
    """Static judgements, what a test that ``stopped`` early or ran to its end, ``whole``, did not reach, and causes.

    Returns why a baseline cannot be read; empty if all of them can.
    """
    try:
        if isinstance(run.options.task, RevisionTask):
            _add_unlaunched(test, stopped=stopped)
            test.unrecorded = set(test.cubins)
        if run.options.gates:
            if not whole:  # it may have launched some of them later
                test.shared_kernels = [one for one in test.shared_kernels if _is_on_record(run, test, one)]
            _judge_static(run, test, stopped=stopped)
            name_origins(config, run, test, whole=whole)
            _judge_unreached(run, test, stopped=stopped, whole=whole)
            if run.revision is not None:
                _in_words_of(run.revision, test, foreign_files_of(config).lines())
        if not run.options.is_child:
            _name_unoptimised(test)
            explain_test(run, test)
    except (BaselineError, AmbiguousKernel) as problem:
        return str(problem)
    return ""


def _is_on_record(run: Run, test: TestRecord, kernel: CompiledKernel) -> bool:
    """Whether a workload of this test launches a kernel of this name, or the kernel itself stands there."""
    return any(
        old.kernel == kernel.name
        for arch in kernel.static
        for old in run.store.static_tests(arch, test.module, kernel.toolchain).get(test.test, {}).values()
    )


def _judge_static(run: Run, test: TestRecord, *, stopped: bool) -> None:
    _add_unlaunched(test, stopped=stopped)
    estimates = Estimates(run.store, test.cubins, run.compile_cache)
    for workload in list(test.workloads.values()):
        unrecorded = unrecorded_cubins(run.store, workload, updates=run.options.update is not None)
        test.unrecorded |= unrecorded & test.cubins.keys()
        test.add(in_order(run, judge_static(run, workload, test.workloads.values(), estimates)))


def _add_unlaunched(test: TestRecord, *, stopped: bool) -> None:
    """Let the evidence have every kernel of the test."""
    for workload in test.unlaunched(stopped=stopped):
        test.add(workload)


def _name_unoptimised(test: TestRecord) -> None:
    """Let the evidence of kernels, and of what launches them, have the option that keeps them from being optimised."""
    kernels = [*test.kernels, *test.shared_kernels]
    options = [(kernel, option) for kernel in kernels if (option := unoptimised_by(kernel.options))]
    for workload in list(test.workloads.values()) if options else ():
        option = next((option for kernel, option in options if kernel.is_launched_by(workload)), "")
        test.add(msgspec.structs.replace(workload, unoptimised=option))


def _in_words_of(revision: Revision, test: TestRecord, foreign: Sequence[str]) -> None:
    for workload in list(test.workloads.values()):
        judgements = tuple(reworded(revision, one, next(iter(foreign), "")) for one in workload.judgements)
        test.add(msgspec.structs.replace(workload, judgements=judgements))


def _judge_unreached(run: Run, test: TestRecord, *, stopped: bool, whole: bool) -> None:
    """An update of a whole test leaves records that it has no workload for to ``--update-baselines=all``."""
    if not stopped and (not whole or run.options.update is not None):
        return
    named_by_origin = run.options.new == "fail" or run.revision is not None
    renamed = {work.was for work in test.workloads.values()} if named_by_origin else set()
    test.unreached = tuple(one for one in not_reached(run, test, stopped=stopped) if one.key not in renamed)


def explain_test(run: Run, test: TestRecord) -> None:
    """Name the causes of what changed in this test; of every workload, and its state, if the run asks for it.

    Raises ``BaselineError``.
    """
    asked = [
        work
        for work in test.workloads.values()
        if run.options.explain or any(judgement.verdict in EXPLAINED for judgement in work.judgements)
    ]
    if not asked:
        return
    compiler = toolchain() if any(work.static for work in asked) else ""
    facts = run.device.facts if run.has_gpu else None
    store, workloads = run.store, test.workloads.values()
    estimates = Estimates(store, test.cubins, run.compile_cache)
    comparisons = [
        WorkloadComparison(store, estimates, work, compiler if work.static else "", workloads, facts) for work in asked
    ]
    for work, found in zip(asked, explain_each(estimates, comparisons), strict=True):
        test.add(msgspec.structs.replace(work, advice=found.advice, state=state_of(found.after, run.measured_peaks)))
