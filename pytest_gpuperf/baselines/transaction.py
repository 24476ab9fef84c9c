"""Writing so that an interruption leaves the old file or the new one: lock, temporary file, fsync, rename, fsync."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import filelock

from pytest_gpuperf.atomic_write import write_durably
from pytest_gpuperf.baselines.baseline_errors import BaselineLockedError, BaselineLockError, BaselineWriteError

LOCK_TIMEOUT_S = 60.0
_LEFTOVER = ".gpuperf-tmp"


@dataclasses.dataclass(frozen=True)
class WrittenFile:
    """One file whose bytes changed."""

    path: Path
    created: bool
    """False if it replaced an older one."""


@contextlib.contextmanager
def exclusive(root: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Holds the lock of a baseline folder against every other writer of this user on this machine.

    The lock file lies in the system's temporary folder; the system drops the lock when its holder dies.  Raises
    ``BaselineLockedError`` after ``timeout_s`` and ``BaselineLockError`` if there can be no lock at all.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"gpuperf-baselines-{user}-{name}.lock"
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=timeout_s)
    except filelock.Timeout as error:
        raise BaselineLockedError(
            f"{root}: another run has been writing these baselines for more than {timeout_s:g} s (it holds {path}). "
            "Nothing was written. Wait for it to end, or stop it, and run the update again."
        ) from error
    except OSError as error:
        raise BaselineLockError(
            f"{path}: the lock for {root} cannot be taken: {error.strerror or error}. Nothing was written. "
            "Point TMPDIR at a folder that you may write to."
        ) from error
    try:
        yield
    finally:
        lock.release()


def write_all(contents: Iterable[tuple[Path, bytes]]) -> list[WrittenFile]:
    """Writes the files in order, each whole or not at all, and skips those that have these bytes already.

    Raises ``BaselineWriteError`` at the first failure; its ``written`` names the files that were replaced before.
    """
    written: list[WrittenFile] = []
    for path, content in contents:
        try:
            existed = path.exists()
            if existed and path.read_bytes() == content:
                continue
            _make_folder(path.parent)
            write_durably(path, content, _LEFTOVER)
            _sync_folder(path.parent)
        except OSError as error:
            raise BaselineWriteError(path, error, tuple(file.path for file in written)) from error
        written.append(WrittenFile(path, created=not existed))
    return written


def remove(path: Path) -> None:
    """Deletes a file durably.  Raises ``BaselineWriteError``."""
    try:
        path.unlink()
        _sync_folder(path.parent)
    except OSError as error:
        raise BaselineWriteError(path, error) from error


def remove_folder(folder: Path) -> None:
    """Deletes an empty folder durably.  Raises ``BaselineWriteError``."""
    try:
        folder.rmdir()
        _sync_folder(folder.parent)
    except OSError as error:
        raise BaselineWriteError(folder, error) from error


def clean_leftovers(root: Path) -> None:
    """Removes the temporary files of interrupted writes.  Only under the lock: then no other writer has any."""
    for path in root.rglob(f".*{_LEFTOVER}"):
        remove(path)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Makes a rename or removal durable.  Windows can neither open nor sync a folder, and does not need to."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
