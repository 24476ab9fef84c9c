"""Writing so that an interruption leaves the old file or the new one: lock, temporary file, fsync, rename, fsync."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_gpuperf.atomic_write import write_durably
from pytest_gpuperf.baselines import update_lock, working_folder
from pytest_gpuperf.baselines.baseline_errors import BaselineWriteError
from pytest_gpuperf.baselines.update_lock import Say, silent

LOCK_TIMEOUT_S = 60.0


@contextlib.contextmanager
def exclusive(root: Path, say: Say = silent, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Holds the lock of a baseline folder against every other writer; the folder is made if there is none.

    What interrupted writers left is removed first: under the lock, no other writer has any.  ``say`` is told whom it
    waits for.  Raises ``BaselineLockedError`` after ``timeout_s``, ``BaselineLockError`` if there can be no lock,
    ``BaselineWriteError`` if the folder refuses files and ``UnsafePathError`` for a link in the lock's place.
    """
    try:
        _make_folder(root)
        folder = working_folder.make(root)
    except OSError as error:
        raise BaselineWriteError(root, error) from error
    with update_lock.held(folder, say, timeout_s):
        working_folder.clean(root)
        yield


def write_all(root: Path, contents: Iterable[tuple[Path, bytes]]) -> list[Path]:
    """Writes files of ``root`` in order, each whole or not at all, and skips those that have these bytes already.

    Returns those that were written.  The caller holds the lock.  Raises ``BaselineWriteError`` at the first failure;
    its ``written`` names the files that were replaced before.
    """
    written: list[Path] = []
    for path, content in contents:
        try:
            if path.exists() and path.read_bytes() == content:
                continue
            _make_folder(path.parent)
            write_durably(path, content, working_folder.LEFTOVER, root / working_folder.NAME)
            _sync_folder(path.parent)
        except OSError as error:
            raise BaselineWriteError(path, error, tuple(written)) from error
        written.append(path)
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
