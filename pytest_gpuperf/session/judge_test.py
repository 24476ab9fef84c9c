"""Judgement of one test by its evidence: its verdicts, in order, the records that it continues, and the causes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from pytest_gpuperf.advise.advisor import estimate_change, proven_causes
from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.advise.roofs import change_of_limit
from pytest_gpuperf.baselines import lookup
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.machine_code.occupancy import why_unfit
from pytest_gpuperf.explain import Estimates, WorkloadComparison, explain_each
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.judge.static_verdict import compare_static, missing_static
from pytest_gpuperf.judge.static_weight import LOCAL, overridden_by_time, with_estimate
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.model.time_record import WorkloadRecords
from pytest_gpuperf.model.verdict import SECONDARY, Change, Judgement, Verdict
from pytest_gpuperf.revision.against import AGAINST, reworded
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.run import Run
from pytest_gpuperf.session.callable_kernels import kernel_notes
from pytest_gpuperf.test_record import TestRecord, UnlaunchedKernel


def may_change(judgement: Judgement) -> bool:
    """On changed code, that fits: an estimate of the whole may outrank it, and proven causes add to it."""
    return judgement.fits and judgement.verdict in (Verdict.SAME, Verdict.WORSE, Verdict.BETTER)


def judge_test(run: Run, test: TestRecord) -> str:
    """Static judgements of a test that ran to its end or stopped early, and causes.

    Returns why a baseline cannot be read; empty if all of them can.
    """
    options, revision, against = run.options, run.revision, run.config.stash.get(AGAINST, None)
    if against is not None:
        against.learn(test.node_id)
    try:
        estimates = Estimates(
            run.store, test.cubins, run.compile_cache, updates=options.update is not None, root=run.config.rootpath,
            listings=run.listings,
        )  # fmt: skip
        compares = test.compares and options.update is None
        if options.gates and (compares or not test.whole):  # it may have launched some of them later
            test.shared_kernels = [one for one in test.shared_kernels if _is_on_record(run, test, one)]
        if options.gates and compares:
            test.kernels = [one for one in test.kernels if _is_on_record(run, test, one)]
        if options.gates or isinstance(options.task, RevisionTask):
            test.drop_own_kernels()
            for workload in test.unlaunched():
                test.add(workload)
        if isinstance(options.task, RevisionTask):
            test.unrecorded = set(test.cubins)
        if options.gates:
            for workload in judge_static(test, estimates):
                unrecorded = unrecorded_cubins(run.store, workload, updates=options.update is not None)
                test.unrecorded |= unrecorded & test.cubins.keys()
                test.add(workload)
            for workload in list(test.workloads.values()):
                test.add(in_order(run, workload, test))
            _name_origins(run, test)
            if revision is not None:
                foreign = next(iter(foreign_files_of(run.config).lines()), "")
                for work in list(test.workloads.values()):
                    test.add(_judged(work, [reworded(revision, one, foreign) for one in work.judgements]))
        if not options.is_child:
            explain_test(run, test, estimates)
    except BaselineError as problem:
        return str(problem)
    return ""


def _is_on_record(run: Run, test: TestRecord, kernel: UnlaunchedKernel) -> bool:
    """Whether a workload of this test launches a kernel of this name, or the kernel itself stands there."""
    return any(
        old.kernel == kernel.name
        for arch in kernel.static
        for old in run.store.of_test(arch, test.key(""), kernel.toolchain).values()
    )


def _judged(work: WorkloadEvidence, judgements: Iterable[Judgement]) -> WorkloadEvidence:
    return msgspec.structs.replace(work, judgements=tuple(judgements))


def judge_static(test: TestRecord, estimates: Estimates) -> list[WorkloadEvidence]:
    """The workloads with their static judgements first, those on changed code corrected by estimates.

    One run of nvdisasm reads the changed code of them all.  Raises ``BaselineError``.
    """
    workloads = test.workloads.values()
    comparisons = [WorkloadComparison(estimates, work, workloads, None) for work in workloads]
    judged = [(one, list(_by_records(one))) for one in comparisons]
    estimates.prepare(one.compared(arch) for one, found in judged for arch, _, is_open in found if is_open)
    return [
        _judged(one.work, [
            *(_weighed(judgement, *one.sides(arch)) if is_open else judgement for arch, judgement, is_open in found),
            *one.work.judgements,
        ])
        for one, found in judged
    ]  # fmt: skip


def _by_records(comparison: WorkloadComparison) -> Iterator[tuple[str, Judgement, bool]]:
    """The judgement on each architecture by figures alone, and whether an estimate may correct it."""
    work = comparison.work
    for arch, record in work.static.items():
        old, compiler = lookup.baseline_of_any_compiler(comparison.estimates.store, arch, work, comparison.workloads)
        if record.captured and old is None:
            continue
        if old is None:
            launched, found = record, missing_static(work.key, arch)
        else:
            launched = lookup.under_recorded_launch(record, old, arch)
            found = compare_static(work.key, arch, old, launched, toolchains=(compiler, work.toolchain))
        if unfit := "" if record.captured else why_unfit(launched, arch):
            found = msgspec.structs.replace(found, verdict=Verdict.WORSE, reason=unfit, fits=False)
        yield arch, found, compiler == work.toolchain and may_change(found)


def _weighed(judgement: Judgement, before: Side, after: Side) -> Judgement:
    """The judgement corrected by estimates of both versions, and by what the machine code proves."""
    is_price = any(one.direction == "worse" and one.what in LOCAL for one in judgement.changes)
    cured = proven_causes(after, before) if is_price else ()  # local memory may have been the price of a cure
    return with_estimate(judgement, estimate_change(before, after), proven_causes(before, after), cured)


def in_order(run: Run, work: WorkloadEvidence, test: TestRecord) -> WorkloadEvidence:
    """The workload with verdicts that its time overrides as notes; a slower time gets the changes of the code.

    The time of a kernel that callables launch is theirs.
    """
    if not run.has_gpu:
        return work
    here, codes = run.device.facts.arch, {record.profile.code_hash for record in work.static.values()}
    launching = [one for one in test.workloads.values() if any(kernel.code in codes for kernel in one.kernels)]
    times = [one.time_judgement for one in ([work] if work.time_judgement is not None else launching)]
    judgements = overridden_by_time(work.judgements, [one for one in times if one is not None], here)
    if work.time_judgement is None:
        return _judged(work, judgements)
    code = next((one.changes for one in judgements if (one.kind, one.target) == ("static", here)), ())
    notes = _kernel_notes(run, work, test, here) if work.kernels else []
    return _judged(work, [
        msgspec.structs.replace(
            one, changes=code if one.verdict is Verdict.SLOWER else one.changes, notes=(*notes, *one.notes)
        ) if one.kind == "time" else one
        for one in judgements
    ])  # fmt: skip


MOST_FIGURES = 2
"""Changes of a kernel that a note on its callable names."""


def _kernel_notes(run: Run, work: WorkloadEvidence, test: TestRecord, here: str) -> list[str]:
    """Which kernels of a callable differ from those of its baseline, and which are not recorded."""
    own = [one for one in test.workloads.values() if one.is_captured and one.owner == work.key and here in one.static]
    changes: dict[str, Sequence[Change]] = {}
    for one in own:
        found = [change for judged in one.judgements if judged.target == here for change in judged.changes]
        name = one.key.workload.removeprefix(f"{work.key.workload}: ")
        changes[name] = ([change for change in found if change.direction != "neutral"] or found)[:MOST_FIGURES]
    passes = work.time_judgement is None or work.time_judgement.verdict.is_pass
    notes = list(kernel_notes(work.kernels, work.baseline_kernels, changes, passes=passes))
    if not passes and work.time is not None and work.time.timer == "elapsed" and work.baseline_kernels:
        now, before = (sum(each.values()) for each in (work.time.kernel_breakdown, work.baseline_kernels))
        notes.append(f"the sum of its kernels and copies is x{now / before:.3g}; the rest is overlap and gaps")
    new = [one for one in own if not one.judgements]
    if new and run.revision is None:
        notes.append(f"the machine code of {numbered(len(new), 'kernel')} has no record: pytest --update-baselines=new")
    return notes


def unrecorded_cubins(store: BaselineStore, workload: WorkloadEvidence, *, updates: bool = False) -> set[str]:
    """SHA-256 of the cubins with machine code that the workload's baselines do not hold.

    A run that ``updates`` needs each cubin that is not in the store, whatever code it has.
    """
    if updates:
        return {record.cubin for record in workload.static.values() if not store.has_cubin(record.cubin)}
    return {
        record.cubin
        for arch, record in workload.static.items()
        if (old := store.static(arch, workload.key, workload.toolchain)) is None
        or not (old.cubin and old.profile.code_hash == record.profile.code_hash)
    }


def explain_test(run: Run, test: TestRecord, estimates: Estimates) -> None:
    """Name the causes of the changes in this test.  Raises ``BaselineError``."""
    workloads = test.workloads.values()
    asked = [
        one
        for one in workloads
        if any(judged.verdict is Verdict.SLOWER or may_change(judged) for judged in one.judgements)
    ]
    facts = run.device.facts if asked and run.has_gpu else None
    comparisons = [WorkloadComparison(estimates, work, workloads, facts) for work in asked]
    peak = run.measured_peaks.get
    for work, (before, after, advice) in zip(asked, explain_each(estimates, comparisons), strict=True):
        remark = change_of_limit(before, after, lambda roof: peak(roof, 0.0)) if before is not None else ""
        judged = [
            msgspec.structs.replace(one, notes=(*one.notes, remark)) if remark and one.kind == "time" else one
            for one in work.judgements
        ]
        test.add(msgspec.structs.replace(_judged(work, judged), advice=advice))


# --- renamed workloads --------------------------------------------------------------------------------


def _name_origins(run: Run, test: TestRecord) -> None:
    """Tell of every NEW workload of this test which record without a test has its machine code.

    If it ran to its end, records of its own that it did not reach count too.  A comparison with a revision has no
    other gate for a renamed test: equal code is UNCHANGED there, and other code of a kernel whose test is missing is
    NOT-COMPARABLE.  Raises ``BaselineError``.
    """
    fresh = [work for work in test.workloads.values() if any(map(_is_new, work.judgements))]
    found = run.results.found
    if not fresh or found is None:
        return
    if AGAINST in run.config.stash:
        run.config.stash[AGAINST].learn_rest()
    missing = {
        key: records
        for key, records in run.store.workloads().items()
        if found.lacks(run.config, key)
        or (test.whole and key.node_id == test.node_id and key.workload not in test.workloads)
    }
    target = run.device.facts.slug if run.has_gpu else ""
    for work in fresh:
        static = {(arch, work.toolchain): record for arch, record in work.static.items()}
        records = WorkloadRecords(static, {target: work.time} if work.time is not None else {})
        origin = lookup.origin_of(work.key, records, missing)
        near = lookup.of_same_kernel(work.key, records, missing) if origin is None and run.revision is not None else []
        if origin is not None:
            judge = functools.partial(_of_origin, work, origin, missing[origin], is_revision=run.revision is not None)
            work = msgspec.structs.replace(work, was=origin)
        elif near:
            judge = functools.partial(_of_another, near)
        else:
            continue
        test.add(_judged(work, [judge(one) if _is_new(one) else one for one in work.judgements]))


def _is_new(one: Judgement) -> bool:
    """A secondary metric may be new of a workload that is recorded."""
    return one.verdict is Verdict.NEW and one.kind not in SECONDARY


def _of_another(origins: Sequence[Key], one: Judgement) -> Judgement:
    """A kernel of the same name went with its test, and this is other code: it may be a regression under a new name."""
    names = first_of([str(one) for one in origins], 2)
    reason = f"it has the kernel of {names}, which is missing, with other machine code: rename it in its own commit"
    return msgspec.structs.replace(one, verdict=Verdict.NOT_COMPARABLE, reason=reason)


def _of_origin(
    work: WorkloadEvidence, origin: Key, records: WorkloadRecords, one: Judgement, *, is_revision: bool
) -> Judgement:
    """Equal code that is launched alike cannot have regressed; without a time of the origin that is not known."""
    reason, record, identity = f"was {origin}, with the same machine code", work.static.get(one.target), work.identity
    if not is_revision:
        remedy = f"run `{lookup.move_command(origin, work.key)}` to move its baseline along"
        return msgspec.structs.replace(one, reason=f"{reason}: {remedy}", renamed=True)
    if one.kind == "time":
        same = identity is not None and any(identity.same_execution(old.identity) for old in records.times.values())
    else:
        codes = {(arch, old.profile.code_hash) for (arch, _), old in records.static.items()}
        same = record is not None and (one.target, record.profile.code_hash) in codes
    return msgspec.structs.replace(one, verdict=Verdict.UNCHANGED if same else Verdict.NOT_COMPARABLE, reason=reason)
