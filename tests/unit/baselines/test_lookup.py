"""Which static record a workload is compared with, also where its name does not lead to it; and what was renamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from baseline_samples import NVRTC, make_key, make_static
from record_samples import identity_of, records_of

from pytest_gpuperf.baselines.lookup import (
    baseline_of_any_compiler,
    move_command,
    of_same_kernel,
    records_to_replace,
    renamed_workloads,
    under_recorded_launch,
)
from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import WorkloadRecords

ARCH, K = "sm_90", make_static().kernel


def static(code: str, kernel: str = K) -> StaticRecord:
    record = make_static()
    profile = msgspec.structs.replace(record.profile, code_hash=code * 64)
    return msgspec.structs.replace(record, kernel=kernel, profile=profile)


def workload(name: str, code: str, *, launched: bool = False) -> WorkloadEvidence:
    """Without a ``code`` a callable."""
    records = {ARCH: static(code)} if code else {}
    return WorkloadEvidence(key=make_key(workload=name), static=records, toolchain=NVRTC, launched=launched)


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path)


def on_record(store: BaselineStore, records: dict[str, str]) -> None:
    """Codes by the workloads' names; of another kernel after a colon."""
    static_of = {name: static(*code.split(":")) for name, code in records.items()}
    store.write(Update(static={(ARCH, NVRTC, make_key(workload=name)): one for name, one in static_of.items()}))


@pytest.mark.parametrize(("records", "work", "others", "expected"), [
    pytest.param({"mine": "a", "other": "b"}, ("mine", "b", True), [], "a", id="a launched one has its name's"),
    pytest.param({"mine": "a"}, ("new", "a", True), [], None, id="or none"),
    pytest.param({"mine": "a"}, ("mine", ""), [], "a", id="without machine code its name's"),
    pytest.param({K: "a", f"{K} [-DX]": "b"}, (K, "b"), [], "b", id="code counts more than the name"),
    pytest.param({"first": "a", K: "b"}, (K, "c"), [], "b", id="changed code has its name's"),
    pytest.param({"fast": "a"}, (K, "b"), [], "a", id="its launch was not reached"),
    pytest.param({"other": "a:another"}, (K, "a"), [], None, id="another kernel"),
    pytest.param(
        {"k [-DX=1]": "a", "k [-DY]": "b"}, ("k [-DX=2]", "c"), [("k [-DY]", "b")], "a", id="the one that is left"
    ),
    pytest.param(
        {"k [-DX=1]": "a", "k [-DY]": "b"}, ("k [-DY]", "b"), [("k [-DX=2]", "c")], "b", id="beside it its own"
    ),
    pytest.param({K: "a"}, ("new", "b"), [(K, "c")], None, id="another has its name"),
    pytest.param({K: "a"}, ("new", "b"), [("mine", "a", True)], None, id="another has its code"),
    pytest.param({K: "a", "old": "b"}, (K, "c"), [("new", "a")], "b", id="another has the code of its name's"),
    pytest.param({K: "a"}, (f"{K} [kernel]", "b"), [(K, "", True)], "a", id="a callable has no machine code"),
])  # fmt: skip
def test_record_that_a_workload_is_compared_with(store, records, work, others, expected) -> None:  # type: ignore[no-untyped-def]
    """A workload is its name and code, and whether it was launched."""
    on_record(store, records)
    mine, *rest = (workload(*one[:2], launched=one[2:] == (True,)) for one in (work, *others))
    record = None if expected is None else static(expected)
    assert baseline_of_any_compiler(store, ARCH, mine, [mine, *rest]) == (record, NVRTC)
    other = msgspec.structs.replace(mine, toolchain="nvrtc 12.9.86")
    found = baseline_of_any_compiler(store, ARCH, other, [other, *rest])
    assert found == ((record, NVRTC) if work[0] in records else (None, other.toolchain))


def test_an_update_writes_the_records_of_the_workloads_that_launch_the_old_code(store: BaselineStore) -> None:
    on_record(store, {"fast": "a", "slow": "a", "met": "a", "other": "b"})

    def stood_for(work: WorkloadEvidence, old: StaticRecord | None) -> list[str]:
        works = [work, workload("met", "a", launched=True)]
        return [key.workload for key in records_to_replace(store, ARCH, work, old, works)]

    kernel = workload(K, "c")
    assert stood_for(kernel, static("a")) == ["fast", "slow"]
    assert stood_for(kernel, None) == [K]
    assert stood_for(workload("fast", "c", launched=True), static("a")) == ["fast"]
    on_record(store, {K: "a"})
    store.forget()
    assert stood_for(kernel, static("a")) == [K]


@pytest.mark.parametrize(("registers", "old", "expected"), [
    (32, {}, ((32, 32, 1), 0, 2)), (64, {}, ((32, 32, 1), 0, 1)), (64, {"block": (256, 1, 1)}, ((256, 1, 1), 0, 4)),
    (64, {"block": (1, 1, 1)}, ((1, 1, 1), 0, 32)), (64, {"block": (2, 0, 1)}, ((2, 0, 1), 0, None)),
    (64, {"block": None}, (None, 0, None)), (64, {"occupancy": None}, ((32, 32, 1), 0, None)),
    (64, {"block": (256, 1, 1), "dynamic_shared_bytes": 100_000}, ((256, 1, 1), 100_000, 2)),
    (64, {"block": (256, 1, 1), "dynamic_shared_bytes": -1}, ((256, 1, 1), -1, 4)),
])  # fmt: skip
def test_launch_of_the_old_record(registers: int, old: dict[str, Any], expected: tuple[Any, int, int | None]) -> None:
    """With the occupancy that its registers have there; the old record has 32."""
    bare = msgspec.structs.replace(make_static(registers), block=None, occupancy=None)
    found = under_recorded_launch(bare, msgspec.structs.replace(make_static(), **old), ARCH)
    fits = found.occupancy
    assert (found.block, found.dynamic_shared_bytes, fits.blocks_per_sm if fits is not None else None) == expected
    launched = msgspec.structs.replace(bare, block=(1, 1, 1))
    assert under_recorded_launch(launched, make_static(), ARCH) is launched


# --- renamed workloads ----------------------------------------------------------------------------


def key(test: str, workload: str = "k", module: str = "test_a.py") -> Key:
    return Key(module=module, test=test, workload=workload)


SAME, OTHER_CODE, OTHER_BLOCK = records_of(), records_of(code="d1" * 32), records_of(block=(64, 1, 1))
SEVEN, EIGHT = (records_of(identity=identity_of(f"int32={value}")) for value in (7, 8))
CALLABLE = records_of(identity=msgspec.structs.replace(identity_of(), code=""), static=False)
A, B, OF_B = key("test_a"), key("test_b"), key("test_a", module="test_b.py")
ONE, TWO, THREE = ([key(f"test_{test}[{size}]") for test in "ab"] for size in (1, 2, 3))


@pytest.mark.parametrize(("gone", "new", "renamed"), [
    pytest.param({A: SAME}, {B: SAME}, {B: A}, id="test"),
    pytest.param({A: SAME, B: SAME}, {OF_B: SAME}, {OF_B: A}, id="file: same name first"),
    pytest.param({A: SAME}, {key("test_a", "b"): SAME}, {key("test_a", "b"): A}, id="workload"),
    pytest.param({A: SAME}, {B: OTHER_CODE}, {}, id="other code"),
    pytest.param({A: SAME}, {B: OTHER_BLOCK}, {}, id="other launch"),
    pytest.param({A: SEVEN}, {B: EIGHT}, {}, id="other arguments"),
    pytest.param({A: SEVEN}, {B: SEVEN}, {B: A}, id="same arguments"),
    pytest.param({A: CALLABLE}, {B: CALLABLE}, {}, id="callable"),
    pytest.param(
        {one[0]: SAME for one in (ONE, TWO, THREE)}, {THREE[1]: SAME, TWO[1]: SAME},
        {THREE[1]: THREE[0], TWO[1]: TWO[0]}, id="parameters tell equal code apart",
    ),
    pytest.param({A: SAME, key("test_a", "b"): SAME}, {key("test_c", "b"): SAME},
                 {key("test_c", "b"): key("test_a", "b")}, id="its workload's name"),
    pytest.param({OF_B: SAME, key("test_0"): SAME}, {B: SAME}, {B: key("test_0")}, id="its file"),
    pytest.param({key("test_a"): SAME, key("test_z", "z"): SAME}, {key("test_z", "y"): SAME},
                 {key("test_z", "y"): key("test_z", "z")}, id="its test"),
    pytest.param({TWO[0]: SAME}, {ONE[1]: SAME, TWO[1]: SAME}, {ONE[1]: TWO[0]}, id="none moves twice"),
])  # fmt: skip
def test_renamed_workload(
    gone: dict[Key, WorkloadRecords], new: dict[Key, WorkloadRecords], renamed: dict[Key, Key]
) -> None:
    assert renamed_workloads(gone, new) == renamed


def test_kernel_of_same_name_is_found_near_by() -> None:
    """In its module, and in another one under the same names."""
    far = key("test_c", module="test_b.py")
    moved = key("test_b", module="test_b.py")
    assert of_same_kernel(B, OTHER_CODE, {A: SAME, moved: SAME, far: SAME}) == [A, moved]
    assert of_same_kernel(B, WorkloadRecords({}, {}), {A: WorkloadRecords({}, {})}) == []


@pytest.mark.parametrize(("old", "new", "words"), [
    (A, B, "test_a.py::test_a test_a.py::test_b"),
    (A, OF_B, "test_a.py test_b.py"),
    (key("test_a[1]"), key("test_b[1]"), "test_a.py::test_a test_a.py::test_b"),
    (key("test_a[1]"), key("test_a[2]"), "'test_a.py::test_a[1]' 'test_a.py::test_a[2]'"),
    (A, key("test_a", "b"), "'test_a.py::test_a [k]' 'test_a.py::test_a [b]'"),
])  # fmt: skip
def test_move_command_takes_along_what_was_renamed_alike(old: Key, new: Key, words: str) -> None:
    assert move_command(old, new) == f"gpuperf baselines mv {words}"
