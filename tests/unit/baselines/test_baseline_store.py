"""The store as its users see it: what is written can be looked up, and nothing else changes."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from baseline_samples import (
    CUBIN,
    H200,
    NVRTC,
    make_key,
    make_round,
    make_session,
    make_static,
    make_time,
    static_update,
    time_update,
)

from pytest_gpuperf.baselines import layout, working_folder
from pytest_gpuperf.baselines.baseline_errors import CubinError, UnsafePathError, UnwritableEvidenceError
from pytest_gpuperf.baselines.cubin_store import compressed
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore, StaticLookup
from pytest_gpuperf.judge.counters import Counts

SHA = hashlib.sha256(CUBIN).hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "baselines"


@pytest.fixture
def store(root: Path) -> BaselineStore:
    return BaselineStore(root)


def names(root: Path) -> list[str]:
    files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in files if path.parts[0] != working_folder.NAME)


def test_a_missing_folder_is_a_store_without_baselines(store: BaselineStore) -> None:
    assert store.static("sm_90", make_key(), NVRTC) == StaticLookup(None, ())
    assert store.time(H200, make_key()) is None
    assert store.sessions(H200, make_key().module) == ()
    assert store.archs() == ()
    assert store.devices() == ()
    assert store.keys("sm_90") == ()


def test_the_folder_is_listed_once_until_something_is_written(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(static_update())
    real, asked = layout.targets, []
    monkeypatch.setattr(layout, "targets", lambda root: asked.append(root) or real(root))
    assert [(store.archs(), store.devices()) for _ in range(3)] == [(("sm_90",), ())] * 3
    assert len(asked) == 1
    store.write(time_update(make_session()))
    assert store.devices() == (H200,)


def test_counters_alone_are_written_into_the_record_that_is_there(store: BaselineStore, root: Path) -> None:
    store.write(time_update(make_session()))
    before = store.time(H200, make_key())
    store.write(Update(counters={(H200, make_key()): Counts({"smsp__inst_executed.sum": 42.0})}))
    after = BaselineStore(root).time(H200, make_key())
    assert after is not None
    assert before is not None
    assert after.counters == {"smsp__inst_executed.sum": 42.0}
    assert after.rounds == before.rounds


def test_static_evidence_comes_back_as_it_was_recorded(store: BaselineStore, root: Path) -> None:
    written = store.write(static_update())
    assert written == [root / "sm_90/example_suite/test_transpose.json"]
    assert BaselineStore(root).static("sm_90", make_key(), NVRTC) == StaticLookup(make_static(), ())
    assert store.archs() == ("sm_90",)
    assert store.keys("sm_90") == (make_key(),)


def test_times_cubin_and_session_are_stored_together(store: BaselineStore, root: Path) -> None:
    session = make_session()
    store.write(time_update(session))
    assert names(root) == [
        f"cubins/{SHA[:2]}/{SHA}.cubin.z", "manifest.json", "nvidia-h200/example_suite/test_transpose.json"
    ]  # fmt: skip
    assert store.sessions(H200, make_key().module) == (session,)
    assert store.cubin(SHA) == CUBIN
    record = store.time(H200, make_key())
    assert record is not None
    assert len(record.rounds) == 2
    assert store.devices() == (H200,)


def test_another_toolchain_is_told_from_no_baseline_at_all(store: BaselineStore) -> None:
    store.write(static_update())
    store.write(static_update(make_static(registers=40), toolchain="nvrtc 12.9.1"))
    assert store.static("sm_90", make_key(), "nvrtc 13.1.0") == StaticLookup(None, ("nvrtc 12.9.1", NVRTC))
    assert store.static("sm_90", make_key(), NVRTC) == StaticLookup(make_static(), ("nvrtc 12.9.1",))
    assert store.static("sm_90", make_key(workload="naive"), NVRTC) == StaticLookup(None, ())


def test_static_targets_are_listed_in_numeric_order(store: BaselineStore) -> None:
    archs = ("sm_120", "sm_90", "sm_100f", "sm_80")
    store.write(Update(static={(arch, NVRTC, make_key()): make_static() for arch in archs}))
    assert store.archs() == ("sm_80", "sm_90", "sm_100f", "sm_120")


def test_recording_unchanged_evidence_touches_no_file(store: BaselineStore, root: Path) -> None:
    session = make_session()
    store.write(static_update())
    store.write(time_update(session))
    before = {name: ((root / name).read_bytes(), (root / name).stat().st_mtime_ns) for name in names(root)}
    assert store.write(static_update()) == []
    assert store.write(time_update(session)) == []
    assert {name: ((root / name).read_bytes(), (root / name).stat().st_mtime_ns) for name in names(root)} == before


def test_recording_unchanged_evidence_leaves_a_reformatted_file_alone(store: BaselineStore) -> None:
    [file] = store.write(static_update())
    crlf = file.read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(crlf)
    assert store.write(static_update()) == []
    assert file.read_bytes() == crlf


def test_an_update_rewrites_only_its_own_workload(store: BaselineStore, root: Path) -> None:
    other = make_key("test_other[../../etc-\u00e9]")
    elsewhere = make_key(module="example_suite/deep/test_reduce.py")
    for key in (make_key(), other, elsewhere):
        store.write(static_update(key=key))
    untouched = (root / "sm_90/example_suite/deep/test_reduce.json").read_bytes()
    [file] = store.write(static_update(make_static(registers=40), key=other))
    assert file == root / "sm_90/example_suite/test_transpose.json"
    assert store.static("sm_90", other, NVRTC).record == make_static(registers=40)
    assert store.static("sm_90", make_key(), NVRTC).record == make_static()
    assert (root / "sm_90/example_suite/deep/test_reduce.json").read_bytes() == untouched


def test_two_hundred_workloads_of_one_update_are_all_kept(store: BaselineStore) -> None:
    session = make_session()
    keys = [make_key(f"test_many[{number}]") for number in range(200)]
    records = {(H200, key): make_time(session) for key in keys}
    store.write(Update(time=records, sessions=[session], cubins=[CUBIN]))
    assert set(store.keys(H200)) == set(keys)


def test_files_are_read_once_and_again_after_a_write(store: BaselineStore) -> None:
    [file] = store.write(static_update())
    assert store.static("sm_90", make_key(), NVRTC).record == make_static()
    file.unlink()
    assert store.static("sm_90", make_key(), NVRTC).record == make_static()
    store.forget()
    assert store.static("sm_90", make_key(), NVRTC).record is None
    store.write(static_update(make_static(registers=40)))
    assert store.static("sm_90", make_key(), NVRTC).record == make_static(registers=40)


def test_a_time_record_whose_cubin_is_nowhere_is_refused(store: BaselineStore, root: Path) -> None:
    session = make_session()
    with pytest.raises(UnwritableEvidenceError, match="its cubin is neither in this update nor in the store"):
        store.write(Update(time={(H200, make_key()): make_time(session)}, sessions=[session]))
    assert not root.exists()


def test_a_stored_cubin_need_not_be_given_again(store: BaselineStore) -> None:
    store.write(time_update(make_session(1)))
    second = make_session(2)
    store.write(Update(time={(H200, make_key()): make_time(second)}, sessions=[second]))
    assert store.sessions(H200, make_key().module) == (make_session(1), second)


def test_a_round_of_an_unknown_session_is_refused(store: BaselineStore) -> None:
    stranger = make_time(make_session(2))
    with pytest.raises(UnwritableEvidenceError, match="20261102T101500-9f3a"):
        store.write(time_update(make_session(1), stranger))


def test_a_callable_without_a_cubin_is_recorded(store: BaselineStore) -> None:
    session = make_session()
    store.write(Update(time={(H200, make_key()): make_time(session, cubin="")}, sessions=[session]))
    assert store.time(H200, make_key()) is not None


@pytest.mark.parametrize("content", [b"", b"x" * (3 * 1024 * 1024 + 1)], ids=["empty", "too large"])
def test_a_cubin_that_could_not_be_read_back_is_refused(store: BaselineStore, content: bytes) -> None:
    with pytest.raises(UnwritableEvidenceError, match="cannot be stored"):
        store.write(Update(cubins=[content]))


def test_a_missing_cubin_is_named_with_the_remedy(store: BaselineStore) -> None:
    with pytest.raises(CubinError, match=rf"{SHA}.cubin.z: .* is missing.*--update-baselines"):
        store.cubin(SHA)


def test_an_altered_cubin_is_never_handed_out_and_is_replaced_by_an_update(store: BaselineStore, root: Path) -> None:
    store.write(Update(cubins=[CUBIN]))
    path = root / "cubins" / SHA[:2] / f"{SHA}.cubin.z"
    path.write_bytes(compressed(CUBIN.replace(b"transpose", b"backdoor!")))
    with pytest.raises(CubinError, match="does not match the name"):
        store.cubin(SHA)
    store.write(Update(cubins=[CUBIN]))
    assert store.cubin(SHA) == CUBIN


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (CUBIN, "cannot be decompressed"),
        (compressed(CUBIN)[:-1], "it is cut off"),
        (compressed(CUBIN) + b"x", "something follows its end"),
    ],
)
def test_a_cubin_that_does_not_decompress_is_refused_and_replaced(
    store: BaselineStore, root: Path, stored: bytes, problem: str
) -> None:
    store.write(Update(cubins=[CUBIN]))
    (root / "cubins" / SHA[:2] / f"{SHA}.cubin.z").write_bytes(stored)
    with pytest.raises(CubinError, match=rf"{problem}.*--update-baselines"):
        store.cubin(SHA)
    store.write(Update(cubins=[CUBIN]))
    assert store.cubin(SHA) == CUBIN


def test_a_cubin_that_swells_beyond_the_limit_is_refused(store: BaselineStore, root: Path) -> None:
    path = root / "cubins" / SHA[:2] / f"{SHA}.cubin.z"
    path.parent.mkdir(parents=True)
    path.write_bytes(compressed(bytes(64 * 1024 * 1024)))
    with pytest.raises(CubinError, match="larger than 3 MB"):
        store.cubin(SHA)


def test_an_oversized_cubin_is_not_read(store: BaselineStore, root: Path) -> None:
    path = root / "cubins" / SHA[:2] / f"{SHA}.cubin.z"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(3 * 1024 * 1024 + 1)
    with pytest.raises(CubinError, match="larger than 3 MB"):
        store.cubin(SHA)


@pytest.mark.parametrize("name", ["", "../../../etc/passwd", SHA.upper(), SHA[:-1], SHA + "\n"])
def test_only_a_sha256_names_a_cubin(store: BaselineStore, name: str) -> None:
    with pytest.raises(CubinError, match="is no SHA-256"):
        store.cubin(name)


def test_a_cubin_that_may_not_be_read_is_named(store: BaselineStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(Update(cubins=[CUBIN]))
    monkeypatch.setattr(Path, "open", Mock(side_effect=PermissionError(13, "Permission denied")))
    with pytest.raises(CubinError, match=rf"{SHA}.cubin.z: .* cannot be used: the system says: Permission denied"):
        store.cubin(SHA)


def test_a_target_of_the_wrong_kind_is_refused(store: BaselineStore) -> None:
    with pytest.raises(UnsafePathError, match="no architecture"):
        store.static(H200, make_key(), NVRTC)
    with pytest.raises(UnsafePathError, match="no GPU model"):
        store.time("sm_90", make_key())
    with pytest.raises(UnsafePathError, match="no GPU model"):
        store.write(Update(time={("sm_90", make_key()): make_time(make_session())}, cubins=[CUBIN]))


def test_a_file_too_large_to_be_read_again_is_not_written(
    store: BaselineStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(static_update())
    before = {name: (root / name).read_bytes() for name in names(root)}
    monkeypatch.setattr("pytest_gpuperf.baselines.store.MAX_JSON_BYTES", max(map(len, before.values())) + 1)
    with pytest.raises(UnwritableEvidenceError, match="Split the test module"):
        store.write(static_update(key=make_key("test_one_too_many")))
    assert {name: (root / name).read_bytes() for name in names(root)} == before


def test_rounds_of_a_real_size_stay_within_the_size_bound(store: BaselineStore) -> None:
    session = make_session()
    record = make_time(session, rounds=[make_round(session)] * 10)
    records = {(H200, make_key(f"test_many[{number}]")): record for number in range(100)}
    written = store.write(Update(time=records, sessions=[session], cubins=[CUBIN]))
    assert max(file.stat().st_size for file in written) < 100 * 10 * 400


def test_times_are_looked_up_by_test_and_workload(store: BaselineStore) -> None:
    session = make_session()
    store.write(time_update(session))
    record = store.time(H200, make_key())
    assert record is not None
    assert store.time_tests(H200, make_key().module) == {"test_transpose": {"padded": record}}
    assert store.time(H200, make_key(workload="naive")) is None
    assert store.time(H200, make_key("test_reduce")) is None
    assert store.time(H200, make_key(module="test_reduce.py")) is None
    assert store.time_tests(H200, "test_reduce.py") == {}


def test_architectures_and_gpu_models_are_listed_apart(store: BaselineStore) -> None:
    store.write(static_update())
    store.write(time_update(make_session()))
    assert store.archs() == ("sm_90",)
    assert store.devices() == (H200,)


def test_a_file_that_appears_after_it_was_looked_for_is_seen_after_forgetting(store: BaselineStore, root: Path) -> None:
    assert store.static("sm_90", make_key(), NVRTC).record is None
    BaselineStore(root).write(static_update())
    assert store.keys("sm_90") == ()
    store.forget()
    assert store.keys("sm_90") == (make_key(),)


def test_a_file_may_have_as_many_bytes_as_can_be_read_again(
    store: BaselineStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [file] = store.write(static_update())
    size = file.stat().st_size
    file.unlink()
    monkeypatch.setattr("pytest_gpuperf.baselines.store.MAX_JSON_BYTES", size)
    assert store.write(static_update()) == [file]
    file.unlink()
    monkeypatch.setattr("pytest_gpuperf.baselines.store.MAX_JSON_BYTES", size - 1)
    with pytest.raises(UnwritableEvidenceError) as caught:
        store.write(static_update())
    assert str(caught.value) == (
        f"{file} would have {size} bytes and could not be read again: the limit is {size - 1}. Split the test module."
    )


@pytest.mark.parametrize("size", [1, 3 * 1024 * 1024])
def test_cubins_from_one_byte_to_the_limit_are_stored(store: BaselineStore, size: int) -> None:
    content = b"x" * size
    store.write(Update(cubins=[content]))
    assert store.cubin(hashlib.sha256(content).hexdigest()) == content


def test_an_altered_cubin_is_named_with_the_hash_that_it_has(store: BaselineStore, root: Path) -> None:
    store.write(Update(cubins=[CUBIN]))
    path = root / "cubins" / SHA[:2] / f"{SHA}.cubin.z"
    path.write_bytes(compressed(b"another"))
    with pytest.raises(CubinError) as caught:
        store.cubin(SHA)
    assert str(caught.value) == (
        f"{path}: the content does not match the name (its SHA-256 is {hashlib.sha256(b'another').hexdigest()[:12]}...)"
        ". Restore it from version control (cubins need '*.cubin.z binary' in .gitattributes), or record the workload "
        "again with --update-baselines."
    )


def test_a_test_module_with_a_long_name_has_a_baseline(store: BaselineStore) -> None:
    long = make_key(module=f"test_{'x' * 200}.py")
    store.write(static_update(key=long))
    assert store.keys("sm_90") == (long,)


def test_one_update_writes_the_times_of_several_modules(store: BaselineStore) -> None:
    session = make_session()
    keys = [make_key(module=f"test_{name}.py") for name in "abc"]
    records = {(H200, key): make_time(session) for key in keys}
    store.write(Update(time=records, sessions=[session], cubins=[CUBIN]))
    assert store.keys(H200) == tuple(keys)


def test_recording_unchanged_times_leaves_a_reformatted_file_alone(store: BaselineStore) -> None:
    *_, file = store.write(time_update(make_session()))
    crlf = file.read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(crlf)
    assert store.write(time_update(make_session())) == []
    assert file.read_bytes() == crlf


def test_a_file_that_was_written_since_a_moment_is_told_by_its_module(store: BaselineStore) -> None:
    module = make_key().module
    store.write(static_update())
    store.write(time_update(make_session()))
    paths = [layout.evidence_path(store.root, target, module) for target in store.targets()]
    first, last = sorted(path.stat().st_ctime for path in paths)
    assert store.written_since(first - 1, module) in paths
    assert store.written_since(last, module) is None
    assert store.written_since(first - 1, "other/test_it.py") is None
    time.sleep(0.02)
    moment = time.time()
    time.sleep(0.02)
    store.write(Update(static={("sm_90", "nvrtc 13.0.88", make_key("test_new")): make_static(40)}))
    assert store.written_since(moment, module) == layout.evidence_path(store.root, "sm_90", module)
