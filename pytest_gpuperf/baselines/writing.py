"""Writing baselines: one update at a time, and each file is the old one or the new one, whatever interrupts it.

The folder ``.work`` in the baselines, which git ignores, has the lock and the files that are not finished.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.baseline_errors import BaselineError

WORK = ".work"
LOCK_TIMEOUT_S = 60.0
_PART = ".part"


@contextlib.contextmanager
def exclusive(root: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Holds the lock of a baseline folder, which is made if there is none, against every other writer.

    The lock is the operating system's, which drops it when its holder dies.  What is not finished goes at the end.
    Raises ``BaselineError`` if there can be no lock, or another one holds it for ``timeout_s``.
    """
    work = layout.inside(root, root / WORK)
    lock = filelock.FileLock(work / "lock", timeout_s)
    try:
        work.mkdir(parents=True, exist_ok=True)
        (work / ".gitignore").write_bytes(b"*\n")
        lock.acquire()
    except filelock.Timeout as error:
        raise BaselineError(
            f"{root}: another run has been writing these baselines for more than {timeout_s:g} s. Nothing was "
            "written.\nWait for it to end, or stop it, and run the update again."
        ) from error
    except OSError as error:
        raise _unwritten(root, error) from error
    try:
        yield
    finally:
        for part in work.glob(f"*{_PART}"):  # of this update, or of one that was killed
            part.unlink(missing_ok=True)
        lock.release()


def replace_all(root: Path, plan: Sequence[tuple[Path, bytes]]) -> list[Path]:
    """Writes files of ``root``: all of them to one side, then each to its place, in the order given.

    Files without content are deleted at the end, with the folders that this leaves empty; those that have these bytes
    already stay.  Returns those that were written.  The caller holds the lock.  Raises ``BaselineError``; no file is
    half written then.
    """
    parts: list[tuple[Path, Path]] = []
    path = root
    try:
        for path, content in plan:
            if content and not (path.exists() and path.read_bytes() == content):
                part = root / WORK / f"{len(parts)}{_PART}"
                with part.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                parts.append((part, path))
        for part, path in parts:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.replace(path)
        for path in [path for path, content in plan if not content and path.exists()]:
            path.unlink()
            for folder in path.relative_to(root).parents[:-1]:
                if not any((root / folder).iterdir()):
                    (root / folder).rmdir()
    except OSError as error:
        raise _unwritten(path, error) from error
    return [path for _, path in parts]


def _unwritten(path: Path, cause: OSError) -> BaselineError:
    """The error of a file system that refuses: read-only, full, a file where a folder should be."""
    return BaselineError(
        f"{path}: the baselines could not be written: {cause.strerror or cause}. No file is half written.\n"
        "Make the folder writable, free space on its disk, or choose another one with --gpuperf-baselines."
    )
