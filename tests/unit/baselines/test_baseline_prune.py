"""Pruning names what it removes and never touches what the collection did not see whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from baseline_samples import (
    CUBIN,
    H200,
    NVRTC,
    make_key,
    make_session,
    make_static,
    make_time,
    static_update,
    time_update,
)

from pytest_gpuperf.baselines import working_folder
from pytest_gpuperf.baselines.baseline_errors import UnreadableBaselineError
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.prune import prune, referenced_cubins, unused
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key

MODULE = make_key().module
ELSEWHERE = "example_suite/deep/test_reduce.py"
KEPT, GONE, OTHER = make_key("test_kept"), make_key("test_gone[a/../b]"), make_key("test_gone", module=ELSEWHERE)
GONE_CUBIN = b"cubin of the gone kernel"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    """Two tests of one module, one of another; each of the first module's with a cubin and a session of its own."""
    store = BaselineStore(tmp_path / "baselines")
    for key in (KEPT, GONE, OTHER):
        store.write(static_update(key=key))
    store.write(time_update(make_session(1), key=KEPT))
    second = make_session(2)
    record = make_time(second, cubin=digest(GONE_CUBIN))
    store.write(Update(time={(H200, GONE): record}, sessions=[second], cubins=[GONE_CUBIN]))
    return store


def words(store: BaselineStore, *collected: Key | str, modules: tuple[str, ...] = (MODULE,)) -> list[str]:
    return [str(entry).replace(f"{store.root}/", "") for entry in unused(store, collected, modules_collected=modules)]


def test_nothing_is_unused_while_every_test_exists(store: BaselineStore) -> None:
    assert words(store, KEPT, GONE.node_id, OTHER, modules=(MODULE, ELSEWHERE)) == []


def test_unused_tests_and_cubins_are_named(store: BaselineStore) -> None:
    sha256 = digest(GONE_CUBIN)
    assert words(store, KEPT) == [
        f"cubins/{sha256[:2]}/{sha256}.cubin.z (machine code that no baseline uses)",
        f"nvidia-h200: {GONE.node_id} (in nvidia-h200/example_suite/test_transpose.json)",
        f"sm_90: {GONE.node_id} (in sm_90/example_suite/test_transpose.json)",
    ]


def test_a_module_that_was_not_collected_whole_loses_nothing(store: BaselineStore) -> None:
    assert words(store, KEPT, modules=()) == []
    assert words(store, modules=()) == []


def test_finding_removes_nothing(store: BaselineStore) -> None:
    before = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    unused(store, [], modules_collected=[MODULE, ELSEWHERE])
    assert {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()} == before


def test_pruning_removes_what_was_named_and_nothing_else(store: BaselineStore) -> None:
    found = unused(store, [KEPT], modules_collected=[MODULE])
    assert sorted(prune(store, found)) == found
    assert store.keys("sm_90") == (OTHER, KEPT)
    assert store.keys(H200) == (KEPT,)
    assert store.sessions(H200, MODULE) == (make_session(1),)
    assert store.cubin(digest(CUBIN)) == CUBIN
    assert [path.name for path in (store.root / "cubins").rglob("*.cubin*")] == [f"{digest(CUBIN)}.cubin.z"]
    assert unused(store, [KEPT], modules_collected=[MODULE]) == []
    assert prune(store, found) == []


def test_a_file_without_tests_goes_with_the_folders_it_leaves_empty(store: BaselineStore) -> None:
    found = unused(store, [], modules_collected=[MODULE, ELSEWHERE])
    assert sorted(prune(store, found)) == found
    assert [path.name for path in store.root.iterdir()] == [working_folder.NAME]
    assert store.root.is_dir()
    assert prune(store, found) == []


def test_finding_sees_what_another_process_has_written_since(store: BaselineStore) -> None:
    late = make_key(module="example_suite/test_late.py")
    third, content = make_session(3), b"cubin of the late kernel"
    assert store.time(H200, late) is None
    update = Update(time={(H200, late): make_time(third, cubin=digest(content))}, sessions=[third], cubins=[content])
    BaselineStore(store.root).write(update)
    assert words(store, KEPT, GONE) == []


def test_an_empty_file_is_pruned_only_if_its_module_was_collected(tmp_path: Path) -> None:
    path = tmp_path / "sm_90/test_x.json"
    path.parent.mkdir()
    path.write_text(
        '{"kind": "static", "schema": 6, "target": "sm_90", '
        '"toolchains": {"nvrtc 13.0.88": {"codes": {}, "tests": {}}}}'
    )
    store = BaselineStore(tmp_path)
    assert unused(store, [], modules_collected=[]) == []
    found = unused(store, [], modules_collected=["test_x.py"])
    assert [str(entry) for entry in found] == [f"{path} (no tests in it)"]
    assert prune(store, found) == found
    assert not path.exists()


def test_a_test_goes_from_every_toolchain(store: BaselineStore) -> None:
    store.write(static_update(make_static(40), key=GONE, toolchain="nvrtc 12.9.1"))
    prune(store, unused(store, [KEPT], modules_collected=[MODULE]))
    assert store.static("sm_90", GONE, NVRTC).other_toolchains == ()
    assert store.load("sm_90", MODULE) is not None


def test_a_cubin_that_got_used_in_between_stays(store: BaselineStore) -> None:
    found = [entry for entry in unused(store, [KEPT], modules_collected=[MODULE]) if entry.kind == "cubin"]
    assert len(found) == 1
    assert prune(store, found) == []
    assert store.cubin(digest(GONE_CUBIN)) == GONE_CUBIN
    assert referenced_cubins(store) == {digest(CUBIN), digest(GONE_CUBIN)}


def test_nothing_is_unused_while_a_file_cannot_be_read(store: BaselineStore) -> None:
    found = unused(store, [KEPT], modules_collected=[MODULE])
    (store.root / "nvidia-h200/test_damaged.json").write_text("{")
    store.forget()
    with pytest.raises(UnreadableBaselineError, match=r"test_damaged\.json"):
        unused(store, [KEPT], modules_collected=[MODULE])
    with pytest.raises(UnreadableBaselineError, match=r"test_damaged\.json"):
        prune(store, found)
    assert store.cubin(digest(GONE_CUBIN)) == GONE_CUBIN


def test_files_that_are_no_cubins_are_left_alone(store: BaselineStore) -> None:
    for name in ("cubins/README.md", "cubins/zz/mine.cubin.z", f"cubins/zz/{digest(b'x')}.cubin.z"):
        (store.root / name).parent.mkdir(exist_ok=True)
        (store.root / name).write_text("mine")
    assert words(store, KEPT, GONE) == []


def test_a_workload_that_is_gone_leaves_alone_and_its_cubin_with_it(store: BaselineStore) -> None:
    other = Key(module=KEPT.module, test=KEPT.test, workload="another")
    session = make_session(3)
    record = make_time(session, cubin=digest(b"another"))
    store.write(static_update(key=other))
    store.write(Update(time={(H200, other): record}, sessions=[session], cubins=[b"another"]))
    alive = [KEPT, GONE, OTHER]
    gone = {(H200, other), ("sm_90", other)}
    found = unused(store, alive, modules_collected=(MODULE,), workloads_gone=gone)
    assert {(entry.kind, entry.target, entry.workload) for entry in found} == {
        ("workload", H200, "another"), ("workload", "sm_90", "another"), ("cubin", "", ""),
    }  # fmt: skip
    assert f"{H200}: {other.node_id} [another] (in " in " ".join(map(str, found))
    assert sorted(prune(store, found)) == sorted(found)
    assert other not in {*store.keys(H200), *store.keys("sm_90")}
    assert {KEPT, GONE} <= set(store.keys(H200))
    assert unused(store, alive, modules_collected=(MODULE,), workloads_gone=gone) == []


def test_workloads_of_modules_that_were_not_collected_whole_stay(store: BaselineStore) -> None:
    assert unused(store, [KEPT, GONE, OTHER], modules_collected=(), workloads_gone={(H200, KEPT)}) == []


def test_the_last_workload_of_a_test_takes_the_test_along(store: BaselineStore) -> None:
    prune(store, unused(store, [KEPT, GONE, OTHER], modules_collected=(MODULE,), workloads_gone={(H200, GONE)}))
    assert GONE not in store.keys(H200)
    assert "test_gone" not in str(store.time_tests(H200, MODULE))


def test_an_unused_workload_is_named_with_its_file(store: BaselineStore) -> None:
    [found, *_] = unused(store, [KEPT, GONE, OTHER], modules_collected=(MODULE,), workloads_gone={("sm_90", KEPT)})
    path = store.root / "sm_90" / "example_suite" / "test_transpose.json"
    assert str(found) == f"sm_90: {KEPT.node_id} [padded] (in {path})"


def test_a_workload_that_went_in_between_is_not_reported_as_removed(store: BaselineStore) -> None:
    other = Key(module=KEPT.module, test=KEPT.test, workload="another")
    store.write(static_update(key=other))
    found = unused(store, [KEPT, GONE, OTHER], modules_collected=(MODULE,), workloads_gone={("sm_90", other)})
    assert prune(store, found) == found
    assert prune(store, found) == []


def test_a_file_that_got_a_test_in_between_stays(tmp_path: Path) -> None:
    path = tmp_path / "sm_90/test_x.json"
    path.parent.mkdir()
    path.write_text('{"kind": "static", "schema": 6, "target": "sm_90", "toolchains": {}}')
    store = BaselineStore(tmp_path)
    found = unused(store, [], modules_collected=["test_x.py"])
    recorded = make_key(module="test_x.py")
    BaselineStore(tmp_path).write(static_update(key=recorded))
    assert prune(store, found) == []
    assert store.keys("sm_90") == (recorded,)


def test_pruning_again_leaves_a_reformatted_file_alone(store: BaselineStore) -> None:
    found = unused(store, [KEPT], modules_collected=[MODULE])
    prune(store, found)
    path = store.root / "sm_90" / "example_suite" / "test_transpose.json"
    crlf = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(crlf)
    assert prune(store, found) == []
    assert path.read_bytes() == crlf


def test_pruning_the_last_file_leaves_the_baseline_folder(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / "baselines")
    store.write(static_update())
    prune(store, unused(store, [], modules_collected=[MODULE]))
    assert store.root.is_dir()
    assert [path.name for path in store.root.iterdir()] == [working_folder.NAME]
