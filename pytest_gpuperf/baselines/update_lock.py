"""The lock of a baseline folder: one update at a time, and those who wait are told which one.

It is the operating system's, which drops it when its holder dies.  Some network file systems have no such locks: there
a file that exists is the lock.  It names its holder, and one whose process is gone from this machine is removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import shlex
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.baselines import working_folder
from pytest_gpuperf.baselines.baseline_errors import (
    BaselineError,
    BaselineLockedError,
    BaselineLockError,
    quoted,
)
from pytest_gpuperf.baselines.parsing import read_bounded
from pytest_gpuperf.formatting import utc_now

try:
    import fcntl
except ImportError:  # Windows, whose file systems all have locks
    fcntl = None  # type: ignore[assignment]

Say = Callable[[str], object]
"""Shows a line to whoever waits."""
PATIENCE_S = 2.0
"""Wait after which the holder is named."""
LOCK = "lock"
MARKER = "held"
"""The lock where there are no others: held as long as this file exists."""
OWNER = "owner"
MAX_OWNER_BYTES = 1 << 16
_SHOWN_COMMAND = 200
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP})
"""What a file system says that has no locks."""


class Owner(msgspec.Struct, frozen=True):
    """Who holds the lock.  Written by the holder for those who wait; the lock does not depend on it."""

    pid: int
    host: str
    since: str
    """UTC, ISO 8601, seconds."""
    command: str

    @classmethod
    def here(cls) -> Owner:
        """This process, from now on."""
        return cls(os.getpid(), platform.node(), utc_now(), shlex.join(sys.argv))

    def __str__(self) -> str:
        return (
            f"process {self.pid} on {quoted(self.host)} since {quoted(self.since)}: "
            f"{quoted(self.command, _SHOWN_COMMAND)}"
        )


def silent(_line: str) -> None:
    """Shows nothing."""


@contextlib.contextmanager
def held(folder: Path, say: Say = silent, timeout_s: float = 0.0) -> Iterator[None]:
    """Hold the lock that lies in the working folder ``folder``.

    ``say`` is told who else holds it, after ``PATIENCE_S``.  Raises ``BaselineLockedError`` after ``timeout_s``,
    ``BaselineLockError`` if there can be no lock, and ``UnsafePathError`` for a link in its place.
    """
    for name in (LOCK, MARKER):
        working_folder.refuse_link(folder / name)
    lock = _acquired(folder, say, timeout_s)
    owner = folder / OWNER
    try:
        with contextlib.suppress(OSError):  # it could be held without
            write_whole(owner, msgspec.json.encode(Owner.here()), working_folder.LEFTOVER)
        yield
    finally:
        with contextlib.suppress(OSError):
            owner.unlink(missing_ok=True)
        lock.release()


def _acquired(folder: Path, say: Say, timeout_s: float) -> filelock.BaseFileLock:
    lock = _new_lock(folder)
    try:
        _wait_for(lock, folder, say, timeout_s)
    except filelock.Timeout as error:
        raise _locked(folder, lock, timeout_s) from error
    except OSError as error:
        raise BaselineLockError(
            f"{lock.lock_file}: the lock for {folder.parent} cannot be taken: {error.strerror or error}. "
            "Nothing was written. Make the folder and this file writable, or choose another folder with "
            "--gpuperf-baselines."
        ) from error
    return lock


def _new_lock(folder: Path) -> filelock.BaseFileLock:
    """One that whoever may write the folder may take, and its owner anyway: filelock takes no other mode."""
    mode = stat.S_IMODE(folder.stat().st_mode) & 0o666 | 0o600
    if _has_locks(folder / working_folder.IGNORE_FILE):
        return filelock.FileLock(folder / LOCK, mode=mode)
    return filelock.SoftFileLock(folder / MARKER, mode=mode)


def _has_locks(file: Path) -> bool:
    """Whether the system has locks where this file lies; the file itself is no lock."""
    if fcntl is None:
        return True
    with file.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _NO_LOCKS
    return True


def _wait_for(lock: filelock.BaseFileLock, folder: Path, say: Say, timeout_s: float) -> None:
    """Raises ``filelock.Timeout`` and ``OSError``."""
    first_s = min(PATIENCE_S, timeout_s)
    try:
        lock.acquire(timeout=first_s)
    except filelock.Timeout:
        if first_s == timeout_s:
            raise
        say(f"waiting for another update of {folder.parent}, {_holder(folder)}")
        lock.acquire(timeout=timeout_s - first_s)


def _holder(folder: Path) -> str:
    """Who holds the lock, as far as that is on record; anybody may have written it."""
    path = folder / OWNER
    try:
        content = None if path.is_symlink() else read_bounded(path, MAX_OWNER_BYTES)
        return str(msgspec.json.decode(content or b"", type=Owner))
    except (BaselineError, msgspec.DecodeError, UnicodeDecodeError):
        return "of a process that left no name"


def _locked(folder: Path, lock: filelock.BaseFileLock, timeout_s: float) -> BaselineLockedError:
    remedy = "Wait for it to end, or stop it, and run the update again."
    if isinstance(lock, filelock.SoftFileLock):
        remedy += f" If it is gone, remove {lock.lock_file} first: this file system cannot tell."
    return BaselineLockedError(
        f"{folder.parent}: another run has been writing these baselines for more than {timeout_s:g} s "
        f"({_holder(folder)}). Nothing was written.\n{remedy}"
    )
