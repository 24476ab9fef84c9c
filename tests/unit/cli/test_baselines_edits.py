"""Records follow a renamed test, file, folder or workload in every target, and go when a team says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import CUBIN, H200, NVRTC, make_session, make_static, make_time

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.cubin_store import stored_cubins
from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.cli.baselines_command import edit
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
    session = make_session()
    keys = [Key(module=module, test=test, workload=workload) for module, test, workload in KEYS]
    static = {("sm_90", compiler, one): make_static() for one in keys for compiler in (NVRTC, OLD_NVRTC)}
    store = BaselineStore(tmp_path / "baselines")
    times = {(H200, one): make_time(session) for one in keys}
    store.write(Update(static=static, time=times, cubins=[CUBIN]))
    return store


def names(store: BaselineStore, target: str = "sm_90") -> list[str]:
    return sorted(f"{one.module.removeprefix('suite/')}::{one.test} {one.workload}" for one in store.keys(target))


@pytest.mark.parametrize(
    ("old", "new", "gone", "come"),
    [
        (f"{A}::test_x", f"{A}::test_new", "a.py::test_x[", "a.py::test_new["),
        (f"{A}::test_x[1]", f"{A}::test_x[one]", "test_x[1]", "test_x[one]"),
        (f"{A}::TestC", f"{A}::TestD", "::TestC::", "::TestD::"),
        (f"{A}::TestC::test_m [first]", f"{A}::TestC::test_m [1st]", "test_m first", "test_m 1st"),
        (f"{B}::test_b [k [-DX]]", f"{B}::test_b [k]", "test_b k [-DX]", "test_b k"),
        (f"{A}::test_x", f"{B}::test_x", "test_a.py::test_x[", "test_b.py::test_x["),
        (A, "suite/deep/test_c.py", "test_a.py::", "deep/test_c.py::"), ("suite", "suite/deep", "test_", "deep/test_"),
    ],
)  # fmt: skip
def test_records_follow_a_renaming(store: BaselineStore, old: str, new: str, gone: str, come: str) -> None:
    before = {target: names(store, target) for target in store.targets()}
    moved = edit(store, old, new)
    assert {line.partition(":")[0] for line in moved} == {"sm_90", H200}
    assert all(old in line.partition(" -> ")[0] and new in line.partition(" -> ")[2] for line in moved)
    for target, those in before.items():
        expected = sorted(one.replace(gone, come, 1) for one in those)
        assert names(store, target) == expected
        assert any(come in one for one in expected)
    assert all(store.time(H200, one) for one in store.keys(H200))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("suite/none.py", A, "there is no such record"), (A, A, "there is no such record"),
        (A, f"{A}::test_x", "are not of one kind"),
        (f"{A}::TestC::test_m [first]", f"{A}::TestC::test_m", "each as 'NODEID \\[workload\\]'"),
        (f"{A}::test_x", f"{A}::test_xy", "has a record of its own: remove it first. Nothing was moved"),
        (A, "../test_x.py", "cannot name a baseline file"), ("none", None, "there is no such record"),
    ],
)  # fmt: skip
def test_an_edit_that_is_none_is_refused(store: BaselineStore, old: str, new: str | None, words: str) -> None:
    before = names(store)
    with pytest.raises(BaselineError, match=words):
        edit(store, old, new)
    assert names(store) == before


@pytest.mark.parametrize(
    ("name", "left"),
    [
        (A, {"sm_90": 1, H200: 1}), (f"{A}::test_x", {"sm_90": 5, H200: 5}), ("sm_90", {H200: 7}),
        (f"{A}::TestC::test_m [first]", {"sm_90": 6, H200: 6}), (OLD_NVRTC, {"sm_90": 7, H200: 7}),
        (H200, {"sm_90": 7}),
    ],
)  # fmt: skip
def test_records_go_with_their_machine_code_when_they_are_told_to(
    store: BaselineStore, name: str, left: dict[str, int]
) -> None:
    gone = edit(store, name)
    assert gone[0].endswith("]")
    assert len(gone) == len(set(gone))
    assert {target: len(store.keys(target)) for target in store.targets()} == left
    found = store.manifest()
    assert found is not None
    assert name not in (*found.targets, *found.toolchains)
    assert set(left) <= set(found.targets)
    assert bool(stored_cubins(store.root)) == (H200 in left)


def test_a_target_without_records_goes_from_the_manifest(store: BaselineStore) -> None:
    for path in (store.root / "sm_90").rglob("*.jsonl"):
        path.unlink()
    assert edit(store, "sm_90") == []
    found = store.manifest()
    assert found is not None
    assert "sm_90" not in found.targets
