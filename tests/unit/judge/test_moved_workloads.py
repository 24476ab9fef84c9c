"""A workload that is gone and one that is new are the same if they run the same code, launched alike."""

from __future__ import annotations

import msgspec
from record_samples import identity_of, records_of, static_of

from pytest_gpuperf.judge.continued import moved_workloads
from pytest_gpuperf.model.evidence import Key, WorkloadRecords


def key(test: str, workload: str = "k", module: str = "test_a.py") -> Key:
    return Key(module=module, test=test, workload=workload)


def test_a_renamed_test_is_found_with_all_of_its_parameters() -> None:
    gone = {key(f"test_old[{size}]"): records_of() for size in (1, 2, 3)}
    new = {key(f"test_new[{size}]"): records_of() for size in (1, 2, 3)}
    assert moved_workloads(gone, new) == {key(f"test_new[{n}]"): key(f"test_old[{n}]") for n in (1, 2, 3)}


def test_a_test_that_went_to_another_module_is_found_before_one_that_has_another_name() -> None:
    gone = {key("test_x"): records_of(), key("test_y"): records_of()}
    new = {key("test_x", module="test_b.py"): records_of()}
    assert moved_workloads(gone, new) == {key("test_x", module="test_b.py"): key("test_x")}


def test_a_renamed_workload_is_found() -> None:
    assert moved_workloads({key("test_x", "a"): records_of()}, {key("test_x", "b"): records_of()}) == {
        key("test_x", "b"): key("test_x", "a")
    }


def test_other_code_and_another_launch_are_no_move_to_another_module() -> None:
    old, new = {key("test_x"): records_of()}, key("test_y", module="test_b.py")
    assert moved_workloads(old, {new: records_of(code="d1" * 32)}) == {}
    assert moved_workloads(old, {new: records_of(block=(64, 1, 1))}) == {}


def test_no_record_moves_twice() -> None:
    two = {key("test_x[1]"): records_of(), key("test_x[2]"): records_of()}
    assert moved_workloads({key("test_y[2]"): records_of()}, two) == {key("test_x[1]"): key("test_y[2]")}
    assert moved_workloads(two, {key("test_y[2]"): records_of()}) == {key("test_y[2]"): key("test_x[2]")}


def test_equal_code_on_other_arguments_is_no_move() -> None:
    old, new = records_of(identity=identity_of("int32=7")), records_of(identity=identity_of("int32=8"))
    there = key("test_y", module="test_b.py")
    assert moved_workloads({key("test_x"): old}, {there: new}) == {}
    assert moved_workloads({key("test_x"): old}, {there: old}) == {there: key("test_x")}


def test_a_callable_is_not_followed_for_nothing_tells_what_it_runs() -> None:
    plain = records_of(identity=msgspec.structs.replace(identity_of(), code=""), static=False)
    assert moved_workloads({key("test_x"): plain}, {key("test_y"): plain}) == {}


def spilling() -> WorkloadRecords:
    return WorkloadRecords({("sm_90", "nvrtc 13.0.88"): static_of(code="d1" * 32, spills=8)}, {})


def test_a_workload_whose_code_changed_with_its_name_is_the_only_one_of_its_kernel() -> None:
    old, new = {key(f"test_x[{n}]"): records_of() for n in (1, 2)}, {key("test_y[1]"): spilling()}
    assert moved_workloads(old, new) == {key("test_y[1]"): key("test_x[1]")}
    assert moved_workloads(old, {key("test_y[1]", module="test_b.py"): spilling()}) == {}
