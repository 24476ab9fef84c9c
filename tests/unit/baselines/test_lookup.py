"""Which static record a workload is compared with, also where its name does not lead to it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from baseline_samples import NVRTC, make_key, make_static

from pytest_gpuperf.baselines.lookup import records_stood_for, static_baseline
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence

ARCH = "sm_90"
KERNEL = make_static().kernel


def static(code: str, kernel: str = KERNEL) -> StaticRecord:
    record = make_static()
    return msgspec.structs.replace(
        record, kernel=kernel, profile=msgspec.structs.replace(record.profile, code_hash=code * 64)
    )


def workload(name: str, record: StaticRecord | None, *, launched: bool = False) -> WorkloadEvidence:
    return WorkloadEvidence(
        key=make_key(workload=name), static={} if record is None else {ARCH: record}, toolchain=NVRTC, launched=launched
    )


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path)


def found(store: BaselineStore, work: WorkloadEvidence, *others: WorkloadEvidence) -> StaticRecord | None:
    return static_baseline(store, ARCH, NVRTC, work, [work, *others])


def on_record(store: BaselineStore, **records: StaticRecord) -> None:
    store.write(Update(static={(ARCH, NVRTC, make_key(workload=name)): one for name, one in records.items()}))


def test_a_launched_workload_has_the_record_of_its_name(store: BaselineStore) -> None:
    on_record(store, mine=static("a"), other=static("b"))
    assert found(store, workload("mine", static("b"), launched=True)) == static("a")
    assert found(store, workload("new", static("b"), launched=True)) is None


def test_a_workload_without_machine_code_for_the_architecture_has_the_record_of_its_name(store: BaselineStore) -> None:
    on_record(store, mine=static("a"))
    assert found(store, workload("mine", None)) == static("a")


def test_the_same_code_counts_more_than_the_name(store: BaselineStore) -> None:
    on_record(store, **{KERNEL: static("a"), f"{KERNEL} [-DX]": static("b")})
    assert found(store, workload(KERNEL, static("b"))) == static("b")


def test_changed_code_is_compared_with_the_record_of_its_name(store: BaselineStore) -> None:
    on_record(store, **{"a first one": static("a"), KERNEL: static("b")})
    assert found(store, workload(KERNEL, static("c"))) == static("b")


def test_a_kernel_whose_launch_was_not_reached_has_the_record_of_its_workload(store: BaselineStore) -> None:
    on_record(store, fast=static("a"))
    assert found(store, workload(KERNEL, static("b"))) == static("a")


def test_records_of_other_kernels_are_not_taken(store: BaselineStore) -> None:
    on_record(store, other=static("a", kernel="another"))
    assert found(store, workload(KERNEL, static("a"))) is None


def test_a_changed_option_leads_to_the_record_that_is_left(store: BaselineStore) -> None:
    on_record(store, **{f"{KERNEL} [-DX=1]": static("a"), f"{KERNEL} [-DY]": static("b")})
    changed, kept = workload(f"{KERNEL} [-DX=2]", static("c")), workload(f"{KERNEL} [-DY]", static("b"))
    assert found(store, changed, kept) == static("a")
    assert found(store, kept, changed) == static("b")


def test_a_record_whose_name_or_code_another_workload_has_is_not_left(store: BaselineStore) -> None:
    on_record(store, **{KERNEL: static("a")})
    new = workload(f"{KERNEL} [-DX]", static("b"))
    assert found(store, new, workload(KERNEL, static("c"))) is None
    assert found(store, new, workload("mine", static("a"), launched=True)) is None


def test_a_record_of_ones_own_name_whose_code_another_workload_has_is_not_its_own(store: BaselineStore) -> None:
    on_record(store, **{KERNEL: static("a"), "old": static("b")})
    other = workload(f"{KERNEL} [-DX]", static("a"))
    assert found(store, workload(KERNEL, static("c")), other) == static("b")


def test_a_callable_of_the_name_stands_for_no_machine_code(store: BaselineStore) -> None:
    on_record(store, **{KERNEL: static("a")})
    callable_of_the_name = workload(KERNEL, None, launched=True)
    assert found(store, workload(f"{KERNEL} [kernel]", static("b")), callable_of_the_name) == static("a")


def test_an_update_writes_the_records_of_the_workloads_that_launch_the_old_code(store: BaselineStore) -> None:
    on_record(store, fast=static("a"), slow=static("a"), met=static("a"), other=static("b"))

    def stood_for(work: WorkloadEvidence, old: StaticRecord | None) -> list[str]:
        works = [work, workload("met", static("a"), launched=True)]
        return [key.workload for key in records_stood_for(store, ARCH, work, old, works)]

    kernel = workload(KERNEL, static("c"))
    assert stood_for(kernel, static("a")) == ["fast", "slow"]
    assert stood_for(kernel, None) == [KERNEL]
    assert stood_for(workload("fast", static("c"), launched=True), static("a")) == ["fast"]
    on_record(store, **{KERNEL: static("a")})
    store.forget()
    assert stood_for(kernel, static("a")) == [KERNEL]
