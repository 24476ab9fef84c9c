"""The lock of a baseline folder: where it lies, whom it names, and what it does where the system has no locks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from baseline_samples import NVRTC, make_key, static_update

from pytest_gpuperf.baselines import layout, transaction, update_lock, working_folder
from pytest_gpuperf.baselines.baseline_errors import (
    BaselineError,
    BaselineLockedError,
    BaselineLockError,
    UnsafePathError,
)
from pytest_gpuperf.baselines.store import BaselineStore

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
LASTING = {".gitignore", "lock"}
"""What may lie in the working folder between updates; some versions of filelock remove the lock's file."""
HOLDER = """
import pathlib, sys
from pytest_gpuperf.baselines import transaction
with transaction.exclusive(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "baselines"


@pytest.fixture
def work(root: Path) -> Path:
    """The working folder of baselines that were written once."""
    BaselineStore(root).write(static_update())
    return root / working_folder.NAME


@contextlib.contextmanager
def another_process(root: Path, *words: str, before: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until it is ended."""
    command = [sys.executable, "-c", before + HOLDER, str(root), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def one_thread_waits(root: Path, said: list[str], timeout_s: float) -> Iterator[list[BaselineError]]:
    """A thread that wants the lock meanwhile; what it raised."""
    problems: list[BaselineError] = []

    def wait() -> None:
        try:
            with transaction.exclusive(root, said.append, timeout_s):
                pass
        except BaselineError as problem:
            problems.append(problem)

    thread = threading.Thread(target=wait)
    thread.start()
    yield problems
    thread.join()


def no_locks(code: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return refuse


@pytest.fixture(params=[errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS], ids=errno.errorcode.get)
def without_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system that has no locks; the statements that make another process see it so."""
    monkeypatch.setattr(fcntl, "flock", no_locks(request.param))
    return f"""
import errno, fcntl
def refuse(*_):
    raise OSError({request.param}, "no locks")
fcntl.flock = refuse
"""


# --- the working folder --------------------------------------------------------------------------


def test_the_lock_lies_in_the_baselines_and_nothing_else_stays_there(work: Path) -> None:
    assert {path.name for path in work.iterdir()} <= LASTING
    assert (work / ".gitignore").read_text(encoding="ascii") == "*\n"


def test_no_reader_takes_the_working_folder_for_baselines(work: Path) -> None:
    (work / "test_x.json").write_text("{}")
    assert not layout.is_device(working_folder.NAME)
    assert not layout.is_arch(working_folder.NAME)
    assert layout.targets(work.parent) == ("sm_90",)


def test_reading_makes_no_working_folder(root: Path, work: Path) -> None:
    shutil.rmtree(work)
    assert BaselineStore(root).static("sm_90", make_key(), NVRTC).record is not None
    assert not work.exists()


@needs_git
def test_git_takes_nothing_of_the_working_folder(root: Path, work: Path) -> None:
    subprocess.run(["git", "init", "-q", root.parent], check=True)
    (work / ".x.json.0123.gpuperf-tmp").touch()
    listed = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert sorted(listed.split()[1::2]) == [
        "baselines/manifest.json",
        "baselines/sm_90/example_suite/test_transpose.json",
    ]


@pytest.mark.parametrize("spoilt", [b"", b"*", b"!lock\n"])
def test_a_working_folder_that_does_not_ignore_itself_is_mended(root: Path, work: Path, spoilt: bytes) -> None:
    (work / ".gitignore").write_bytes(spoilt)
    working_folder.make(root)
    assert (work / ".gitignore").read_bytes() == b"*\n"


def test_processes_that_make_the_working_folder_at_once_get_along(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir()
    real = Path.mkdir

    def after_another(path: Path, *arguments: object, **named: object) -> None:
        real(path, *arguments, **named)  # type: ignore[arg-type]
        if path.name == ".git":
            monkeypatch.setattr(Path, "mkdir", real)
            working_folder.make(root)

    monkeypatch.setattr(Path, "mkdir", after_another)
    folder = working_folder.make(root)
    assert [path.name for path in folder.iterdir()] == [".gitignore"]


def test_a_folder_that_a_group_may_write_has_a_lock_that_it_may_take(root: Path) -> None:
    root.mkdir()
    root.chmod(0o775)
    with transaction.exclusive(root):
        assert (root / working_folder.NAME).stat().st_mode & 0o777 == 0o775
        assert (root / working_folder.NAME / "lock").stat().st_mode & 0o777 == 0o664


def test_a_working_folder_that_may_not_be_written_is_named_if_its_lock_cannot_be_taken(root: Path, work: Path) -> None:
    (work / "lock").touch(0o444)
    work.chmod(0o555)
    stopped = pytest.raises(BaselineLockError, match="Make the folder and this file writable")
    superuser = os.access(work, os.W_OK)  # whom no permission stops
    try:
        with contextlib.nullcontext() if superuser else stopped, transaction.exclusive(root):
            assert superuser
    finally:
        work.chmod(0o755)


@pytest.mark.parametrize("name", ["", "lock", "held"])
def test_a_link_in_the_place_of_the_lock_is_refused(root: Path, work: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir() if not name else victim.write_text("precious")
    place = work / name
    shutil.rmtree(place) if not name else place.unlink(missing_ok=True)
    place.symlink_to(victim)
    with pytest.raises(UnsafePathError, match="is a link"):
        BaselineStore(root).write(static_update(key=make_key("test_other")))
    assert list(victim.iterdir()) == [] if not name else victim.read_text() == "precious"


def test_links_in_the_place_of_files_that_are_replaced_are_not_followed(root: Path, work: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (".gitignore", update_lock.OWNER):
        (work / name).unlink(missing_ok=True)
        (work / name).symlink_to(victim)
    BaselineStore(root).write(static_update(key=make_key("test_other")))
    assert victim.read_text() == "precious"
    assert {path.name for path in work.iterdir()} <= LASTING


# --- who waits -----------------------------------------------------------------------------------


def test_who_waits_is_told_for_whom(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_lock, "PATIENCE_S", 0.1)
    said: list[str] = []
    with another_process(root, "--update-baselines") as holder:
        with one_thread_waits(root, said, timeout_s=20.0) as problems:
            while not said:
                time.sleep(0.01)
            holder.kill()
        assert problems == []
    [line] = said
    assert line.startswith(f"waiting for another update of {root}, process {holder.pid} on {platform.node()} since 20")
    assert line.endswith(f"Z: -c {root} --update-baselines")


def test_who_waited_in_vain_is_told_who_holds_the_lock(root: Path) -> None:
    with (
        another_process(root) as holder,
        pytest.raises(BaselineLockedError) as caught,
        transaction.exclusive(root, timeout_s=0.1),
    ):
        pytest.fail("two at once")
    first, second = str(caught.value).splitlines()
    assert first.startswith(
        f"{root}: another run has been writing these baselines for more than 0.1 s (process {holder.pid} on "
    )
    assert second == "Wait for it to end, or stop it, and run the update again."


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b'{"pid": "x"}', b"[" * 100_000, None])
def test_an_owner_that_cannot_be_read_is_no_reason_to_fail(root: Path, content: bytes | None) -> None:
    with transaction.exclusive(root):
        owner = root / working_folder.NAME / update_lock.OWNER
        owner.unlink()
        if content is not None:
            owner.write_bytes(content)
        with pytest.raises(BaselineLockedError, match="left no name"), transaction.exclusive(root, timeout_s=0.0):
            pytest.fail("two at once")


def test_the_owner_on_record_cannot_steer_the_terminal(root: Path) -> None:
    with transaction.exclusive(root):
        owner = {"pid": 1, "host": "\x1b[2J", "since": "\n", "command": "x" * 9999}
        (root / working_folder.NAME / update_lock.OWNER).write_text(json.dumps(owner))
        with pytest.raises(BaselineLockedError) as caught, transaction.exclusive(root, timeout_s=0.0):
            pytest.fail("two at once")
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_holder_whose_name_cannot_be_written_holds_all_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_lock, "write_whole", no_locks(errno.ENOSPC))
    with (
        transaction.exclusive(root),
        pytest.raises(BaselineLockedError, match="left no name"),
        transaction.exclusive(root, timeout_s=0.0),
    ):
        pytest.fail("two at once")


# --- without locks -------------------------------------------------------------------------------


def marker(root: Path) -> Path:
    """The file that is the lock."""
    return root / working_folder.NAME / update_lock.MARKER


def test_without_locks_processes_exclude_each_other_too(root: Path, without_locks: str) -> None:
    with another_process(root, before=without_locks) as holder:
        with pytest.raises(BaselineLockedError) as caught, transaction.exclusive(root, timeout_s=0.1):
            pytest.fail("two at once")
        assert f"(process {holder.pid} on " in str(caught.value)
        assert f"If it is gone, remove {marker(root)} first" in str(caught.value)
    with transaction.exclusive(root, timeout_s=5.0):
        assert marker(root).is_file()
    assert not marker(root).exists()


def test_without_locks_that_of_a_dead_process_is_broken(root: Path, without_locks: str) -> None:
    with another_process(root, before=without_locks) as holder:
        held = marker(root)
        holder.kill()
        holder.wait()
    assert held.exists()
    with transaction.exclusive(root, timeout_s=5.0):
        assert marker(root).is_file()
    assert not held.exists()


def test_without_locks_that_of_another_machine_is_respected(root: Path, work: Path, without_locks: str) -> None:
    with transaction.exclusive(root):
        held = marker(root)
        content = held.read_text()
    held.write_text(content.replace(platform.node(), "elsewhere"))
    with pytest.raises(BaselineLockedError, match=f"remove {held}"), transaction.exclusive(root, timeout_s=0.3):
        pytest.fail("the other machine may be writing")
    held.unlink()
    with transaction.exclusive(root, timeout_s=0.0):
        pass


def test_another_failure_is_no_reason_to_do_without_locks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", no_locks(errno.EIO))
    with pytest.raises(BaselineLockError), transaction.exclusive(root):
        pytest.fail("no lock, no writing")
