"""Static judgement of what a test found, each workload on each target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from pytest_gpuperf.advise.advisor import proven_causes, weigh
from pytest_gpuperf.baselines.lookup import static_baseline, under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.explain.comparison import Estimates, WorkloadComparison
from pytest_gpuperf.judge.static_verdict import compare_static, missing_static
from pytest_gpuperf.judge.static_weight import LOCAL, weighed, weighed_by_time
from pytest_gpuperf.model.result import WorkloadEvidence
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
            judged[arch] = missing_static(key, arch, compiler, store.compilers(arch, key))
        else:
            launched = under_recorded_launch(record, old, arch)
            judged[arch] = compare_static(key, arch, old, launched, toolchains=(compiler, compiler))
    changed = [arch for arch, one in judged.items() if one.verdict in MAY_CHANGE]
    if changed:
        judged |= _weighed(judged, changed, run, workload, workloads, estimates)
    return msgspec.structs.replace(workload, judgements=(*judged.values(), *workload.judgements))


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
        old = store.static(arch, workload.key, workload.toolchain)
        held = old is not None and bool(old.cubin) and old.profile.code_hash == record.profile.code_hash
        if old is None or not held or (updates and not store.has_cubin(old.cubin)):
            found.add(record.cubin)
    return found
