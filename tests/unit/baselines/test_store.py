"""The store as its users see it: what is written can be looked up and is in the manifest; nothing else changes."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import filelock
import pytest
from baseline_samples import (
    CUBIN,
    H200,
    NVRTC,
    keys_of,
    make_key,
    make_session,
    make_static,
    make_time,
    static_update,
    time_update,
)

from pytest_gpuperf.baselines import cubin_store, manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, CubinError
from pytest_gpuperf.baselines.cubin_store import MAX_CUBIN_BYTES, compressed, stored_cubins
from pytest_gpuperf.baselines.store import Baselines, BaselineStore, Update

SHA = hashlib.sha256(CUBIN).hexdigest()
FILE = "sm_90/example_suite/test_transpose.jsonl"
SWELLS = lzma.compress(bytes(64 << 20), lzma.FORMAT_ALONE, filters=cubin_store._FILTERS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "baselines"


@pytest.fixture
def store(root: Path) -> BaselineStore:
    return BaselineStore(root)


def contents(root: Path) -> dict[str, bytes]:
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {name: content for name, content in files.items() if not name.startswith(".work/")}


def test_a_missing_folder_is_a_store_without_baselines(store: BaselineStore) -> None:
    assert store.static("sm_90", make_key(), NVRTC) is None
    assert (store.time(H200, make_key()), store.manifest()) == (None, None)
    assert store.targets() == keys_of(store, "sm_90") == store.archs_asked() == ()
    assert store.compilers("sm_90", make_key(), NVRTC) == [NVRTC]


def test_what_is_recorded_comes_back_as_it_was(store: BaselineStore, root: Path) -> None:
    assert root / FILE in store.write(static_update())
    assert BaselineStore(root).static("sm_90", make_key(), NVRTC) == make_static()
    assert (store.archs(), keys_of(store, "sm_90")) == (("sm_90",), (make_key(),))
    session = make_session()
    store.write(time_update(session))
    assert sorted(contents(root)) == [
        f"cubins/{SHA}.cubin.z", "manifest.json", "nvidia-h200/example_suite/test_transpose.jsonl", FILE
    ]  # fmt: skip
    record = store.time(H200, make_key())
    assert record is not None
    assert (record.session, H200 in store.targets()) == (session, True)
    assert store.of_test(H200, make_key()) == {"padded": record}
    assert store.cubin(SHA) == CUBIN


def test_any_mapping_of_paths_to_bytes_is_read_alike(store: BaselineStore, root: Path) -> None:
    store.write(static_update())
    store.write(time_update(make_session()))
    copy = Baselines({**contents(root), "sm_90/a//b.jsonl": b"", "README.md": b""}, "HEAD:baselines")
    assert copy.targets() == store.targets() == ("sm_90", H200)
    assert keys_of(copy, H200) == keys_of(store, H200) == (make_key(),)
    time = store.time(H200, make_key())
    assert copy.time(H200, make_key()) == time
    static = {("sm_90", NVRTC): make_static()}
    assert copy.workloads() == store.workloads() == {make_key(): (static, {H200: time})}
    module, profile = make_key().module, make_static().profile
    for _ in range(2):
        assert copy.profiles("sm_90", module, NVRTC) == {profile.code_hash: profile}
    assert copy.profiles("sm_90", module, "nvrtc 12.9.1") == {}
    with pytest.raises(BaselineError, match=f"^HEAD:baselines/{FILE}: this baseline cannot be read"):
        keys_of(Baselines({FILE: b"{"}, "HEAD:baselines"), "sm_90")


def test_another_toolchain_is_told_from_no_baseline(store: BaselineStore) -> None:
    store.write(static_update())
    store.write(static_update(make_static(registers=40), toolchain="nvrtc 12.9.1"))
    assert store.static("sm_90", make_key(), "nvrtc 13.1.0") is None
    assert store.static("sm_90", make_key(), NVRTC) == make_static()
    store.write(static_update(toolchain="nvrtc 13.10.1"))
    assert store.compilers("sm_90", make_key(), "nvrtc 12.9.1") == ["nvrtc 12.9.1", "nvrtc 13.10.1", NVRTC]
    assert store.compilers("sm_90", make_key(workload="naive"), NVRTC) == [NVRTC]


def test_recording_unchanged_evidence_changes_no_byte(store: BaselineStore, root: Path) -> None:
    for update in (static_update(), time_update(make_session())):
        store.write(update)
        before = contents(root)
        assert store.write(update) == []
        assert contents(root) == before


def test_an_update_rewrites_its_own_workload_only(store: BaselineStore, root: Path) -> None:
    other, elsewhere = make_key("test_other[../../etc-\u00e9]"), make_key(module="example_suite/deep/test_reduce.py")
    for key in (make_key(), other, elsewhere):
        store.write(static_update(key=key))
    assert store.write(static_update(make_static(registers=40), key=other)) == [root / FILE]
    assert store.static("sm_90", other, NVRTC) == make_static(registers=40)
    assert store.static("sm_90", make_key(), NVRTC) == make_static()
    (root / FILE).unlink()
    assert store.static("sm_90", make_key(), NVRTC) == make_static(), "it is read once"
    store.forget()
    assert store.static("sm_90", make_key(), NVRTC) is None


def test_records_that_an_update_removes_are_removed_from_every_target(store: BaselineStore, root: Path) -> None:
    other = make_key("test_other")
    for update in (static_update(), static_update(key=other), time_update(make_session())):
        store.write(update)
    store.write(Update(static=static_update(make_static(registers=40), key=other).static, removed=[make_key()]))
    assert (keys_of(store, "sm_90"), store.static("sm_90", other, NVRTC)) == ((other,), make_static(registers=40))
    assert [path.name for path in root.iterdir() if path.name.startswith("nvidia")] == [], "no empty folder stays"


def test_machine_code_that_no_record_names_is_swept(store: BaselineStore, root: Path) -> None:
    session, other = make_session(), make_key(module="test_other.py")
    store.write(time_update(session))
    store.write(static_update(key=other))
    store.write(Update(cubins=[b"another"]))
    assert len(stored_cubins(root)) == 2, "an update that sweeps nothing keeps unused machine code"
    store.write(Update(), sweep=True)
    assert list(stored_cubins(root).values()) == [SHA]


@pytest.mark.parametrize(("update", "words"), [
    (Update(time={(H200, make_key()): make_time(make_session())}), "its cubin is neither"),
    (Update(cubins=[b""]), "cannot be stored"),
    (Update(cubins=[b"x" * (MAX_CUBIN_BYTES + 1)]), "cannot be stored"),
    (static_update(key=make_key(module="../test_x.py")), "cannot name a baseline file"),
    (Update(static={("../x", NVRTC, make_key()): make_static()}), "is no baseline target"),
])  # fmt: skip
def test_a_refused_update_makes_no_folder(store: BaselineStore, root: Path, update: Update, words: str) -> None:
    with pytest.raises(BaselineError, match=words):
        store.write(update)
    assert not root.exists()


def test_stray_files_are_no_baselines(store: BaselineStore, root: Path) -> None:
    store.write(static_update())
    for arch in ("sm_120", "sm_100f"):
        store.write(Update(static={(arch, NVRTC, make_key()): make_static()}))
    store.write(time_update(make_session()))
    for name in ("README.jsonl", "Notes/test_x.jsonl", "sm_90/notes.txt", "sm_90/.jsonl", "sm_80/readme.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("hello")
    store.forget()
    assert store.targets() == ("sm_90", "sm_100f", "sm_120", H200), "architectures by number, then GPU models"
    assert (keys_of(store, "sm_90"), H200 in store.targets()) == ((make_key(),), True)
    found = store.manifest()
    assert found is not None
    assert found.architectures == ("sm_90", "sm_100f", "sm_120")


# --- machine code --------------------------------------------------------------------------------


@pytest.mark.parametrize(("stored", "words"), [
    (CUBIN, "cannot be read"), (compressed(CUBIN)[:-1], "it is cut off"),
    (compressed(CUBIN) + b"x", "something follows its end"), (compressed(b"another"), "does not match the name"),
    (SWELLS, "larger than 3 MB"), (b"x" * (MAX_CUBIN_BYTES + 1), "larger than 3 MB"),
], ids=["plain", "cut", "more", "another", "swells", "large"])  # fmt: skip
def test_altered_machine_code_is_refused(store: BaselineStore, root: Path, stored: bytes, words: str) -> None:
    store.write(Update(cubins=[CUBIN]))
    (root / "cubins" / f"{SHA}.cubin.z").write_bytes(stored)
    with pytest.raises(BaselineError, match=rf"{SHA}.cubin.z: .*{words}"):
        store.cubin(SHA)
    store.write(Update(cubins=[CUBIN]))
    assert store.cubin(SHA) == CUBIN


def test_pointers_of_git_lfs_are_named_with_the_remedy(store: BaselineStore, root: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{SHA}\nsize 1234\n"
    store.write(Update(static=static_update().static, cubins=[CUBIN]))
    for path in (root / "cubins" / f"{SHA}.cubin.z", root / FILE):
        path.write_text(pointer)
    store.forget()
    for read in (store.workloads, lambda: store.cubin(SHA)):
        with pytest.raises(BaselineError, match=r"is a pointer of Git LFS\. To do: git lfs pull; in CI, "):
            read()


def test_machine_code_of_any_size_is_found_and_what_is_not_there_is_named_with_the_remedy(store: BaselineStore) -> None:
    with pytest.raises(CubinError, match=rf"{SHA}.cubin.z: .* is missing.*--update-baselines"):
        store.cubin(SHA)
    for content in (b"x", bytes(MAX_CUBIN_BYTES)):
        store.write(Update(cubins=[content]))
        assert store.cubin(hashlib.sha256(content).hexdigest()) == content
    for name in ("", "../../../etc/passwd", SHA.upper(), SHA[:-1], SHA + "\n"):
        with pytest.raises(CubinError, match="is no SHA-256"):
            store.cubin(name)


# --- a folder that anybody may have made ---------------------------------------------------------


@pytest.mark.parametrize("place", ["sm_90", "sm_90/example_suite", FILE, "cubins", ".work"])
def test_a_link_out_of_the_folder_is_not_followed(root: Path, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(outside)
    store = BaselineStore(root)
    with pytest.raises(BaselineError, match="outside the baseline folder: remove the link"):
        store.write(Update(static=static_update().static, cubins=[CUBIN]))
    assert list(outside.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_named(root: Path) -> None:
    (root / "sm_90/test_folder.jsonl").mkdir(parents=True)
    os.mkfifo(root / "sm_90/test_pipe.jsonl")
    (root / "sm_90/test_loop.jsonl").symlink_to("test_loop.jsonl")
    (root / "sm_90/test_large.jsonl").write_bytes(bytes((16 << 20) + 1))
    no_file = "it is not a regular file"
    for name, why in {"folder": no_file, "pipe": no_file, "loop": "", "large": "it is larger"}.items():
        with pytest.raises(BaselineError, match=rf"^{root}.*test_{name}\.jsonl: this baseline cannot be read: {why}"):
            BaselineStore(root).static("sm_90", make_key(module=f"test_{name}.py"), NVRTC)
    (root / FILE).parent.mkdir()
    (root / FILE).write_bytes(b"{")
    with pytest.raises(BaselineError, match=f"^{root / FILE}: .*\n.*delete it and record it again"):
        BaselineStore(root).write(static_update(make_static(40)))
    assert (root / FILE).read_bytes() == b"{", "it is never overwritten"
    with pytest.raises(BaselineError, match=r"jsonl: .*Not a directory"):
        BaselineStore(root / FILE).archs()


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A folder with static evidence for sm_90 and times of an H200."""
    folder = tmp_path / "baselines"
    BaselineStore(folder).write(static_update())
    BaselineStore(folder).write(time_update(make_session()))
    return folder


def named(listed: Path) -> tuple[str, ...]:
    found = BaselineStore(listed).manifest()
    return found.targets if found else ()


def test_an_update_names_its_targets_and_keeps_those_that_are_gone(listed: Path) -> None:
    assert (listed / manifest.FILE).read_text() == (
        '{\n  "architectures": [\n    "sm_90"\n  ],\n  "gpu_models": [\n    "nvidia-h200"\n  ],\n'
        '  "schema": 2,\n  "toolchains": [\n    "nvrtc 13.0.88"\n  ]\n}\n'
    )
    (listed / manifest.FILE).unlink()
    assert named(listed) == ()
    BaselineStore(listed).write(static_update(toolchain="unknown"))
    assert named(listed) == ("sm_90", "nvidia-h200")
    assert '"unknown"' not in (listed / manifest.FILE).read_text()
    shutil.rmtree(listed / "sm_90")
    BaselineStore(listed).write(time_update(make_session()))
    assert set(named(listed)) - set(BaselineStore(listed).targets()) == {"sm_90"}


def test_an_architecture_that_no_run_was_asked_for_is_that_of_kernels_until_one_is(listed: Path) -> None:
    def told(asked: tuple[str, ...] | None, arch: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        store = BaselineStore(listed)
        (record,) = static_update().static.values()
        store.write(Update(static={(arch, "nvrtc 13.0.88", make_key()): record}, asked=asked))
        found = BaselineStore(listed).manifest()
        assert found is not None
        return found.named_by_kernels, store.archs_asked()

    assert told(("sm_90",), "sm_90") == ((), ("sm_90",))
    assert told(("sm_90",), "sm_80") == (("sm_80",), ("sm_90",))
    assert told(("sm_120", "sm_90"), "sm_120") == (("sm_80",), ("sm_90", "sm_120"))
    assert told(("sm_80",), "sm_80") == ((), ("sm_80", "sm_90", "sm_120"))
    assert told(None, "sm_75") == ((), ("sm_75", "sm_80", "sm_90", "sm_120"))
    store = BaselineStore(listed.parent / "other")
    store.write(Update())
    assert not store.root.exists()
    store.write(Update(static=static_update().static, asked=("sm_80",)))
    assert store.archs_asked() == ("sm_90",), "where kernels name every architecture, all are asked for"


@pytest.mark.parametrize(("content", "problem"), [
    ("{", "Input data was truncated"), ('{"schema": 1}', "missing required field"),
    ('{"schema": 3, "targets": []}', "its schema is 3, and this pytest-gpuperf reads 2"),
    ('{"schema": 1, "architectures": ["../x"], "gpu_models": []}', "'../x' is no architecture, GPU model"),
    ('{"schema": 1, "architectures": [], "gpu_models": ["sm_90"]}', "'sm_90' is no architecture, GPU model"),
    ('{"schema": 2, "architectures": [], "gpu_models": [], "toolchains": ["a\\u001b 1"]}', "is no arch"),
    (" " * (manifest.MAX_BYTES + 1), "it is larger than 1 MB"), ("<<<<<<< HEAD\n{}", "unresolved merge conflict"),
    ('{"schema": 1, "x": ' + "[" * 5000, "manifest.json: this baseline cannot be read"),
])  # fmt: skip
def test_one_that_cannot_be_understood_is_refused_and_not_overwritten(listed: Path, content: str, problem: str) -> None:
    (listed / manifest.FILE).write_text(content)
    with pytest.raises(BaselineError, match=r"manifest\.json: this baseline cannot be read") as raised:
        BaselineStore(listed).write(static_update())
    assert problem in str(raised.value)
    assert (listed / manifest.FILE).read_text() == content
    assert BaselineStore(listed).archs_asked() == ("sm_90",)


def test_what_cannot_be_written_is_named(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, a file in the place of a folder, and a lock that cannot be taken."""
    BaselineStore(root).write(static_update())
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(BaselineError, match=r"could not be written: No space left on device\. No file is half"):
            BaselineStore(root).write(static_update(make_static(40)))
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    for place in ("a", "b/.work", "c/sm_90"):
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
        with pytest.raises(BaselineError):
            BaselineStore(tmp_path / place[0]).write(static_update())
        assert path.read_bytes() == b"mine"
    monkeypatch.setattr(filelock.FileLock, "acquire", Mock(side_effect=PermissionError(13, "Permission denied")))
    with pytest.raises(BaselineError, match="could not be written: Permission denied"):
        BaselineStore(root).write(static_update())
