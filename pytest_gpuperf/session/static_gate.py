"""Static judgement of what a test found, each workload on each target, and what it did not come to."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from pytest_gpuperf.baselines.lookup import of_the_kernel, of_the_same_code, recorded_under_another_name
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile import ToolchainMissing, toolchain
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge.static_verdict import compare_static, missing_static
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict


def judge_static(
    worker: Worker, workload: WorkloadEvidence, workloads: Collection[WorkloadEvidence], *, stopped: bool = False
) -> WorkloadEvidence:
    """The workload with its static judgements put before the others.

    ``workloads`` are all of its test.  ``stopped``: the test did not come to its end, where a
    later kernel may have the name of this one.
    """
    judged = tuple(
        _judge(worker, workload, arch, record, workloads, stopped) for arch, record in workload.static.items()
    )
    return msgspec.structs.replace(workload, judgements=(*judged, *workload.judgements))


def unrecorded_cubins(store: BaselineStore, workload: WorkloadEvidence) -> set[str]:
    """SHA-256 of the cubins with machine code that the workload's baselines do not hold."""
    found = set()
    for arch, record in workload.static.items():
        old = store.static(arch, workload.key, workload.toolchain).record
        if old is None or not old.cubin or old.profile.code_hash != record.profile.code_hash:
            found.add(record.cubin)
    return found


def _judge(
    worker: Worker,
    workload: WorkloadEvidence,
    arch: str,
    record: StaticRecord,
    workloads: Collection[WorkloadEvidence],
    stopped: bool,
) -> Judgement:
    compiler = workload.toolchain
    found = worker.store.static(arch, workload.key, compiler)
    old = found.record
    if old is not None and stopped and not workload.launched:
        old = of_the_same_code(of_the_kernel(worker.store, arch, compiler, workload.key, record), record) or old
    if old is None and not workload.launched:
        old = recorded_under_another_name(worker.store, arch, compiler, workload.key, record, workloads)
    if old is None:
        return missing_static(workload.key, arch, compiler, found.other_toolchains)
    return compare_static(workload.key, arch, old, record)


ENDED_AT = {"static only": "a GPU", "checked only": "a time or a counter that this run does not take"}
"""What a test that stopped early needed, by its status."""
PUT_BEHIND = "Put what needs times or data behind the last gpuperf(...) and cuda_kernel(...)"


def unreached(worker: Worker, book: TestBook) -> list[Judgement]:
    """NOT-MEASURED for every workload on record that a test which stopped early did not come to.

    Asked after the static judgement.  Raises ``BaselineError``.
    """
    reason = f"has a baseline and was not reached: the test ended at its first need for {ENDED_AT[book.status]}. "
    return [
        Judgement(key=book.key(name), target=target, kind=kind, verdict=Verdict.NOT_MEASURED,
                  reason=reason + PUT_BEHIND)
        for target, kind, name in dict.fromkeys([*_unreached_static(worker, book), *_unreached_times(worker, book)])
    ]  # fmt: skip


def _unreached_static(worker: Worker, book: TestBook) -> Iterator[tuple[str, EvidenceKind, str]]:
    for arch in worker.targets:
        for compiler in _toolchains(book):
            recorded = worker.store.static_tests(arch, book.module, compiler).get(book.test, {})
            stood_for = set(_stood_for(worker.store, book, arch, compiler))
            for name, old in recorded.items():
                if name not in book.workloads and (old.kernel, old.profile.code_hash) not in stood_for:
                    yield arch, "static", name


def _stood_for(store: BaselineStore, book: TestBook, arch: str, toolchain: str) -> Iterator[tuple[str, str]]:
    """Kernel and code of the baselines that kernels without a launch were compared with."""
    for work in book.workloads.values():
        record = work.static.get(arch)
        if record is not None and not work.launched and work.toolchain == toolchain:
            old = recorded_under_another_name(store, arch, toolchain, work.key, record, book.workloads.values())
            if old is not None:
                yield old.kernel, old.profile.code_hash


def _toolchains(book: TestBook) -> set[str]:
    """This run's compilers, as far as they are known."""
    found = {work.toolchain for work in book.workloads.values() if work.toolchain}
    try:
        return {*found, toolchain()}
    except ToolchainMissing:  # nothing of NVRTC's can be compared here, reached or not
        return found


def _unreached_times(worker: Worker, book: TestBook) -> Iterator[tuple[str, EvidenceKind, str]]:
    if worker.has_gpu:
        target = worker.device.facts.slug
        for name in worker.store.time_tests(target, book.module).get(book.test, {}):
            if name not in book.workloads or not book.workloads[name].launched:
                yield target, "time", name
