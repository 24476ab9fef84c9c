"""The lock of a GPU: one process at a time, for all users."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_gpuperf.device.device_errors import LockError
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
from pytest_gpuperf.device.device_errors import LockError
from pytest_gpuperf.device.lock import GpuLock
try:
    with GpuLock("GPU-11", Path(sys.argv[1]), wait_s=0.1).held():
        print("free")
except LockError:
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


def test_another_process_waits_and_is_told_what_to_do(folder: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(LockError) as caught, GpuLock("GPU-11", folder, wait_s=0.1).held():
        pass
    assert "other processes have held this GPU for 0.1 s" in str(caught.value)
    assert "GPU-11.lock" in str(caught.value)
    assert "end them" in str(caught.value)


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


def test_a_gpu_that_the_parent_holds_is_not_waited_for(
    folder: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPERF_HELD_GPU", "GPU-11")
    with GpuLock("GPU-11", folder, wait_s=0.1).held():
        pass
    with GpuLock("GPU-12", folder, wait_s=0.1).held():
        assert (folder / "GPU-12.lock").exists()


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
    with pytest.raises(LockError, match=r"locks/GPU-11\.lock, cannot be used .*GPUPERF_LOCK_DIR"), lock.held():
        pass


def test_no_uuid_escapes_the_folder(folder: Path) -> None:
    assert GpuLock("../../etc/passwd", folder).path.parent == folder
    assert GpuLock("", folder).path.name == "unknown.lock"
    assert GpuLock("GPU-11").path.parent == lock_folder()
