"""One GPU, one measuring process: a file lock per GPU UUID, for the whole machine and all its users.

It holds off every process that measures with this plugin.  Others do not know of it; ``Device.state`` finds those.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pytest_gpuperf.device.device_errors import LockError

LOCK_VARIABLE = "GPUPERF_LOCK_DIR"
HELD_VARIABLE = "GPUPERF_HELD_GPU"
"""UUID of the GPU that a process holds for the child which it gives this to."""
WAIT_S = 1800.0
"""Longest wait for a GPU, behind all who have asked for it before."""


def lock_folder() -> Path:
    """The machine's folder of GPU locks: ``$GPUPERF_LOCK_DIR``, else one in the temporary folder."""
    own = os.environ.get(LOCK_VARIABLE)
    return Path(own) if own else Path(tempfile.gettempdir()) / "gpuperf-locks"


class GpuLock:
    """The lock of one GPU.  Re-entrant: a process that holds it may take it again.

    The next process holds a second lock while it waits, so that one which gives the GPU back and wants it again at
    once comes behind it.
    """

    def __init__(self, uuid: str, folder: Path | None = None, wait_s: float = WAIT_S) -> None:
        self.path = (folder or lock_folder()) / f"{re.sub(r'[^A-Za-z0-9-]', '_', uuid) or 'unknown'}.lock"
        self._uuid = uuid
        self._wait_s = wait_s

    def held(self) -> AbstractContextManager[Any]:
        """Hold the GPU from now to the end of the context that is returned.

        Raises ``LockError`` where others keep it for longer than this one waits, or the lock file cannot be used.
        """
        if os.environ.get(HELD_VARIABLE) == self._uuid != "":
            return contextlib.nullcontext()
        try:
            with contextlib.suppress(FileExistsError):
                self.path.parent.mkdir()
                self.path.parent.chmod(0o1777)  # for all users, whatever the umask of the first
            # One object per path and process: a second one would wait for the first.
            lock, door = (
                FileLock(path, mode=0o666, is_singleton=True) for path in (self.path, self.path.with_suffix(".next"))
            )
            with contextlib.nullcontext() if lock.is_locked else door.acquire(timeout=self._wait_s):
                return lock.acquire(timeout=self._wait_s)
        except Timeout:
            raise LockError(
                f"other processes have held this GPU for {self._wait_s:g} s (lock {self.path}): wait until they are "
                "done or end them, then run again"
            ) from None
        except OSError as problem:
            raise LockError(
                f"the lock of this GPU, {self.path}, cannot be used ({problem}): let {LOCK_VARIABLE} name a folder "
                "that is writable for all who measure on this machine"
            ) from problem
