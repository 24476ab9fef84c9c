"""Finding a kernel's baseline where its workload's name does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_gpuperf.model.evidence import Key, StaticRecord

if TYPE_CHECKING:
    from pytest_gpuperf.baselines.store import BaselineStore


def recorded_under_another_name(
    store: BaselineStore, arch: str, compiler: str, key: Key, record: StaticRecord
) -> StaticRecord | None:
    """The baseline of a kernel that this run compiled and did not get to launch, found by the kernel's name.

    Without a GPU a test may stop before the launch that gives the workload its own name.  None for one that stands
    under a number, because another of its name has the name.
    """
    if key.workload != record.kernel:
        return None
    known = of_the_kernel(store, arch, compiler, key, record)
    return of_the_same_code(known, record) or next(iter(known), None)


def of_the_kernel(store: BaselineStore, arch: str, compiler: str, key: Key, record: StaticRecord) -> list[StaticRecord]:
    """The test's records of kernels of this name."""
    of_test = store.static_tests(arch, key.module, compiler).get(key.test, {})
    return [old for old in of_test.values() if old.kernel == record.kernel]


def of_the_same_code(known: list[StaticRecord], record: StaticRecord) -> StaticRecord | None:
    """The first of ``known`` with the machine code of ``record``."""
    return next((old for old in known if old.profile.code_hash == record.profile.code_hash), None)
