"""Records follow a renamed test, file or workload, in every target, and overwrite nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import CUBIN, NVRTC, make_session, make_static, make_time

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.move import MoveRefusedError, move
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key

A, B = "suite/test_a.py", "suite/test_b.py"


def key(module: str, test: str, workload: str = "k") -> Key:
    return Key(module=module, test=test, workload=workload)


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    """Two tests of two parameters in one file, and another file; static for two toolchains, times of one session."""
    session = make_session()
    keys = [key(A, f"{test}[{size}]") for test in ("test_x", "test_xy") for size in (1, 2)]
    keys += [key(A, "TestC::test_m", "first"), key(A, "TestC::test_m", "second"), key(B, "test_b")]
    static = {("sm_90", compiler, one): make_static() for one in keys for compiler in (NVRTC, "nvrtc 12.9.86")}
    store = BaselineStore(tmp_path / "baselines")
    times = {("nvidia-h200", one): make_time(session) for one in keys}
    store.write(Update(static=static, time=times, sessions=[session], cubins=[CUBIN]))
    return store


def names(store: BaselineStore, module: str) -> set[str]:
    """Tests and workloads of a module; every target has the same."""
    static, times = ({f"{one.test} {one.workload}" for one in store.keys(target) if one.module == module}
                     for target in ("sm_90", "nvidia-h200"))  # fmt: skip
    assert static == times
    return static


REST = {"TestC::test_m first", "TestC::test_m second"}


def test_a_test_goes_with_all_of_its_parameters(store: BaselineStore) -> None:
    moved = move(store, f"{A}::test_x", f"{A}::test_new")
    assert names(store, A) == REST | {"test_new[1] k", "test_new[2] k", "test_xy[1] k", "test_xy[2] k"}
    assert str(moved[0]) == f"sm_90: {A}::test_x[1] [k] -> {A}::test_new[1] [k]"
    assert {one.target for one in moved} == {"sm_90", "nvidia-h200"}
    assert store.static("sm_90", key(A, "test_new[1]"), "nvrtc 12.9.86").record == make_static()


def test_one_parameter_a_class_and_a_workload_go_alone(store: BaselineStore) -> None:
    move(store, f"{A}::test_x[1]", f"{A}::test_x[one]")
    move(store, f"{A}::TestC", f"{A}::TestD")
    move(store, f"{A}::TestD::test_m [first]", f"{A}::TestD::test_m [1st]")
    assert names(store, A) == {
        "test_x[one] k", "test_x[2] k", "test_xy[1] k", "test_xy[2] k", "TestD::test_m 1st", "TestD::test_m second",
    }  # fmt: skip


def test_a_file_goes_whole_with_its_sessions(store: BaselineStore) -> None:
    before, record = names(store, A), store.time("nvidia-h200", key(A, "test_x[1]"))
    move(store, A, "elsewhere/test_c.py")
    assert names(store, "elsewhere/test_c.py") == before
    assert store.time("nvidia-h200", key("elsewhere/test_c.py", "test_x[1]")) == record
    assert store.modules("sm_90") == store.modules("nvidia-h200") == ("elsewhere/test_c.py", B)


def test_a_test_goes_into_another_file(store: BaselineStore) -> None:
    move(store, f"{A}::test_xy", f"{B}::test_xy")
    assert names(store, B) == {"test_b k", "test_xy[1] k", "test_xy[2] k"}
    assert names(store, A) == REST | {"test_x[1] k", "test_x[2] k"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (f"{A}::test_x", f"{A}::test_xy", r"sm_90: test_xy\[1\] \[k\] has a record of its own"),
        (f"{A}::no_such", f"{A}::other", "there is no such record"),
        (f"{A}::test_x", f"{A}::test_x", "both names are the same"),
        (f"{A}::test_x", B, "not of one kind"),
        (f"{A}::TestC::test_m [first]", f"{A}::TestC::test_m", "not of one kind"),
        (A, "../test_c.py", "cannot name a baseline file"),
    ],
)
def test_what_cannot_be_moved_is_refused_and_nothing_is_written(
    store: BaselineStore, old: str, new: str, words: str
) -> None:
    before = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    with pytest.raises(Exception, match=words):
        move(store, old, new)
    assert {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()} == before


def test_force_overwrites(store: BaselineStore) -> None:
    move(store, f"{A}::test_x", f"{A}::test_xy", force=True)
    assert names(store, A) == REST | {"test_xy[1] k", "test_xy[2] k"}


def test_a_test_whose_parameter_looks_like_a_workload(store: BaselineStore) -> None:
    odd = key(A, "test_z[a [b]")
    store.write(Update(static={("sm_90", NVRTC, odd): make_static()}))
    move(store, odd.node_id, f"{A}::test_z[c]")
    assert key(A, "test_z[c]") in store.keys("sm_90")
    with pytest.raises(MoveRefusedError):
        move(store, odd.node_id, f"{A}::test_z[c]")
