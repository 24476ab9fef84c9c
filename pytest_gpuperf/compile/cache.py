"""Compiled kernels on disk, found by what went into them.

An entry is a file named by its key.  It begins with the SHA-256 of the rest, which begins with that of its key: a torn
or altered one is made again, and so is one that was put under another one's name.  The folder may be shared by the
processes of a user, who alone may write it: machine code of other users' making is not taken.  It is kept under a bound
by removing what was used longest ago.  One that cannot be used costs speed and one warning, nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
import warnings
from pathlib import Path

from pytest_gpuperf.atomic_write import PART, write_whole
from pytest_gpuperf.compile.compile_errors import CompileCacheWarning, UntrustedFolder

DEFAULT_MAX_BYTES = 512 << 20
MAX_ENTRY_BYTES = 64 << 20
"""Ten times the largest that a cubin of 3 MB with its PTX comes to; what is larger is not read."""
_DIGEST_BYTES = 32
_PRIVATE = 0o700
_SUFFIX = ".entry"
_STALE_PART_S = 3600.0


def default_folder() -> Path:
    """``$GPUPERF_CACHE_DIR``, else ``pytest-gpuperf`` in the user's cache folder.

    A relative ``$XDG_CACHE_HOME`` is ignored, as the XDG base directory specification says.
    """
    own = os.environ.get("GPUPERF_CACHE_DIR")
    if own:
        return Path(own)
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (shared if shared.is_absolute() else Path("~/.cache").expanduser()) / "pytest-gpuperf"


def make_private(folder: Path) -> None:
    """Make a folder that only this user may use, or see that it is one that no other may write.

    Raises ``UntrustedFolder`` if another one may, and ``OSError``.
    """
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    check_private(folder)


def check_private(folder: Path) -> None:
    """Raise ``UntrustedFolder`` where another user than root owns the folder or may write it; ``OSError`` for none."""
    status = folder.stat()
    if status.st_uid not in (os.geteuid(), 0):
        raise UntrustedFolder(f"it belongs to another user, number {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedFolder(
            f"other users may write it, mode {stat.S_IMODE(status.st_mode):o}; chmod 700 {folder} ends that"
        )


class CompileCache:
    """A folder of entries, bytes by key; safe among threads and processes."""

    def __init__(self, folder: Path | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = default_folder() if folder is None else folder
        self.max_bytes = max_bytes
        self.problem: str | None = None
        """Reason why entries are not kept; None while they are."""
        self._written_since_trim: int | None = None
        self._trusted: bool | None = None
        """Whether the folder is this user's alone; None until there is one."""

    def get(self, key: str) -> bytes | None:
        """The entry, or None if there is none that is whole."""
        path = self._path(key)
        try:
            if not self._is_trusted():
                return None
            content = _read(path)
        except FileNotFoundError:
            return None
        except OSError as problem:
            self._give_up(problem)
            return None
        digest, named, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:_HEAD_BYTES], content[_HEAD_BYTES:]
        if named != _named(key) or hashlib.sha256(named + payload).digest() != digest:
            self.discard(key)
            return None
        with contextlib.suppress(OSError):  # a read-only folder keeps its old order of use
            os.utime(path)
        return payload

    def __contains__(self, key: str) -> bool:
        """True if there is an entry that is whole."""
        return self.get(key) is not None

    def put(self, key: str, payload: bytes) -> None:
        """Keep an entry; does nothing but warn, once, if the folder cannot be written."""
        if self.problem is not None:
            return
        path, content = self._path(key), _named(key) + payload
        if len(content) + _DIGEST_BYTES > MAX_ENTRY_BYTES:
            return
        try:
            self.folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            if self._is_trusted():
                path.parent.mkdir(mode=_PRIVATE, exist_ok=True)
                write_whole(path, hashlib.sha256(content).digest() + content)
                self._trim(len(payload))
        except OSError as problem:
            self._give_up(problem)

    def discard(self, key: str) -> None:
        """Forget an entry."""
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def _is_trusted(self) -> bool:
        """Whether nobody else can have written the folder; looked up once.  Raises ``OSError``, as of no folder."""
        if self._trusted is None:
            try:
                check_private(self.folder)
                self._trusted = True
            except UntrustedFolder as problem:
                self._trusted = False
                self._give_up(problem)
        return self._trusted

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}{_SUFFIX}"

    def _trim(self, written: int) -> None:
        """Remove the entries used longest ago, once in a while: when a sixteenth of the bound was written since."""
        if self._written_since_trim is not None:
            self._written_since_trim += written
            if self._written_since_trim < self.max_bytes // 16:
                return
        self._written_since_trim = 0
        entries = []
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):  # another process trims too
                status = path.lstat()
                if path.suffix == _SUFFIX:
                    entries.append((status.st_mtime_ns, status.st_size, path))
                elif path.suffix == PART and time.time() - status.st_mtime > _STALE_PART_S:
                    path.unlink()
        excess = sum(size for _, size, _ in entries) - self.max_bytes
        for _, size, path in sorted(entries):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size

    def _give_up(self, problem: OSError) -> None:
        if self.problem is not None:
            return
        self.problem = (
            f"compile cache {self.folder} cannot be used ({problem.strerror or problem}): kernels are compiled anew"
        )
        with contextlib.suppress(CompileCacheWarning):  # under -W error: a cache never fails a run
            warnings.warn(
                f"{self.problem}; set GPUPERF_CACHE_DIR to a writable folder of your own",
                CompileCacheWarning,
                stacklevel=4,
            )


_HEAD_BYTES = 2 * _DIGEST_BYTES
"""Of an entry: its digest, and that of its key."""


def _named(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _read(path: Path) -> bytes:
    """The content of a regular file of bounded size; of whatever else has its name nothing.  Raises ``OSError``."""
    if path.is_symlink():
        return b""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would be waited for
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_ENTRY_BYTES:
            return b""
        return opened.read(MAX_ENTRY_BYTES)
