"""Writing baselines: one update at a time, and each file is the old one or the new one, whatever interrupts it.

The folder ``.work`` in the baselines, which git ignores, has the lock and the files that are not finished.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import filelock

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.baseline_errors import BaselineError, unwritten

Say = Callable[[str], object]
"""Shows a line to whoever waits."""
WORK = ".work"
LOCK_TIMEOUT_S = 60.0
_PATIENCE_S = 2.0
"""Wait after which a line says so."""
_PART = ".part"


def silent(_line: str) -> None:
    """Shows nothing."""


@contextlib.contextmanager
def exclusive(root: Path, say: Say = silent, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Holds the lock of a baseline folder, which is made if there is none, against every other writer.

    The lock is the operating system's, which drops it when its holder dies.  What an interrupted update left is removed
    first.  Raises ``BaselineError`` if there can be no lock, or another one holds it for ``timeout_s``.
    """
    work = layout.inside(root, root / WORK)
    lock = filelock.FileLock(work / "lock")
    try:
        work.mkdir(parents=True, exist_ok=True)
        if not (work / ".gitignore").exists():
            (work / ".gitignore").write_bytes(b"*\n")
        _acquire(lock, root, say, timeout_s)
    except filelock.Timeout as error:
        raise BaselineError(
            f"{root}: another run has been writing these baselines for more than {timeout_s:g} s. Nothing was "
            "written.\nWait for it to end, or stop it, and run the update again."
        ) from error
    except OSError as error:
        raise unwritten(root, error) from error
    try:
        _clean(work)
        yield
    finally:
        lock.release()


def _acquire(lock: filelock.BaseFileLock, root: Path, say: Say, timeout_s: float) -> None:
    """Raises ``filelock.Timeout`` and ``OSError``."""
    first_s = min(_PATIENCE_S, timeout_s)
    try:
        lock.acquire(timeout=first_s)
    except filelock.Timeout:
        say(f"waiting for another update of {root}")
        lock.acquire(timeout=timeout_s - first_s)


def replace_all(root: Path, plan: Iterable[tuple[Path, bytes]]) -> list[Path]:
    """Writes files of ``root``: all of them to one side, then each to its place, in the order given.

    Files without content are deleted at the end, with the folders that this leaves empty; those that have these bytes
    already stay.  Returns those that were written.  The caller holds the lock.  Raises ``BaselineError``; no file is
    half written then.
    """
    work, parts, gone = root / WORK, list[tuple[Path, Path]](), list[Path]()
    path = root
    try:
        for path, content in plan:
            if path.exists() and not content:
                gone.append(path)
            if not content or (path.exists() and path.read_bytes() == content):
                continue
            part = work / f"{len(parts)}{_PART}"
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            parts.append((part, path))
        for part, path in parts:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.replace(path)
        _sync({path.parent for _, path in parts})
        for path in gone:
            path.unlink()
            for folder in path.relative_to(root).parents[:-1]:
                if not any((root / folder).iterdir()):
                    (root / folder).rmdir()
    except OSError as error:
        raise unwritten(path, error) from error
    finally:
        _clean(work)
    return [path for _, path in parts]


def _clean(work: Path) -> None:
    with contextlib.suppress(OSError):
        for part in work.glob(f"*{_PART}"):
            part.unlink(missing_ok=True)


def _sync(folders: Iterable[Path]) -> None:
    """Makes renames durable.  Windows can neither open nor sync a folder, and does not need to."""
    for folder in folders if os.name == "posix" else ():
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
