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


def hold_gpu(uuid: str, folder: Path | None = None, wait_s: float = WAIT_S) -> AbstractContextManager[Any]:
    """Hold the GPU from now to the end of the context that is returned; a process that holds it may do so again.

    The next process holds a second lock while it waits, so that one which gives the GPU back and wants it again at
    once comes behind it.
    Raises ``LockError`` where others keep it for longer than this one waits, or the lock file cannot be used.
    """
    path = (folder or lock_folder()) / f"{re.sub(r'[^A-Za-z0-9-]', '_', uuid) or 'unknown'}.lock"
    if os.environ.get(HELD_VARIABLE) == uuid != "":
        return contextlib.nullcontext()
    try:
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir()
            path.parent.chmod(0o1777)  # for all users, whatever the umask of the first
        # One object per path and process: a second one would wait for the first.
        lock, door = (FileLock(one, mode=0o666, is_singleton=True) for one in (path, path.with_suffix(".next")))
        with contextlib.nullcontext() if lock.is_locked else door.acquire(timeout=wait_s):
            return lock.acquire(timeout=wait_s)
    except Timeout:
        raise LockError(
            f"other processes have held this GPU for {wait_s:g} s (lock {path}): wait until they are done or end them, "
            "then run again"
        ) from None
    except OSError as problem:
        raise LockError(
            f"the lock of this GPU, {path}, cannot be used ({problem}): set {LOCK_VARIABLE} to a folder "
            "that all users who measure on this machine can write to"
        ) from problem
