"""Static judgement of what a test found, each workload on each target, and what it did not come to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from pytest_gpuperf.advise.advisor import weigh
from pytest_gpuperf.advise.proven import proven_causes
from pytest_gpuperf.baselines.lookup import static_baseline, under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.version import toolchain
from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.explain.estimates import Estimates
from pytest_gpuperf.explain.workload_comparison import WorkloadComparison
from pytest_gpuperf.judge.static_verdict import SUPERSEDED, accepted_elsewhere, compare_static, missing_static
from pytest_gpuperf.judge.static_weight import LOCAL, is_decided_by_weight, weighed, weighed_by_time
from pytest_gpuperf.model.evidence import StaticRecord, TimeRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import BESIDE_FIELDS, Change, EvidenceKind, Judgement, Verdict
from pytest_gpuperf.session.recorded_work import as_recorded


def judge_static(
    worker: Worker, workload: WorkloadEvidence, workloads: Collection[WorkloadEvidence], estimates: Estimates
) -> WorkloadEvidence:
    """The workload with its static judgements put before the others; ``workloads`` are all of its test."""
    store, key, compiler = worker.store, workload.key, workload.toolchain
    judged: dict[str, Judgement] = {}
    olds: dict[str, StaticRecord] = {}
    for arch, record in workload.static.items():
        old = static_baseline(store, arch, compiler, workload, workloads)
        if old is None:
            others = store.static(arch, key, compiler).other_toolchains
            judged[arch] = missing_static(key, arch, compiler, others)
        else:
            olds[arch] = old
            launched = under_recorded_launch(record, old, arch)
            judged[arch] = compare_static(key, arch, old, launched, toolchains=(compiler, compiler))
    changed = [arch for arch, one in judged.items() if _may_change(one, worker.options)]
    if changed:
        judged |= _weighed(judged, changed, worker, workload, workloads, estimates)
    if any(found.verdict in SUPERSEDED for found in judged.values()):
        judged = _accepted_elsewhere(store, judged, workload, olds)
    found = as_recorded(worker, workload, judged.values())
    return msgspec.structs.replace(workload, judgements=(*found, *workload.judgements))


def _accepted_elsewhere(
    store: BaselineStore, judged: Mapping[str, Judgement], workload: WorkloadEvidence,
    olds: Mapping[str, StaticRecord],
) -> dict[str, Judgement]:  # fmt: skip
    """The judgements, less what another toolchain that the team declares has on record as accepted."""
    compiler, declared = workload.toolchain, store.toolchains()
    if compiler not in declared:
        return dict(judged)
    found = {}
    for arch, judgement in judged.items():
        records = {name: store.static(arch, workload.key, name).record for name in declared if name != compiler}
        others = {name: record for name, record in records.items() if record is not None}
        found[arch] = accepted_elsewhere(judgement, workload.static[arch], olds.get(arch), compiler, others)
    return found


def _may_change(one: Judgement, options: Options) -> bool:
    """Whether an estimate of the whole may outrank this verdict, or proven causes add to it: not on unchanged code."""
    differs = one.verdict in (Verdict.SAME, Verdict.WORSE, Verdict.BETTER)
    return differs and (options.static_causes == "exact" or is_decided_by_weight(one))


def _weighed(
    judged: Mapping[str, Judgement],
    archs: Sequence[str],
    worker: Worker,
    workload: WorkloadEvidence,
    workloads: Collection[WorkloadEvidence],
    estimates: Estimates,
) -> dict[str, Judgement]:
    """The judgements on changed code for these architectures, weighed."""
    comparison = WorkloadComparison(worker.store, estimates, workload, workload.toolchain, workloads, None)
    estimates.prepare(each for arch in archs for each in comparison.wanted_estimates(arch))
    found = {}
    for arch in archs:
        sides = list(comparison.estimated_sides(arch))
        weights = [weight for before, after in sides if (weight := weigh(before, after)) is not None]
        causes: tuple[Change, ...] = ()
        cured: tuple[Change, ...] = ()
        if worker.options.static_causes == "exact":
            causes = next(filter(None, (proven_causes(before, after) for before, after in sides)), ())
            if _lost_local_memory(judged[arch]):
                cured = next(filter(None, (proven_causes(after, before) for before, after in sides)), ())
        found[arch] = weighed(judged[arch], weights, causes, cured)
    return found


def _lost_local_memory(judgement: Judgement) -> bool:
    """Whether it got worse in what may have been the price of a cure."""
    return any(change.direction == "worse" and change.what in LOCAL for change in judgement.changes)


def in_order(worker: Worker, workload: WorkloadEvidence) -> WorkloadEvidence:
    """The workload with what its measured time outranks as notes."""
    if not worker.has_gpu:
        return workload
    judgements = weighed_by_time(workload.judgements, worker.device.facts.arch)
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


ENDED_AT = {"static only": "a GPU", "checked only": "a time or a counter that this run does not take"}
"""What a test that stopped early needed, by its status."""
PUT_BEHIND = "Put what needs times or data behind the last gpuperf(...) and cuda_kernel(...)"

PASSED_WITHOUT = (
    "the test passed without it. Let it come to cuda_kernel(...) or gpuperf(...) again; if it is meant to go: "
    "pytest --update-baselines=all, on a GPU; after a renaming: gpuperf baselines mv OLD NEW"
)
PASSED_WITHOUT_THEIRS = (
    "the test passed without it. Let it come to cuda_kernel(...) or gpuperf(...) again; if it is meant to go, give the "
    "test that does without it a name of its own"
)
WITHOUT_CODE = (
    "has a baseline of its machine code and brings none for this architecture. Launch a kernel of cuda_kernel(...), "
    "without an arch= that leaves it out, or hand over code for it too; if it is meant to go: gpuperf baselines rm NAME"
)
CAUGHT = "its measurement did not come to an end: gpuperf(...) raised, and the test caught that. Let it fail the test"
UNFINISHED = f"has a baseline, and {CAUGHT}"
NEVER_TIMED = f"has no baseline of its time, and {CAUGHT}"


def unreached(worker: Worker, book: TestBook, *, stopped: bool = True) -> list[Judgement]:
    """NOT-MEASURED for all on record that a test did not come to, ``stopped`` early or ended without it.

    A workload that it did come to lacks what was not judged: machine code, its time, on record or not, or a figure
    beside that.  Asked after the static judgement.  A workload that is timed on other GPU models and not on this one,
    as others of its test are, is not this GPU's.  Raises ``BaselineError``.
    """
    passed = PASSED_WITHOUT if worker.revision is None else PASSED_WITHOUT_THEIRS
    why = f"the test ended at its first need for {ENDED_AT[book.status]}. {PUT_BEHIND}" if stopped else passed
    where = "has a baseline" if worker.revision is None else f"is in {worker.revision.name}"
    reason = f"{where} and was not reached: {why}"
    for_want_of_gpu = stopped and book.status == "static only"
    missed = dict.fromkeys([*_unreached_static(worker, book), *_unreached_times(worker, book)])
    never = [] if stopped else [one for one in _never_launched(worker, book) if one not in missed]
    return [
        Judgement(key=book.key(name), target=target, kind=kind, verdict=Verdict.NOT_MEASURED,
                  reason=why_unjudged or reason,
                  for_want_of_gpu=(for_want_of_gpu or (target, kind, name) in never) and not why_unjudged)
        for target, kind, name in (*missed, *never)
        if not _is_of_another_gpu(worker, book, name)
        for why_unjudged in [_why_unjudged(worker, book, target, kind, name)]
    ]  # fmt: skip


def _why_unjudged(worker: Worker, book: TestBook, target: str, kind: EvidenceKind, name: str) -> str:
    """What kept a workload that the test did come to from a verdict; empty where it did not come there."""
    if name not in book.workloads or not book.workloads[name].launched:
        return ""
    if kind == "static":
        return WITHOUT_CODE
    return UNFINISHED if name in _timed(worker, book, target) else NEVER_TIMED


def _timed(worker: Worker, book: TestBook, target: str) -> Mapping[str, TimeRecord]:
    """Times on record of the test's workloads, by name."""
    return worker.store.time_tests(target, book.module).get(book.test, {})


def _is_of_another_gpu(worker: Worker, book: TestBook, name: str) -> bool:
    if not worker.has_gpu:
        return False
    mine, store = worker.device.facts.slug, worker.store
    timed = {target: store.time_tests(target, book.module).get(book.test, {}) for target in store.devices()}
    here = timed.pop(mine, {})
    return bool(here) and name not in here and any(name in of for of in timed.values())


def _unreached_static(worker: Worker, book: TestBook) -> Iterator[tuple[str, EvidenceKind, str]]:
    for arch in worker.expected_archs:
        for compiler in _toolchains(book):
            recorded = worker.store.static_tests(arch, book.module, compiler).get(book.test, {})
            stood_for = set(_stood_for(worker.store, book, arch, compiler))
            for name, old in recorded.items():
                if (old.kernel, old.profile.code_hash) not in stood_for and not _has_code(worker, book, name, arch):
                    yield arch, "static", name


def _has_code(worker: Worker, book: TestBook, name: str, arch: str) -> bool:
    """Whether the workload came with machine code for this architecture, or another one may have been chosen for it.

    A GPU decides what a test compiles for it, and Triton compiles for one at a time.
    """
    work = book.workloads.get(name)
    if work is None:
        return False
    return arch in work.static or (bool(work.static) and (worker.has_gpu or _is_by_triton(work)))


def _is_by_triton(work: WorkloadEvidence) -> bool:
    return work.toolchain.lower().startswith("triton")


def _stood_for(store: BaselineStore, book: TestBook, arch: str, toolchain: str) -> Iterator[tuple[str, str]]:
    """Kernel and code of the baselines that kernels without a launch were compared with, a fixture's included."""
    for one in (book, *book.shared):
        workloads = one.workloads.values()
        for work in workloads:
            if arch in work.static and not work.launched and work.toolchain == toolchain:
                old = static_baseline(store, arch, toolchain, work, workloads)
                if old is not None:
                    yield old.kernel, old.profile.code_hash


def _toolchains(book: TestBook) -> set[str]:
    """This run's compilers, as far as they are known."""
    found = {work.toolchain for work in book.workloads.values() if work.toolchain}
    try:
        return {*found, toolchain()}
    except ToolchainMissing:  # nothing of NVRTC's can be compared here, reached or not
        return found


def _never_launched(worker: Worker, book: TestBook) -> Iterator[tuple[str, EvidenceKind, str]]:
    """What no GPU could time, since the test launches nothing of these names, which are on record or in the revision.

    Not where the test asked whether there is a GPU; a revision is told the same of one.
    """
    if worker.has_gpu:
        return
    if worker.revision is not None:
        for name in worker.revision.launched_by(book.module, book.test):
            if name not in book.workloads or not book.workloads[name].launched:
                yield from ((arch, "static", name) for arch in worker.expected_archs)
    elif not worker.gpu.facts_asked:
        for target in worker.store.devices():
            for name in _timed(worker, book, target):
                if name not in book.workloads or not book.workloads[name].launched:
                    yield target, "time", name


def _unreached_times(worker: Worker, book: TestBook) -> Iterator[tuple[str, EvidenceKind, str]]:
    if worker.has_gpu:
        target = worker.device.facts.slug
        recorded = _timed(worker, book, target)
        for name, work in book.workloads.items():
            if work.launched and name not in recorded and all(one.kind != "time" for one in work.judgements):
                yield target, "time", name
        for name, old in recorded.items():
            judged = {one.kind for one in book.workloads[name].judgements} if name in book.workloads else set()
            if "time" not in judged:
                yield target, "time", name
                continue
            for kind, field in BESIDE_FIELDS.items():
                if kind not in judged and getattr(old.beside, field, None) is not None:
                    yield target, kind, name
