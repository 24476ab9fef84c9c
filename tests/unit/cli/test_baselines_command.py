"""What ``gpuperf baselines`` lists, moves and removes: in every target, with the machine code and the manifest."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import CUBIN, H200, NVRTC, keys_of, make_session, make_static, make_time

from pytest_gpuperf.baselines.cubin_store import stored_cubins
from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.model.evidence import Key

A, B = "suite/test_a.py", "suite/test_b.py"
OLD_NVRTC = "nvrtc 12.9.86"
KEYS = [
    (A, "test_x[1]", "k"), (A, "test_x[2]", "k"), (A, "test_xy[1]", "k"), (A, "test_xy[2]", "k"),
    (A, "TestC::test_m", "first"), (A, "TestC::test_m", "second"), (B, "test_b", "k [-DX]"),
]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    """Two tests of two parameters in one file, a class, and another file; static by two compilers, and times."""
    keys = [Key(module=module, test=test, workload=workload) for module, test, workload in KEYS]
    static = {("sm_90", compiler, one): make_static() for one in keys for compiler in (NVRTC, OLD_NVRTC)}
    store = BaselineStore(tmp_path / "baselines")
    times = {(H200, one): make_time(make_session()) for one in keys}
    store.write(Update(static=static, time=times, cubins=[CUBIN]))
    return store


@pytest.fixture
def say(store: BaselineStore, command):
    def said(*words: str, status: int = 0) -> str:
        found, out, err = command("baselines", *words, "--baselines", store.root)
        store.forget()
        assert found == status
        return err if status else out

    return said


def names(store: BaselineStore, target: str = "sm_90") -> list[str]:
    return sorted(f"{one.module.removeprefix('suite/')}::{one.test} {one.workload}" for one in keys_of(store, target))


def test_records_are_listed_by_what_they_are_of(say) -> None:
    assert say() == f"{H200}: 7 workloads\nsm_90 {OLD_NVRTC}: 7 workloads\nsm_90 {NVRTC}: 7 workloads\n"
    assert say("list", B) == f"{B}::test_b [k [-DX]]: sm_90 {OLD_NVRTC}, sm_90 {NVRTC}, {H200}\n"
    for name, lines in ((A, 6), (OLD_NVRTC, 7), (H200, 7), ("none.py", 0)):
        assert len(say("list", name).splitlines()) == lines


@pytest.mark.parametrize(("old", "new", "gone", "come"), [
    (f"{A}::test_x", f"{A}::test_new", "a.py::test_x[", "a.py::test_new["),
    (f"{A}::test_x[1]", f"{A}::test_x[one]", "test_x[1]", "test_x[one]"),
    (f"{A}::TestC", f"{A}::TestD", "::TestC::", "::TestD::"),
    (f"{A}::TestC::test_m [first]", f"{A}::TestC::test_m [1st]", "test_m first", "test_m 1st"),
    (f"{B}::test_b [k [-DX]]", f"{B}::test_b [k]", "test_b k [-DX]", "test_b k"),
    (f"{A}::test_x", f"{B}::test_x", "test_a.py::test_x[", "test_b.py::test_x["),
    (A, "suite/deep/test_c.py", "test_a.py::", "deep/test_c.py::"), ("suite/", "suite/deep", "test_", "deep/test_"),
])  # fmt: skip
def test_records_follow_a_renaming(store: BaselineStore, say, old: str, new: str, gone: str, come: str) -> None:
    before = {target: names(store, target) for target in store.targets()}
    *moved, last = say("mv", old, new).splitlines()
    assert last == f"Commit {store.root}."
    assert {line.partition(":")[0] for line in moved} == {"moved  sm_90", f"moved  {H200}"}
    assert all(old in line.partition(" -> ")[0] and new in line.partition(" -> ")[2] for line in moved)
    for target, those in before.items():
        assert names(store, target) == sorted(one.replace(gone, come, 1) for one in those) != those
    assert all(store.time(H200, one) for one in keys_of(store, H200))


@pytest.mark.parametrize(("words", "problem"), [
    (("mv", A), "mv takes OLD NEW: see gpuperf baselines --help"), (("rm",), "rm takes one NAME"),
    (("list", "a", "b"), "list takes one NAME or none"), (("rm", "none"), "there is no such record"),
    (("mv", "suite/none.py", A), "there is no such record"), (("mv", A, A), "there is no such record"),
    (("mv", A, f"{A}::test_x"), "are of different kinds"),
    (("mv", f"{A}::TestC::test_m [first]", f"{A}::TestC::test_m"), "each as 'NODEID [workload]'"),
    (("mv", f"{A}::test_x", f"{A}::test_xy"), "has a record already. Nothing was moved. To do: "),
    (("mv", A, "../test_x.py"), "cannot name a baseline file"),
])  # fmt: skip
def test_an_edit_that_is_none_is_refused(store: BaselineStore, say, words: tuple[str, ...], problem: str) -> None:
    before = names(store)
    assert problem in say(*words, status=1)
    assert names(store) == before


@pytest.mark.parametrize(("name", "left"), [
    (A, {"sm_90": 1, H200: 1}), (f"{A}::test_x", {"sm_90": 5, H200: 5}), ("sm_90", {H200: 7}),
    (f"{A}::TestC::test_m [first]", {"sm_90": 6, H200: 6}), (OLD_NVRTC, {"sm_90": 7, H200: 7}),
    (H200, {"sm_90": 7}),
])  # fmt: skip
def test_records_go_with_their_machine_code(store: BaselineStore, say, name: str, left: dict[str, int]) -> None:
    gone = say("rm", name).splitlines()[:-1]
    assert all(line.startswith("removed  ") and line.endswith("]") for line in gone)
    assert len(gone) == len(set(gone)) > 0
    assert {target: len(keys_of(store, target)) for target in store.targets()} == left
    found = store.manifest()
    assert found is not None
    assert name not in (*found.targets, *found.toolchains)
    assert set(left) <= set(found.targets)
    assert bool(stored_cubins(store.root)) == (H200 in left)


def test_a_target_without_records_goes_from_the_manifest(store: BaselineStore, say) -> None:
    for path in (store.root / "sm_90").rglob("*.jsonl"):
        path.unlink()
    assert say("rm", "sm_90") == f"Commit {store.root}.\n"
    found = store.manifest()
    assert found is not None
    assert "sm_90" not in found.targets
