"""The lock of a GPU: one process at a time, for all users, with the holder's name for those who wait."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_gpuperf.device import lock as lock_module
from pytest_gpuperf.device.device_errors import LockTimeout, LockUnavailable
from pytest_gpuperf.device.lock import GpuLock, lock_folder

HOLD = """
import sys
from pathlib import Path
from pytest_gpuperf.device.lock import GpuLock
with GpuLock("GPU-11", Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.read()
"""


TRY = """
import sys
from pathlib import Path
from pytest_gpuperf.device.device_errors import LockTimeout
from pytest_gpuperf.device.lock import GpuLock
try:
    with GpuLock("GPU-11", Path(sys.argv[1]), wait_s=0.1).held():
        print("free")
except LockTimeout:
    print("taken")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "locks"


@pytest.fixture
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds GPU-11."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_another_process_waits_and_is_told_who_holds_the_gpu(folder: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(LockTimeout) as caught, GpuLock("GPU-11", folder, wait_s=0.1).held():
        pass
    assert f"process {holder.pid} has held this GPU for 0.1 s" in str(caught.value)
    assert "GPU-11.lock" in str(caught.value)
    assert "end it" in str(caught.value)


@pytest.mark.parametrize("name", ["", "no number"])
def test_an_unreadable_name_of_the_holder_does_not_matter(
    folder: Path, holder: subprocess.Popen[str], name: str
) -> None:
    (folder / "GPU-11.holder").write_text(name)
    with pytest.raises(LockTimeout, match="another process has held"), GpuLock("GPU-11", folder, wait_s=0.1).held():
        pass


def test_the_gpu_is_free_when_its_holder_is_killed(folder: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with GpuLock("GPU-11", folder, wait_s=5).held():
        assert (folder / "GPU-11.holder").read_text() == f"{os.getpid()}\n"


PASS_ON = """
import sys, time
from pathlib import Path
from pytest_gpuperf.device.lock import GpuLock
lock = GpuLock("GPU-11", Path(sys.argv[1]), wait_s=1.0)
for _ in range(int(sys.argv[2])):
    with lock.held():
        print("held", flush=True)
        time.sleep(0.6)
"""


def passing_on(folder: Path, times: int) -> subprocess.Popen[str]:
    """A process that takes GPU-11 again as soon as it has given it back."""
    command = [sys.executable, "-c", PASS_ON, str(folder), str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_who_takes_the_gpu_again_at_once_comes_behind_who_waits(folder: Path) -> None:
    with passing_on(folder, 6) as other:
        assert other.stdout is not None
        other.stdout.readline()
        for _ in range(2):  # each within a hold of the other
            with GpuLock("GPU-11", folder, wait_s=1.0).held():
                assert other.poll() is None
        other.kill()


def test_a_wait_lasts_as_long_as_the_gpu_changes_hands(folder: Path) -> None:
    """Three others before it hold the GPU for 0.6 s each, and each has a second's patience."""
    with passing_on(folder, 2) as one, passing_on(folder, 2) as two, passing_on(folder, 2) as three:
        assert [process.wait() for process in (one, two, three)] == [0, 0, 0]


GO_ON = """
import sys, time
from pathlib import Path
from pytest_gpuperf.device.lock import GpuLock
lock = GpuLock("GPU-11", Path(sys.argv[1]))
with lock.held():
    print("held", flush=True)
    for _ in range(6):
        time.sleep(0.4)
        with lock.held():
            pass
"""


def test_a_holder_that_goes_on_is_waited_for(folder: Path) -> None:
    """For 2.4 s in all, though a second is the patience."""
    with subprocess.Popen([sys.executable, "-c", GO_ON, str(folder)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with GpuLock("GPU-11", folder, wait_s=1.0).held():
            assert (folder / "GPU-11.holder").read_text() == f"{os.getpid()}\n"


def test_a_gpu_that_the_parent_holds_is_not_waited_for(
    folder: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPERF_HELD_GPU", "GPU-11")
    with GpuLock("GPU-11", folder, wait_s=0.1).held():
        pass
    with GpuLock("GPU-12", folder, wait_s=0.1).held():
        assert (folder / "GPU-12.holder").exists()


def test_another_gpu_is_free(folder: Path, holder: subprocess.Popen[str]) -> None:
    with GpuLock("GPU-12", folder, wait_s=0.1).held():
        pass


def test_a_process_may_take_its_gpu_again(folder: Path) -> None:
    lock = GpuLock("GPU-11", folder, wait_s=0.1)
    with lock.held():
        with lock.held(), GpuLock("GPU-11", folder, wait_s=0.1).held():
            pass
        assert seen_by_another_process(folder) == "taken"
    assert seen_by_another_process(folder) == "free"


def seen_by_another_process(folder: Path) -> str:
    command = [sys.executable, "-c", TRY, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_holder_is_forgotten_and_an_error_releases_the_gpu(folder: Path) -> None:
    with pytest.raises(KeyError), GpuLock("GPU-11", folder).held():
        raise KeyError
    assert not (folder / "GPU-11.holder").exists()
    with GpuLock("GPU-11", folder, wait_s=0.1).held():
        pass


def test_the_folder_and_the_lock_are_for_all_users(folder: Path) -> None:
    umask = os.umask(0o077)
    try:
        with GpuLock("GPU-11", folder).held():  # some versions of filelock remove the file at its end
            assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
            assert stat.S_IMODE((folder / "GPU-11.lock").stat().st_mode) == 0o666
    finally:
        os.umask(umask)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file")
    lock = GpuLock("GPU-11", tmp_path / "locks")
    with pytest.raises(LockUnavailable, match=r"locks/GPU-11\.lock, cannot be used .*TMPDIR"), lock.held():
        pass


def test_a_holder_that_cannot_be_named_measures_all_the_same(folder: Path) -> None:
    (folder / "GPU-11.holder").mkdir(parents=True)
    with GpuLock("GPU-11", folder, wait_s=1).held():
        pass


def test_no_uuid_escapes_the_folder(folder: Path) -> None:
    assert GpuLock("../../etc/passwd", folder).path.parent == folder
    assert GpuLock("", folder).path.name == "unknown.lock"
    assert GpuLock("GPU-11").path.parent == lock_folder()


def test_the_folder_of_the_locks_can_be_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUPERF_LOCK_DIR", str(tmp_path / "locks"))
    assert lock_folder() == tmp_path / "locks"
    with GpuLock("GPU-11").held():
        assert (tmp_path / "locks" / "GPU-11.lock").exists()


# --- what another user may have put there --------------------------------------------------------


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file of this user's that nobody but this user may change; nothing changes it in the test."""
    file = tmp_path / "victim"
    file.write_text("precious")
    file.chmod(0o600)
    yield file
    assert file.read_text() == "precious"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def refused(folder: Path) -> str:
    with pytest.raises(LockUnavailable) as caught, GpuLock("GPU-11", folder, wait_s=0.1).held():
        pass
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".lock", ".next"])
@pytest.mark.parametrize("make", ["symlink_to", "hardlink_to"])
def test_a_link_in_the_place_of_a_lock_is_refused(folder: Path, victim: Path, suffix: str, make: str) -> None:
    folder.mkdir(mode=0o700)
    getattr(folder / f"GPU-11{suffix}", make)(victim)
    message = refused(folder)
    assert f"{folder}/GPU-11{suffix}, is a link or no file" in message
    assert "GPUPERF_LOCK_DIR" in message


def test_a_link_that_was_made_between_look_and_opening_is_not_followed(
    folder: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is filelock's own part, as of the oldest release that is allowed."""
    monkeypatch.setattr(lock_module, "_refuse_unsafe", lambda *_paths: None)
    folder.mkdir(mode=0o700)
    (folder / "GPU-11.lock").symlink_to(victim)
    assert "GPU-11.lock, cannot be used" in refused(folder)


def test_a_pipe_in_the_place_of_a_lock_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / "GPU-11.lock")
    assert "is a link or no file" in refused(folder)


def test_the_name_of_the_holder_is_written_through_no_link(folder: Path, victim: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "GPU-11.holder").symlink_to(victim)
    with GpuLock("GPU-11", folder, wait_s=1).held():
        assert not (folder / "GPU-11.holder").is_symlink()
        assert (folder / "GPU-11.holder").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_the_name_of_the_holder_is_read_through_no_link_and_from_no_pipe(
    folder: Path, holder: subprocess.Popen[str], tmp_path: Path, kind: str
) -> None:
    place = folder / "GPU-11.holder"
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        (tmp_path / "number").write_text("4711")
        place.symlink_to(tmp_path / "number")
    with pytest.raises(LockTimeout, match="another process has held"), GpuLock("GPU-11", folder, wait_s=0.1).held():
        pass


def test_a_link_in_the_place_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "of another").mkdir()
    folder.symlink_to(tmp_path / "of another")
    message = refused(folder)
    assert f"{folder}, is a link: remove it" in message
    assert list((tmp_path / "of another").iterdir()) == []


def test_a_folder_in_which_all_may_replace_all_files_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    message = refused(folder)
    assert f"chmod 1777 {folder}" in message
    assert "(mode 777)" in message
    assert list(folder.iterdir()) == []
    folder.chmod(0o1777)
    with GpuLock("GPU-11", folder, wait_s=0.1).held():
        assert seen_by_another_process(folder) == "taken"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to another user")
def test_a_folder_that_another_user_made_for_all_is_shared(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o1777)
    os.chown(folder, 65534, 65534)
    with GpuLock("GPU-11", folder, wait_s=0.1).held():
        assert seen_by_another_process(folder) == "taken"
