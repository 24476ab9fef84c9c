"""Static judgement of what a test found, each workload on each target."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from pytest_gpuperf.advise.advisor import proven_causes, weigh
from pytest_gpuperf.baselines.lookup import static_baseline, under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.explain.comparison import Estimates, WorkloadComparison
from pytest_gpuperf.judge.same_work import explain, other_work
from pytest_gpuperf.judge.static_verdict import compare_static, missing_static
from pytest_gpuperf.judge.static_weight import LOCAL, weighed, weighed_by_time
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import UntimedWork
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.run import Run

MAY_CHANGE = (Verdict.SAME, Verdict.WORSE, Verdict.BETTER)
"""Verdicts that an estimate of the whole may outrank, or to which proven causes add: not those on unchanged code."""


def judge_static(
    run: Run, workload: WorkloadEvidence, workloads: Collection[WorkloadEvidence], estimates: Estimates
) -> WorkloadEvidence:
    """The workload with its static judgements put before the others; ``workloads`` are all of its test."""
    store, key, compiler = run.store, workload.key, workload.toolchain
    judged: dict[str, Judgement] = {}
    for arch, record in workload.static.items():
        old = static_baseline(store, arch, compiler, workload, workloads)
        if old is None:
            others = store.static(arch, key, compiler).other_toolchains
            judged[arch] = missing_static(key, arch, compiler, others)
        else:
            launched = under_recorded_launch(record, old, arch)
            judged[arch] = compare_static(key, arch, old, launched, toolchains=(compiler, compiler))
    changed = [arch for arch, one in judged.items() if one.verdict in MAY_CHANGE]
    if changed:
        judged |= _weighed(judged, changed, run, workload, workloads, estimates)
    found = same_work(run, workload, judged.values())
    return msgspec.structs.replace(workload, judgements=(*found, *workload.judgements))


def _weighed(
    judged: Mapping[str, Judgement],
    archs: Sequence[str],
    run: Run,
    workload: WorkloadEvidence,
    workloads: Collection[WorkloadEvidence],
    estimates: Estimates,
) -> dict[str, Judgement]:
    """The judgements on changed code for these architectures, weighed."""
    comparison = WorkloadComparison(run.store, estimates, workload, workload.toolchain, workloads, None)
    estimates.prepare(comparison.compared(arch) for arch in archs)
    found = {}
    for arch in archs:
        before, after = comparison.sides(arch)
        causes = proven_causes(before, after)
        cured = proven_causes(after, before) if _lost_local_memory(judged[arch]) else ()
        found[arch] = weighed(judged[arch], weigh(before, after), causes, cured)
    return found


def _lost_local_memory(judgement: Judgement) -> bool:
    """Whether it got worse in what may have been the price of a cure."""
    return any(change.direction == "worse" and change.what in LOCAL for change in judgement.changes)


def in_order(run: Run, workload: WorkloadEvidence) -> WorkloadEvidence:
    """The workload with what its measured time outranks as notes, and a slower time with what the code differs in."""
    if not run.has_gpu:
        return workload
    here = run.device.facts.arch
    judgements = weighed_by_time(workload.judgements, here)
    code = next((one.changes for one in judgements if (one.kind, one.target) == ("static", here)), ())
    judgements = tuple(
        msgspec.structs.replace(one, changes=code) if one.kind == "time" and one.verdict is Verdict.SLOWER else one
        for one in judgements
    )
    return msgspec.structs.replace(workload, judgements=judgements)


def unrecorded_cubins(store: BaselineStore, workload: WorkloadEvidence, *, updates: bool = False) -> set[str]:
    """SHA-256 of the cubins with machine code that the workload's baselines do not hold.

    A run that ``updates`` may have to put back one that is on record and lost.
    """
    found = set()
    for arch, record in workload.static.items():
        old = store.static(arch, workload.key, workload.toolchain).record
        held = old is not None and bool(old.cubin) and old.profile.code_hash == record.profile.code_hash
        if old is None or not held or (updates and not store.has_cubin(old.cubin)):
            found.add(record.cubin)
    return found


# --- work that no GPU times here ---------------------------------------------------------------------

RECORD_BY_NAME = ": record the baseline anew with pytest --update-baselines NODEID if that is intended, on a GPU"
"""By its name, since a GPU may find other work as fast as that on record, and what passes moves no record."""


def same_work(run: Run, workload: WorkloadEvidence, judged: Collection[Judgement]) -> Collection[Judgement]:
    """Judgements on machine code where no GPU times it: other work than that on record is NOT-COMPARABLE, and no pass.

    Machine code does not tell: the same code does other work on other arguments.  What a test made of the facts of a
    GPU is not compared, since without one they are those of a typical GPU.  UNCHANGED is SAME where the launch alone is
    another, which needs a timing run.  Raises ``BaselineError``.
    """
    identity, cache = workload.identity, workload.cache
    if run.has_gpu or identity is None or cache is None:
        return judged
    found = []
    for old in _on_record(run, workload):
        was = msgspec.structs.replace(old.identity, code=identity.code)  # the code is judged by itself
        caches = [] if old.cache == cache else [f"the cache state changed from {old.cache} to {cache}"]
        found.append(([*caches, *other_work(was, identity)], was))
    if not found:
        return judged
    differs, was = min(found, key=lambda one: (bool(one[0]), one[1].launch != identity.launch))
    other = "; ".join(differs) + (RECORD_BY_NAME if run.revision is None else "")
    launch = f"{explain(was, identity)}: its time will tell"

    def of_that_work(one: Judgement) -> Judgement:
        if not (one.verdict.is_pass or one.verdict is Verdict.BETTER):
            return one
        if differs:
            return msgspec.structs.replace(one, verdict=Verdict.NOT_COMPARABLE, reason=other)
        if was.launch != identity.launch and (one.verdict is Verdict.UNCHANGED or one.launch_changed):
            return msgspec.structs.replace(one, verdict=Verdict.SAME, reason=launch, launch_changed=True)
        return one

    return [of_that_work(one) for one in judged]


def _on_record(run: Run, workload: WorkloadEvidence) -> Iterator[UntimedWork]:
    """What was timed, or what a revision would run here: on a GPU that is told the same facts."""
    key = workload.key
    if run.revision is not None:
        if str(key) in run.revision.untimed:
            yield run.revision.untimed[str(key)]
    elif not workload.facts_asked:
        times = (run.store.time(device, key) for device in run.store.devices())
        yield from (UntimedWork(identity=one.identity, cache=one.cache) for one in times if one is not None)
