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
from pytest_gpuperf.device.lock import hold_gpu, lock_folder

HOLD = """
import sys
from pathlib import Path
from pytest_gpuperf.device.lock import hold_gpu
with hold_gpu("GPU-11", Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
AGAIN_AND_AGAIN = """
import sys, time
from pathlib import Path
from pytest_gpuperf.device.lock import hold_gpu
for _ in range(6):
    with hold_gpu("GPU-11", Path(sys.argv[1]), wait_s=1.0):
        print("held", flush=True)
        time.sleep(0.4)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "locks"


@pytest.fixture
def holder(folder: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds GPU-11."""
    command = [sys.executable, "-c", getattr(request, "param", HOLD), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_another_process_waits(folder: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"other processes have held this GPU for 0.1 s \(lock .*GPU-11\.lock\): wait until they are done or end them"
    with pytest.raises(LockError, match=said):
        hold_gpu("GPU-11", folder, wait_s=0.1)
    monkeypatch.setenv("GPUPERF_HELD_GPU", "GPU-11")  # it is the parent who holds it
    with hold_gpu("GPU-11", folder, wait_s=0.1), hold_gpu("GPU-12", folder, wait_s=0.1):
        assert (folder / "GPU-12.lock").exists()
    holder.kill()
    holder.wait()
    monkeypatch.delenv("GPUPERF_HELD_GPU")
    with hold_gpu("GPU-11", folder, wait_s=5):
        pass


@pytest.mark.parametrize("holder", [AGAIN_AND_AGAIN], indirect=True)
def test_who_takes_the_gpu_again_at_once_comes_behind_who_waits(folder: Path, holder: subprocess.Popen[str]) -> None:
    for _ in range(2):  # each within a hold of the other
        with hold_gpu("GPU-11", folder, wait_s=1.0):
            assert holder.poll() is None


def test_a_process_may_take_its_gpu_again(folder: Path) -> None:
    with hold_gpu("GPU-11", folder, wait_s=0.1), hold_gpu("GPU-11", folder, wait_s=0.1):
        pass


def test_the_folder_and_the_lock_are_for_all_users(folder: Path) -> None:
    umask = os.umask(0o077)
    try:
        with hold_gpu("GPU-11", folder):  # some versions of filelock remove the file at its end
            assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
            assert stat.S_IMODE((folder / "GPU-11.lock").stat().st_mode) == 0o666
    finally:
        os.umask(umask)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file")
    with pytest.raises(LockError, match=r"locks/GPU-11\.lock, cannot be used .*GPUPERF_LOCK_DIR"):
        hold_gpu("GPU-11", tmp_path / "locks")


@pytest.mark.parametrize(("uuid", "name"), [("../../etc/passwd", "______etc_passwd.lock"), ("", "unknown.lock")])
def test_no_uuid_escapes_the_folder(uuid: str, name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("GPUPERF_LOCK_DIR", str(folder))
    with hold_gpu(uuid):
        assert (lock_folder() / name).exists()
