"""A workload that is gone and one that is new are the same if they run the same code, launched alike."""

from __future__ import annotations

import msgspec
import pytest
from record_samples import identity_of, records_of

from pytest_gpuperf.baselines.lookup import move_command, of_same_kernel, renamed_workloads
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import WorkloadRecords


def key(test: str, workload: str = "k", module: str = "test_a.py") -> Key:
    return Key(module=module, test=test, workload=workload)


OTHER_CODE, OTHER_BLOCK = records_of(code="d1" * 32), records_of(block=(64, 1, 1))
SEVEN, EIGHT = (records_of(identity=identity_of(f"int32={value}")) for value in (7, 8))
CALLABLE = records_of(identity=msgspec.structs.replace(identity_of(), code=""), static=False)
A, B, OF_B = key("test_a"), key("test_b"), key("test_a", module="test_b.py")


@pytest.mark.parametrize(
    ("gone", "new", "renamed"),
    [
        pytest.param({A: records_of()}, {B: records_of()}, {B: A}, id="test"),
        pytest.param({A: records_of(), B: records_of()}, {OF_B: records_of()}, {OF_B: A}, id="file: same name first"),
        pytest.param({A: records_of()}, {key("test_a", "b"): records_of()}, {key("test_a", "b"): A}, id="workload"),
        pytest.param({A: records_of()}, {B: OTHER_CODE}, {}, id="other code"),
        pytest.param({A: records_of()}, {B: OTHER_BLOCK}, {}, id="other launch"),
        pytest.param({A: SEVEN}, {B: EIGHT}, {}, id="other arguments"),
        pytest.param({A: SEVEN}, {B: SEVEN}, {B: A}, id="same arguments"),
        pytest.param({A: CALLABLE}, {B: CALLABLE}, {}, id="callable"),
    ],
)
def test_renamed_workload(
    gone: dict[Key, WorkloadRecords], new: dict[Key, WorkloadRecords], renamed: dict[Key, Key]
) -> None:
    assert renamed_workloads(gone, new) == renamed


def test_parameters_tell_equal_code_apart() -> None:
    gone = {key(f"test_a[{size}]"): records_of() for size in (1, 2, 3)}
    new = {key(f"test_b[{size}]"): records_of() for size in (3, 2)}
    assert renamed_workloads(gone, new) == {key(f"test_b[{n}]"): key(f"test_a[{n}]") for n in (2, 3)}


def test_no_record_moves_twice() -> None:
    new = {key("test_b[1]"): records_of(), key("test_b[2]"): records_of()}
    assert renamed_workloads({key("test_a[2]"): records_of()}, new) == {key("test_b[1]"): key("test_a[2]")}


def test_kernel_of_same_name_is_found_near_by() -> None:
    """In its module, and in another one under the same names."""
    far = key("test_c", module="test_b.py")
    moved = key("test_b", module="test_b.py")
    assert of_same_kernel(B, OTHER_CODE, {A: records_of(), moved: records_of(), far: records_of()}) == [A, moved]
    assert of_same_kernel(B, WorkloadRecords({}, {}), {A: WorkloadRecords({}, {})}) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (A, B, "test_a.py::test_a test_a.py::test_b"),
        (A, OF_B, "test_a.py test_b.py"),
        (key("test_a[1]"), key("test_b[1]"), "test_a.py::test_a test_a.py::test_b"),
        (key("test_a[1]"), key("test_a[2]"), "'test_a.py::test_a[1]' 'test_a.py::test_a[2]'"),
        (A, key("test_a", "b"), "'test_a.py::test_a [k]' 'test_a.py::test_a [b]'"),
    ],
)
def test_move_command_takes_along_what_was_renamed_alike(old: Key, new: Key, words: str) -> None:
    assert move_command(old, new) == f"gpuperf baselines mv {words}"
