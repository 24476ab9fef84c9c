"""The folder in the baselines where an update keeps its lock and what it has not finished; git ignores it.

It stays there from the first update on.  A reader of baselines neither needs nor makes it.
"""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.baseline_errors import BaselineWriteError, UnsafePathError

NAME = ".work"
LEFTOVER = ".gpuperf-tmp"
"""Ending of a file that is being written, or that an interrupted update left."""
IGNORE_FILE = ".gitignore"
_IGNORE_ALL = b"*\n"
"""Of this folder's content, the file that says so included."""
_UNSEEN = ".git"
"""Git never takes what lies in a folder of this name, so the file above is written there and moved out whole."""


def make(root: Path) -> Path:
    """The working folder of ``root``, which exists; made if need be.  Git sees no file of it at any moment.

    Who may write ``root`` may write it.  Raises ``UnsafePathError`` if it is a link, and ``OSError``.
    """
    folder = root / NAME
    layout.refuse_linked(root)
    refuse_link(folder)
    layout.inside(root, folder)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(stat.S_IMODE(root.stat().st_mode))
    if not _ignores_itself(folder):
        _ignore_itself(folder)
    return folder


def refuse_link(path: Path) -> None:
    """Raise ``UnsafePathError`` for a symbolic link, which a baseline folder that is not trusted may hold."""
    if path.is_symlink():
        raise UnsafePathError(f"{path} is a link, and updates make none: nothing was written. Remove the link.")


def clean(root: Path) -> None:
    """Removes what interrupted updates left in ``root``.  Only under the lock.  Raises ``BaselineWriteError``."""
    for path in root.rglob(f".*{LEFTOVER}"):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise BaselineWriteError(path, error) from error
    _remove_if_empty(root / NAME / _UNSEEN)


def _ignores_itself(folder: Path) -> bool:
    """Git follows no link here."""
    file = folder / IGNORE_FILE
    try:
        return not file.is_symlink() and file.read_bytes() == _IGNORE_ALL
    except FileNotFoundError:
        return False


def _ignore_itself(folder: Path) -> None:
    """Others may do the same at the same time, or remove what they take for a leftover once it is done."""
    unseen = folder / _UNSEEN
    try:
        unseen.mkdir(exist_ok=True)
        write_whole(folder / IGNORE_FILE, _IGNORE_ALL, LEFTOVER, unseen)
    except FileNotFoundError:
        if not _ignores_itself(folder):
            raise
    _remove_if_empty(unseen)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
