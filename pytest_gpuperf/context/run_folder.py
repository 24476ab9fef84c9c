"""One folder for all that a run puts down for a while: it goes with the run, or with the next one if that was killed.

Children and workers of pytest-xdist on this machine find it in their environment, and use the same.  Its lock is held
for as long as the run lives, so the next run knows which folders have lost theirs.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from pytest_gpuperf.atomic_write import SCRATCH_VARIABLE
from pytest_gpuperf.context.child_process import undisturbed

RUNS = "gpuperf-runs-{user}"
"""Folder of the folders of one user's runs, in the machine's temporary folder."""
LOCK = "lock"
YOUNG_S = 10.0
"""A folder of this age or less may be about to be locked."""
_TRIES, _PAUSE_S = 20, 0.05


def open_run_folder(config: pytest.Config) -> None:
    """Let all that asks for a scratch folder have it in this run's; nothing if a parent has opened one, or none can be.

    Sweeps what runs left that were killed.
    """
    if os.environ.get(SCRATCH_VARIABLE):
        return
    with undisturbed():
        try:
            place = _place()
            _sweep(place)
            folder = Path(tempfile.mkdtemp(prefix="run-", dir=place))
        except (OSError, Timeout):
            return  # scratch folders are made in the temporary folder then, as any program's are
        lock = FileLock(folder / LOCK)
        _close_at_end(config, folder, lock)
    try:
        lock.acquire(timeout=0)
    except (OSError, Timeout):
        return
    os.environ[SCRATCH_VARIABLE] = str(folder)


def _close_at_end(config: pytest.Config, folder: Path, lock: FileLock) -> None:
    """With the run, or with its process: an interrupt between two cleanups of pytest leaves out those that follow."""
    process = os.getpid()

    def close() -> None:
        if os.getpid() == process:  # and not a fork, which has been handed this on
            _close(folder, lock)
            atexit.unregister(close)

    atexit.register(close)
    config.add_cleanup(close)


def _close(folder: Path, lock: FileLock) -> None:
    """Remove the folder, with what a child that is about to end puts into it meanwhile."""
    with undisturbed():
        os.environ.pop(SCRATCH_VARIABLE, None)
        lock.release()
        for _ in range(_TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                return
            time.sleep(_PAUSE_S)


def _place() -> Path:
    """The folder of this user's runs.  Raises ``OSError``, also where another user could put links into it."""
    place = Path(tempfile.gettempdir()) / RUNS.format(user=os.getuid())
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or place.is_symlink():
        raise PermissionError(f"{place} is not this user's alone")
    return place


def _sweep(place: Path) -> None:
    """Remove the folders whose run has ended without removing them."""
    for folder in place.iterdir():
        with contextlib.suppress(OSError, Timeout):
            if time.time() - folder.stat().st_mtime > YOUNG_S:
                with FileLock(folder / LOCK, timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)
