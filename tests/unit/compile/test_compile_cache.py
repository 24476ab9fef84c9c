"""The cache on disk: whole entries or none, bounded, shared among processes, and never a reason to fail."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import stat
import warnings
from pathlib import Path

import pytest

from pytest_gpuperf.compile.cache import CompileCache, default_folder
from pytest_gpuperf.compile.compile_errors import CompileCacheWarning

KEY = "ab" + "0" * 62


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("??/*.entry"))


def test_what_was_put_is_got(tmp_path: Path) -> None:
    CompileCache(tmp_path).put(KEY, b"payload")
    assert CompileCache(tmp_path).get(KEY) == b"payload"
    assert CompileCache(tmp_path).get("cd" + KEY[2:]) is None


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    keys = [f"{number:02}" + KEY[2:] for number in range(4)]
    for age, key in enumerate(keys[:3]):
        cache.put(key, bytes(100))
        (path,) = tmp_path.glob(f"??/{key}.entry")
        os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))
    later = CompileCache(tmp_path, max_bytes=350)
    assert later.get(keys[0]) is not None  # the oldest, used again
    later.put(keys[3], bytes(100))
    assert [later.get(key) is not None for key in keys] == [True, False, True, True]


def _write_and_read(folder: str, seed: int) -> int:
    cache = CompileCache(Path(folder), max_bytes=40_000)
    for step in range(60):
        name = f"{(seed * 7 + step) % 20:02}" + KEY[2:]
        cache.put(name, name.encode() * 40)
        found = cache.get(name)
        if found is not None and found != name.encode() * 40:
            return 1
    return 0


def test_processes_share_a_folder(tmp_path: Path) -> None:
    fresh = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    with concurrent.futures.ProcessPoolExecutor(4, mp_context=fresh) as pool:
        assert list(pool.map(_write_and_read, [str(tmp_path)] * 4, range(4))) == [0, 0, 0, 0]


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A folder in which nothing can be made, even by root: its parent is a file."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "cache"


def test_a_folder_that_cannot_be_written_warns_once_and_is_left_alone(unwritable: Path) -> None:
    cache = CompileCache(unwritable)
    with pytest.warns(CompileCacheWarning, match=f"{unwritable} cannot be used .*GPUPERF_CACHE_DIR"):
        cache.put(KEY, b"payload")
    cache.put(KEY, b"payload")  # warnings are errors here: a second one would fail
    assert cache.get(KEY) is None


def test_a_full_disk_leaves_no_half_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_self: Path, _target: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache = CompileCache(tmp_path)
    with pytest.warns(CompileCacheWarning, match="No space left on device"):
        cache.put(KEY, b"payload")
    assert list(tmp_path.glob("??/*")) == []


def test_it_never_fails_a_run_even_where_warnings_are_errors(unwritable: Path) -> None:
    cache = CompileCache(unwritable)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(KEY, b"payload")
    assert cache.get(KEY) is None


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own"
    monkeypatch.delenv("GPUPERF_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert CompileCache().folder == tmp_path / "xdg" / "pytest-gpuperf"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/xdg")
    assert default_folder() == Path.home() / ".cache" / "pytest-gpuperf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "pytest-gpuperf"


# --- what another one may have put there ---------------------------------------------------------

OTHER = "cd" + KEY[2:]


def test_folders_are_for_their_user_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        CompileCache(tmp_path / "cache").put(KEY, b"payload")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "cache" / "ab").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o775, 0o707, 0o1777])
def test_a_folder_that_others_may_write_is_not_used_and_said_once(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    CompileCache(folder).put(KEY, b"payload")
    folder.chmod(mode)
    cache = CompileCache(folder)
    with pytest.warns(CompileCacheWarning, match=rf"other users may write it, mode {mode:o}; chmod 700 .*cache"):
        assert cache.get(KEY) is None
    cache.put(OTHER, b"payload")  # warnings are errors here: a second one would fail
    assert cache.get(KEY) is None
    assert len(entries(folder)) == 1
    folder.chmod(0o700)
    assert CompileCache(folder).get(KEY) == b"payload"


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    CompileCache(folder).put(KEY, b"payload")
    real = Path.stat

    def of_another(self: Path, **how: bool) -> os.stat_result:
        found = real(self, **how)
        return os.stat_result((*found[:4], 4711, *found[5:])) if self == folder else found

    monkeypatch.setattr(Path, "stat", of_another)
    cache = CompileCache(folder)
    with pytest.warns(CompileCacheWarning, match=r"belongs to another user, number 4711.*GPUPERF_CACHE_DIR"):
        assert cache.get(KEY) is None
    cache.put(OTHER, b"payload")
    assert len(entries(folder)) == 1
