"""One GPU, one measuring process: a file lock per GPU UUID, for the whole machine.

It holds off every process that measures with this plugin.  Others do not know of it; ``Device.state`` finds those.

Users share a GPU, so they share the folder of its locks, and a folder of one user's would not do.  It is one in which
nobody replaces the files of others, links are never followed there, and no file that may be another one is opened.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from pytest_gpuperf.device.device_errors import LockTimeout, LockUnavailable

LOCK_VARIABLE = "GPUPERF_LOCK_DIR"
HELD_VARIABLE = "GPUPERF_HELD_GPU"
"""UUID of the GPU that a process holds for the child which it gives this to."""
WAIT_S = 600.0
"""Longest wait for a process that holds the GPU and gives no sign of going on."""
_SHARED_FOLDER = 0o1777
"""Mode of a folder for all users, each of whom may remove only their own files."""
_SHARED_FILE = 0o666
_PID_BYTES = 32


def lock_folder() -> Path:
    """The machine's folder of GPU locks: ``$GPUPERF_LOCK_DIR``, else one in the temporary folder."""
    own = os.environ.get(LOCK_VARIABLE)
    return Path(own) if own else Path(tempfile.gettempdir()) / "gpuperf-locks"


class GpuLock:
    """The lock of one GPU.  Re-entrant: a process that holds it may take it again.

    Waiting processes take turns: the next one holds a second lock meanwhile, so that a process which gives the
    GPU back and wants it again at once comes behind it.
    """

    def __init__(self, uuid: str, folder: Path | None = None, wait_s: float = WAIT_S) -> None:
        self.path = (folder or lock_folder()) / f"{re.sub(r'[^A-Za-z0-9-]', '_', uuid) or 'unknown'}.lock"
        self._holder = self.path.with_suffix(".holder")
        self._door = self.path.with_suffix(".next")
        self._held_for_us = os.environ.get(HELD_VARIABLE) == uuid != ""
        self._wait_s = wait_s
        self._depth = 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the GPU; to take it again tells those who wait that its holder goes on.

        Raises ``LockTimeout``, which names the process that holds it, and ``LockUnavailable`` if the lock
        file cannot be used.
        """
        if self._held_for_us:
            yield
            return
        lock = self._acquired()
        self._depth += 1
        self._name_holder()
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                with contextlib.suppress(OSError):
                    self._holder.unlink(missing_ok=True)
            lock.release()

    def _acquired(self) -> FileLock:
        try:
            _make_folder(self.path.parent)
            _refuse_unsafe(self.path.parent, self.path, self._door)
            # One object per path and process: a second one would wait for the first.
            lock = FileLock(self.path, mode=_SHARED_FILE, is_singleton=True)
            if lock.is_locked:  # by this process
                lock.acquire()
            else:
                with self._patiently(FileLock(self._door, mode=_SHARED_FILE, is_singleton=True)):
                    self._patiently(lock)
        except Timeout:
            raise LockTimeout(
                f"{self._read_holder()} has held this GPU for {self._wait_s:g} s (lock {self.path}): wait until it is "
                f"done or end it, then run again"
            ) from None
        except OSError as problem:
            raise LockUnavailable(
                f"the lock of this GPU, {self.path}, cannot be used ({problem}): make its folder writable for all who "
                f"measure on this machine, or set TMPDIR to one that is"
            ) from problem
        return lock

    def _patiently(self, lock: FileLock) -> AbstractContextManager[object]:
        """Wait for as long as the GPU changes hands or its holder goes on.  Raises ``Timeout`` if neither is so."""
        while True:
            hold = self._hold()
            try:
                return lock.acquire(timeout=self._wait_s)
            except Timeout:
                if self._hold() == hold:
                    raise

    def _hold(self) -> int | None:
        """Changes with the holder, and while it goes on; None where no process is named."""
        try:
            return self._holder.lstat().st_mtime_ns
        except OSError:
            return None

    def _read_holder(self) -> str:
        try:
            file = os.open(self._holder, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # anybody may have made it
            try:
                return f"process {int(os.read(file, _PID_BYTES))}"
            finally:
                os.close(file)
        except (OSError, ValueError):  # a link, or no number
            return "another process"

    def _name_holder(self) -> None:
        with contextlib.suppress(OSError):  # a courtesy to those who wait; the lock does not depend on it
            self._holder.unlink(missing_ok=True)
            with self._holder.open("x", encoding="ascii") as file:  # which follows no link
                file.write(f"{os.getpid()}\n")


def _make_folder(folder: Path) -> None:
    """Make the folder for all users; the first one sets its mode, whatever that user's umask."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    made = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(made, _SHARED_FOLDER)
    finally:
        os.close(made)


def _refuse_unsafe(folder: Path, *files: Path) -> None:
    """Raise ``LockUnavailable`` where another user could make these files links, or has made them other files."""
    mode = folder.lstat().st_mode
    remedy = f"let {LOCK_VARIABLE} name a folder that all who measure on this machine use"
    if stat.S_ISLNK(mode):
        raise LockUnavailable(f"the folder of GPU locks, {folder}, is a link: remove it, or {remedy}")
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise LockUnavailable(
            f"the folder of GPU locks, {folder}, lets every user replace the files of others (mode "
            f"{stat.S_IMODE(mode):o}): its owner can end that by chmod 1777 {folder}; or {remedy}"
        )
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            found = file.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise LockUnavailable(
                    f"the lock of this GPU, {file}, is a link or no file, so it is not opened: remove it, or {remedy}"
                )
