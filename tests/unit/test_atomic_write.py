"""Files that are never seen half written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_gpuperf.atomic_write import write_durably, write_whole

both = pytest.mark.parametrize("write", [write_whole, write_durably])


@both
def test_the_new_content_takes_the_place_of_the_old(write, tmp_path: Path) -> None:
    path = tmp_path / "näme with blanks.json"
    write(path, b"old")
    write(path, b"new")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [(path.name, b"new")]


@both
def test_what_cannot_be_moved_in_leaves_the_old_file_and_nothing_beside_it(write, tmp_path, monkeypatch) -> None:
    path = tmp_path / "file"
    write(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write(path, b"new")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"old")]


@both
def test_others_may_read_what_the_user_lets_them(write, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_the_content_is_on_the_disk_before_the_old_one_goes(tmp_path: Path, monkeypatch) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("sync"), sync(handle)))
    monkeypatch.setattr(Path, "replace", lambda old, new: (done.append("replace"), replace(old, new))[1])
    write_durably(tmp_path / "file", b"content")
    assert done == ["sync", "replace"]
