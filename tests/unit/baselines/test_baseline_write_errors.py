"""When the file system refuses, nothing is lost and the message says what to do."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest
from baseline_samples import CUBIN, NVRTC, make_key, make_session, make_static, static_update, time_update

from pytest_gpuperf.baselines import transaction, working_folder
from pytest_gpuperf.baselines.baseline_errors import BaselineLockedError, BaselineLockError, BaselineWriteError
from pytest_gpuperf.baselines.cubin_store import compressed
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore


def snapshot(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    store = BaselineStore(tmp_path / "baselines")
    store.write(static_update())
    return store


def failing(error: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    return fail


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_keeps_the_old_file(store: BaselineStore, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    before = snapshot(store.root)
    monkeypatch.setattr(os, "fsync", failing(error))
    with pytest.raises(BaselineWriteError) as caught:
        store.write(static_update(make_static(40)))
    assert str(caught.value) == (
        f"{store.root}/sm_90/example_suite/test_transpose.json: the baseline could not be written: "
        f"{os.strerror(error)}. The file is as it was.\n"
        "Make the folder writable, free space on its disk, or choose another one with --gpuperf-baselines."
    )
    assert snapshot(store.root) == before
    assert store.static("sm_90", make_key(), NVRTC).record == make_static()


def test_a_read_only_file_system_keeps_the_old_file(store: BaselineStore, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(store.root)
    real = Path.open

    def read_only(path: Path, mode: str = "r", *args: object, **kwargs: object) -> object:
        if mode != "rb":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, mode, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", read_only)
    with pytest.raises(BaselineWriteError, match=r"Read-only file system.*\n.*Make the folder writable"):
        store.write(static_update(make_static(40)))
    assert snapshot(store.root) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_keeps_the_old_file(store: BaselineStore) -> None:
    folder = store.root / "sm_90/example_suite"
    before = snapshot(store.root)
    folder.chmod(0o555)
    try:
        with pytest.raises(BaselineWriteError, match="Permission denied"):
            store.write(static_update(make_static(40)))
        assert snapshot(store.root) == before
    finally:
        folder.chmod(0o755)


def test_a_failure_in_the_middle_names_what_was_written_before(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(store.root)
    real = Path.replace

    def fails_for_json(path: Path, target: Path) -> Path:
        if target.suffix == ".json":
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, target)

    monkeypatch.setattr(Path, "replace", fails_for_json)
    with pytest.raises(BaselineWriteError, match=r"1 other file\(s\) of this update were already written") as caught:
        store.write(time_update(make_session()))
    [cubin] = caught.value.written
    assert cubin.read_bytes() == compressed(CUBIN)
    assert snapshot(store.root) == {**before, cubin: compressed(CUBIN)}


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    root = tmp_path / "baselines"
    root.write_text("mine")
    with pytest.raises(BaselineWriteError, match=r"Not a directory|File exists"):
        BaselineStore(root).write(Update(cubins=[CUBIN]))
    assert root.read_text() == "mine"


def test_a_leftover_that_cannot_be_removed_is_named(store: BaselineStore, monkeypatch: pytest.MonkeyPatch) -> None:
    (store.root / ".x.gpuperf-tmp").touch()
    monkeypatch.setattr(Path, "unlink", failing(errno.EPERM))
    with pytest.raises(BaselineWriteError, match=r"\.x\.gpuperf-tmp"):
        store.write(static_update())


def test_a_folder_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "full/file").mkdir(parents=True)
    with pytest.raises(BaselineWriteError, match=r"full: .*not empty"):
        transaction.remove_folder(tmp_path / "full")


# --- the lock ------------------------------------------------------------------------------------


def test_a_second_writer_waits_for_a_bounded_time(tmp_path: Path) -> None:
    refused: list[BaselineLockedError] = []

    def second() -> None:
        try:
            with transaction.exclusive(tmp_path, timeout_s=0.1):
                pass
        except BaselineLockedError as error:
            refused.append(error)

    with transaction.exclusive(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    [error] = refused
    assert "another run has been writing these baselines for more than 0.1 s" in str(error)
    assert "Nothing was written" in str(error)
    second()
    assert len(refused) == 1


def test_the_lock_is_the_same_by_every_name_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "baselines").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path)
    with (
        transaction.exclusive(tmp_path / "baselines"),
        pytest.raises(BaselineLockedError),
        transaction.exclusive(tmp_path / "alias" / "baselines", timeout_s=0.05),
    ):
        pytest.fail("two writers at once")


def test_another_folder_is_not_locked(tmp_path: Path) -> None:
    with transaction.exclusive(tmp_path / "one"), transaction.exclusive(tmp_path / "two", timeout_s=0.0):
        assert [path.name for path in (tmp_path / "one").iterdir()] == [working_folder.NAME]


def test_no_place_for_a_lock_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filelock.FileLock, "acquire", failing(errno.EROFS))
    with pytest.raises(BaselineLockError, match=r"\.work/lock: .*Read-only.*writable"), transaction.exclusive(tmp_path):
        pytest.fail("no lock, no writing")


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    def record(first: int) -> None:
        for number in range(first, 40, 2):
            BaselineStore(tmp_path).write(static_update(key=make_key(f"test_many[{number}]")))

    threads = [threading.Thread(target=record, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(BaselineStore(tmp_path).keys("sm_90")) == 40


# --- one file after the other --------------------------------------------------------------------


def test_files_after_an_unchanged_one_are_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"same")
    working_folder.make(tmp_path)
    written = transaction.write_all(tmp_path, [(tmp_path / "a", b"same"), (tmp_path / "b", b"new")])
    assert written == [tmp_path / "b"]
    assert (tmp_path / "b").read_bytes() == b"new"


def test_a_folder_that_another_process_makes_meanwhile_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    working_folder.make(tmp_path)
    real = Path.mkdir

    def after_another_process(path: Path, *args: object, **kwargs: object) -> None:
        real(path)
        real(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", after_another_process)
    transaction.write_all(tmp_path, [(tmp_path / "one/two/file", b"new")])
    assert (tmp_path / "one/two/file").read_bytes() == b"new"


@pytest.mark.skipif(os.name != "posix", reason="Windows cannot sync a folder")
def test_a_write_syncs_the_file_and_every_folder_that_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_folder.make(tmp_path)
    synced: list[int] = []
    real = os.fsync

    def noting(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", noting)
    transaction.write_all(tmp_path, [(tmp_path / "one/two/file", b"new")])
    changed = [tmp_path, tmp_path / "one", tmp_path / "one/two/file", tmp_path / "one/two"]
    assert synced == [path.stat().st_ino for path in changed], "a name is durable once its folder is synced"
    synced.clear()
    transaction.remove(tmp_path / "one/two/file")
    transaction.remove_folder(tmp_path / "one/two")
    assert synced[1:] == [(tmp_path / "one").stat().st_ino]
