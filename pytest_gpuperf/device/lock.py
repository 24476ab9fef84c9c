"""One GPU, one measuring process: a file lock per GPU UUID, for the whole machine.

It holds off every process that measures with this plugin.  Others do not know of it; ``Device.state`` finds those.
"""

from __future__ import annotations

import contextlib
import os
import re
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
            return self._holder.stat().st_mtime_ns
        except OSError:
            return None

    def _read_holder(self) -> str:
        try:
            return f"process {int(self._holder.read_text(encoding='ascii'))}"
        except (OSError, ValueError):
            return "another process"

    def _name_holder(self) -> None:
        with contextlib.suppress(OSError):  # a courtesy to those who wait; the lock does not depend on it
            self._holder.unlink(missing_ok=True)
            self._holder.write_text(f"{os.getpid()}\n", encoding="ascii")


def _make_folder(folder: Path) -> None:
    """Make the folder for all users; the first one sets its mode, whatever that user's umask."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    folder.chmod(_SHARED_FOLDER)
