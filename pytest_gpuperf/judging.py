"""Static judgement of what a test found, each workload on each target, and what it did not come to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from pytest_gpuperf.evidence import Key, StaticRecord
from pytest_gpuperf.judge.static import compare_static, missing_static
from pytest_gpuperf.verdict import EvidenceKind, Judgement, Verdict

if TYPE_CHECKING:
    from pytest_gpuperf.baselines import BaselineStore
    from pytest_gpuperf.bench import Bench
    from pytest_gpuperf.session import TestBook, WorkloadEvidence


def judge_static(bench: Bench, workload: WorkloadEvidence, *, stopped: bool = False) -> WorkloadEvidence:
    """The workload with its static judgements put before the others.

    ``stopped``: its test did not come to its end, where a later kernel may have the name of this one.
    """
    judged = tuple(_judge(bench, workload, arch, record, stopped) for arch, record in workload.static.items())
    return msgspec.structs.replace(workload, judgements=(*judged, *workload.judgements))


def _judge(bench: Bench, workload: WorkloadEvidence, arch: str, record: StaticRecord, stopped: bool) -> Judgement:
    compiler = workload.toolchain
    found = bench.store.static(arch, workload.key, compiler)
    old = found.record
    if old is not None and stopped and not workload.launched:
        old = _of_the_same_code(_of_the_kernel(bench.store, arch, compiler, workload.key, record), record) or old
    if old is None and not workload.launched:
        old = recorded_under_another_name(bench.store, arch, compiler, workload.key, record)
    if old is None:
        return missing_static(workload.key, arch, compiler, found.other_toolchains)
    return compare_static(workload.key, arch, old, record)


def recorded_under_another_name(
    store: BaselineStore, arch: str, compiler: str, key: Key, record: StaticRecord
) -> StaticRecord | None:
    """The baseline of a kernel that this run compiled and did not get to launch, found by the kernel's name.

    Without a GPU a test may stop before the launch that gives the workload its own name.  None for one that stands
    under a number, because another of its name has the name.
    """
    if key.workload != record.kernel:
        return None
    known = _of_the_kernel(store, arch, compiler, key, record)
    return _of_the_same_code(known, record) or next(iter(known), None)


def _of_the_kernel(
    store: BaselineStore, arch: str, compiler: str, key: Key, record: StaticRecord
) -> list[StaticRecord]:
    """What the test has on record of kernels of this name."""
    of_test = store.static_tests(arch, key.module, compiler).get(key.test, {})
    return [old for old in of_test.values() if old.kernel == record.kernel]


def _of_the_same_code(known: list[StaticRecord], record: StaticRecord) -> StaticRecord | None:
    return next((old for old in known if old.profile.code_hash == record.profile.code_hash), None)


ENDED_AT = {"static only": "a GPU", "checked only": "a time or a counter that this run does not take"}
"""What a test that stopped early needed, by its status."""
PUT_BEHIND = "Put what needs times or data behind the last gpuperf(...) and cuda_kernel(...)"


def unreached(bench: Bench, book: TestBook) -> list[Judgement]:
    """NOT-MEASURED for every workload on record that a test which stopped early did not come to.

    Asked after the static judgement.  Raises ``BaselineError``.
    """
    reason = f"has a baseline and was not reached: the test ended at its first need for {ENDED_AT[book.status]}. "
    return [
        Judgement(key=book.key(name), target=target, kind=kind, verdict=Verdict.NOT_MEASURED,
                  reason=reason + PUT_BEHIND)
        for target, kind, name in dict.fromkeys([*_unreached_static(bench, book), *_unreached_times(bench, book)])
    ]  # fmt: skip


def _unreached_static(bench: Bench, book: TestBook) -> Iterator[tuple[str, EvidenceKind, str]]:
    for arch in bench.targets:
        for toolchain in _toolchains(book):
            recorded = bench.store.static_tests(arch, book.module, toolchain).get(book.test, {})
            stood_for = set(_stood_for(bench.store, book, arch, toolchain))
            for name, old in recorded.items():
                if name not in book.workloads and (old.kernel, old.profile.code_hash) not in stood_for:
                    yield arch, "static", name


def _stood_for(store: BaselineStore, book: TestBook, arch: str, toolchain: str) -> Iterator[tuple[str, str]]:
    """Kernel and code of the baselines that kernels without a launch were compared with."""
    for work in book.workloads.values():
        record = work.static.get(arch)
        if record is not None and not work.launched and work.toolchain == toolchain:
            old = recorded_under_another_name(store, arch, toolchain, work.key, record)
            if old is not None:
                yield old.kernel, old.profile.code_hash


def _toolchains(book: TestBook) -> set[str]:
    """This run's compilers, as far as they are known."""
    from pytest_gpuperf.compile import ToolchainMissing, toolchain

    found = {work.toolchain for work in book.workloads.values() if work.toolchain}
    try:
        return {*found, toolchain()}
    except ToolchainMissing:  # nothing of NVRTC's can be compared here, reached or not
        return found


def _unreached_times(bench: Bench, book: TestBook) -> Iterator[tuple[str, EvidenceKind, str]]:
    if bench.has_gpu:
        target = bench.device.facts.slug
        for name in bench.store.time_tests(target, book.module).get(book.test, {}):
            if name not in book.workloads or not book.workloads[name].launched:
                yield target, "time", name
