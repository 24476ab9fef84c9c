"""Finding a kernel's baseline where its workload's name does not."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence


def recorded_under_another_name(
    store: BaselineStore,
    arch: str,
    compiler: str,
    key: Key,
    record: StaticRecord,
    workloads: Collection[WorkloadEvidence],
) -> StaticRecord | None:
    """The baseline of a kernel that this run compiled and did not get to launch, found by the kernel's name.

    Without a GPU a test may stop before the launch that gives the workload its own name.  One that stands under a
    label (``context.kernel_labels``) had another before its options changed: its baseline is one that none of the
    other ``workloads`` of the test has the name or the code of.
    """
    known = _of_test(store, arch, compiler, key, record)
    if key.workload.startswith(f"{record.kernel} ["):
        names = {work.key.workload for work in workloads}
        codes = {work.static[arch].profile.code_hash for work in workloads if work.key != key and arch in work.static}
        known = {name: old for name, old in known.items() if name not in names and old.profile.code_hash not in codes}
    elif key.workload != record.kernel:
        return None
    return of_the_same_code(known.values(), record) or next(iter(known.values()), None)


def of_the_kernel(store: BaselineStore, arch: str, compiler: str, key: Key, record: StaticRecord) -> list[StaticRecord]:
    """The test's records of kernels of this name."""
    return list(_of_test(store, arch, compiler, key, record).values())


def _of_test(store: BaselineStore, arch: str, compiler: str, key: Key, record: StaticRecord) -> dict[str, StaticRecord]:
    of_test = store.static_tests(arch, key.module, compiler).get(key.test, {})
    return {name: old for name, old in of_test.items() if old.kernel == record.kernel}


def of_the_same_code(known: Iterable[StaticRecord], record: StaticRecord) -> StaticRecord | None:
    """The first of ``known`` with the machine code of ``record``."""
    return next((old for old in known if old.profile.code_hash == record.profile.code_hash), None)
