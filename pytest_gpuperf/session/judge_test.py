"""Judgement of one test by what it found: its verdicts, in order, the records that it continues, and the causes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from pytest_gpuperf.advise.limiting_resource import state_of
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.lookup import move_command, of_same_kernel, origin_of
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.explain.comparison import Estimates, WorkloadComparison, explain_each
from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.model.time_record import WorkloadRecords
from pytest_gpuperf.model.verdict import BESIDE, Judgement, Verdict
from pytest_gpuperf.revision.against import AGAINST, reworded
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.run import Run
from pytest_gpuperf.session.static_gate import in_order, judge_static, unrecorded_cubins
from pytest_gpuperf.test_record import AmbiguousKernel, CompiledKernel, TestRecord

EXPLAINED = frozenset({Verdict.SLOWER, Verdict.WORSE, Verdict.BETTER, Verdict.SAME})
"""Verdicts on changed code.  Where nothing that gates got worse, advice may know of something that did."""


def judge_test(config: pytest.Config, run: Run, test: TestRecord, *, stopped: bool, whole: bool) -> str:
    """Static judgements of a test that ``stopped`` early or ran to its end, ``whole``, and causes.

    Returns why a baseline cannot be read; empty if all of them can.
    """
    options = run.options
    if AGAINST in config.stash:
        config.stash[AGAINST].learn(test.node_id)
    try:
        if options.gates and not whole:  # it may have launched some of them later
            test.shared_kernels = [one for one in test.shared_kernels if _is_on_record(run, test, one)]
        if options.gates or isinstance(options.task, RevisionTask):
            for workload in test.unlaunched(stopped=stopped):
                test.add(workload)
        if isinstance(options.task, RevisionTask):
            test.unrecorded = set(test.cubins)
        if options.gates:
            _judge_static(run, test)
            _name_origins(config, run, test, whole=whole)
            if AGAINST in config.stash and test.unrecorded:
                config.stash[AGAINST].changed.add(test.node_id)
            if run.revision is not None:
                foreign = next(iter(foreign_files_of(config).lines()), "")
                for work in list(test.workloads.values()):
                    judgements = tuple(reworded(run.revision, one, foreign) for one in work.judgements)
                    test.add(msgspec.structs.replace(work, judgements=judgements))
        if not options.is_child:
            explain_test(run, test)
    except (BaselineError, AmbiguousKernel) as problem:
        return str(problem)
    return ""


def _is_on_record(run: Run, test: TestRecord, kernel: CompiledKernel) -> bool:
    """Whether a workload of this test launches a kernel of this name, or the kernel itself stands there."""
    return any(
        old.kernel == kernel.name
        for arch in kernel.static
        for old in run.store.of_test(arch, test.key(""), kernel.toolchain).values()
    )


def _judge_static(run: Run, test: TestRecord) -> None:
    estimates = Estimates(run.store, test.cubins, run.compile_cache)
    for workload in list(test.workloads.values()):
        unrecorded = unrecorded_cubins(run.store, workload, updates=run.options.update is not None)
        test.unrecorded |= unrecorded & test.cubins.keys()
        test.add(in_order(run, judge_static(run, workload, test.workloads.values(), estimates)))


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


# --- renamed workloads --------------------------------------------------------------------------------


def _name_origins(config: pytest.Config, run: Run, test: TestRecord, *, whole: bool) -> None:
    """Tell of every NEW workload of this test which record without a test has its machine code.

    ``whole``: the test ran to its end, so that records of its own that it did not reach count too.  A comparison with
    a revision has no other gate for a renamed test: equal code is UNCHANGED there, and other code of a kernel whose
    test is gone is NOT-COMPARABLE.  Raises ``BaselineError``.
    """
    fresh = [work for work in test.workloads.values() if any(map(_is_new, work.judgements))]
    found = run.results.found
    if not fresh or found is None:
        return
    if AGAINST in config.stash:
        config.stash[AGAINST].learn_rest()
    gone = {
        key: records
        for key, records in run.records.items()
        if found.lacks(config, key) or (whole and key.node_id == test.node_id and key.workload not in test.workloads)
    }
    target = run.device.facts.slug if run.has_gpu else ""
    for work in fresh:
        static = {(arch, work.toolchain): record for arch, record in work.static.items()}
        records = WorkloadRecords(static, {target: work.time} if work.time is not None else {})
        origin = origin_of(work.key, records, gone)
        if origin is not None:
            test.add(_renamed(work, origin, gone[origin], is_revision=run.revision is not None))
        elif run.revision is not None and (near := of_same_kernel(work.key, records, gone)):
            test.add(_not_comparable(work, near))


def _is_new(one: Judgement) -> bool:
    """A figure beside the time may be new of a workload that is recorded."""
    return one.verdict is Verdict.NEW and one.kind not in BESIDE


def _judged(work: WorkloadEvidence, judge: Callable[[Judgement], Judgement]) -> WorkloadEvidence:
    """The workload with the judgements that are NEW judged again."""
    judgements = tuple(judge(one) if _is_new(one) else one for one in work.judgements)
    return msgspec.structs.replace(work, judgements=judgements)


def _not_comparable(work: WorkloadEvidence, origins: Sequence[Key]) -> WorkloadEvidence:
    """A kernel of the same name went with its test, and this is other code: it may be a regression under a new name."""
    names = first_of([str(one) for one in origins], 2)
    reason = f"it has the kernel of {names}, which is gone, and other machine code: rename it in a change of its own"
    return _judged(work, lambda one: msgspec.structs.replace(one, verdict=Verdict.NOT_COMPARABLE, reason=reason))


def _renamed(work: WorkloadEvidence, origin: Key, records: WorkloadRecords, *, is_revision: bool) -> WorkloadEvidence:
    """Equal code that is launched alike cannot have regressed; without a time of the origin that is not known."""
    reason = f"was {origin}, with the same machine code"
    timed = any(
        work.identity is not None and work.identity.same_execution(one.identity) for one in records.times.values()
    )
    codes = {(arch, record.profile.code_hash) for (arch, _), record in records.static.items()}

    def judge(one: Judgement) -> Judgement:
        if not is_revision:
            remedy = f"run `{move_command(origin, work.key)}` to take its record along"
            return msgspec.structs.replace(one, reason=f"{reason}: {remedy}", renamed=True)
        record = work.static.get(one.target)
        same = timed if one.kind == "time" else record and (one.target, record.profile.code_hash) in codes
        verdict = Verdict.UNCHANGED if same else Verdict.NOT_COMPARABLE
        return msgspec.structs.replace(one, verdict=verdict, reason=reason)

    return msgspec.structs.replace(_judged(work, judge), was=origin)
