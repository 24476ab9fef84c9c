"""A compiled kernel finds its baseline by its own name where the workload was recorded under another one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from baseline_samples import NVRTC, make_key, make_static, static_update

from pytest_gpuperf.baselines.lookup import of_the_kernel, of_the_same_code, recorded_under_another_name
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import StaticRecord

KERNEL = "transpose_padded"
UNNAMED = make_key(workload=KERNEL)
"""The key of a kernel that was compiled and never launched: its workload is called like the kernel."""


def with_code(letters: str, kernel: str = KERNEL) -> StaticRecord:
    record = make_static()
    profile = msgspec.structs.replace(record.profile, code_hash=letters * 32)
    return msgspec.structs.replace(record, kernel=kernel, profile=profile)


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    """One test has two workloads of one kernel and one of another; a second test has the kernel too."""
    store = BaselineStore(tmp_path)
    records = {
        make_key(workload="small"): with_code("a1"),
        make_key(workload="large"): with_code("b2"),
        make_key(workload="other"): with_code("c3", kernel="copy"),
        make_key("test_elsewhere", "small"): with_code("d4"),
    }
    store.write(Update(static={("sm_90", NVRTC, key): record for key, record in records.items()}))
    return store


def test_the_same_machine_code_is_found_under_the_workloads_name(store: BaselineStore) -> None:
    for code in (with_code("a1"), with_code("b2")):
        assert recorded_under_another_name(store, "sm_90", NVRTC, UNNAMED, code) == code


def test_changed_machine_code_is_held_against_the_first_record_of_its_kernel(store: BaselineStore) -> None:
    first = recorded_under_another_name(store, "sm_90", NVRTC, UNNAMED, with_code("ee"))
    assert first == with_code("b2"), "by name: large, then small"


def test_a_workload_with_a_name_of_its_own_is_not_looked_for_elsewhere(store: BaselineStore) -> None:
    assert recorded_under_another_name(store, "sm_90", NVRTC, make_key(workload="medium"), with_code("a1")) is None


def test_a_kernel_without_a_record_has_no_baseline(store: BaselineStore) -> None:
    unknown = make_key(workload="reduce")
    assert recorded_under_another_name(store, "sm_90", NVRTC, unknown, with_code("a1", kernel="reduce")) is None


def test_records_of_the_kernel_are_those_of_this_test_architecture_and_compiler(store: BaselineStore) -> None:
    known = of_the_kernel(store, "sm_90", NVRTC, UNNAMED, with_code("ee"))
    assert known == [with_code("b2"), with_code("a1")]
    elsewhere = make_key("test_elsewhere", KERNEL)
    assert of_the_kernel(store, "sm_90", NVRTC, elsewhere, with_code("ee")) == [with_code("d4")]
    assert of_the_kernel(store, "sm_80", NVRTC, UNNAMED, with_code("ee")) == []
    assert of_the_kernel(store, "sm_90", "nvrtc 12.9.1", UNNAMED, with_code("ee")) == []
    assert of_the_kernel(store, "sm_90", NVRTC, make_key("test_new", KERNEL), with_code("ee")) == []
    assert of_the_kernel(store, "sm_90", NVRTC, make_key(module="test_new.py"), with_code("ee")) == []


def test_records_of_the_same_code_are_told_by_its_hash() -> None:
    known = [with_code("a1"), with_code("b2"), with_code("b2", kernel="twin")]
    assert of_the_same_code(known, with_code("b2")) == known[1]
    assert of_the_same_code(known, with_code("ee")) is None
    assert of_the_same_code([], with_code("a1")) is None


def test_a_missing_baseline_folder_has_no_record_of_any_kernel(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / "none")
    assert recorded_under_another_name(store, "sm_90", NVRTC, UNNAMED, with_code("a1")) is None


def test_all_static_evidence_of_a_module_is_that_of_one_architecture_and_toolchain(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.write(static_update())
    store.write(static_update(make_static(40), toolchain="nvrtc 12.9.1"))
    module = make_key().module
    assert store.static_tests("sm_90", module, NVRTC) == {"test_transpose": {"padded": make_static()}}
    assert store.static_tests("sm_90", module, "nvrtc 12.9.1") == {"test_transpose": {"padded": make_static(40)}}
    assert store.static_tests("sm_90", module, "nvrtc 13.1.0") == {}
    assert store.static_tests("sm_80", module, NVRTC) == {}
    assert store.static_tests("sm_90", "test_new.py", NVRTC) == {}
