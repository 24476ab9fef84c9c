"""Results on disk, found by what went into them: compiled kernels above all.

An entry is a file named by its key.  The folder is its user's alone, for machine code of other users' making is not
taken, and may be shared by that user's processes.  It is kept under a bound by removing what was used longest ago.  A
folder that cannot be used costs speed and one warning.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import warnings
from pathlib import Path

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.compile.compile_errors import CompileCacheWarning

DEFAULT_MAX_BYTES = 512 << 20
_PRIVATE = 0o700


def default_folder() -> Path:
    """``$GPUPERF_CACHE_DIR``, else ``pytest-gpuperf`` in the user's cache folder.

    A relative ``$XDG_CACHE_HOME`` is ignored, as the XDG base directory specification says.
    """
    own = os.environ.get("GPUPERF_CACHE_DIR")
    if own:
        return Path(own).expanduser()  # CI sets variables without a shell
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (shared if shared.is_absolute() else Path("~/.cache").expanduser()) / "pytest-gpuperf"


def make_private(folder: Path) -> None:
    """Make a folder that only this user may use, or see that it is one that no other may write.

    Raises ``OSError``, a ``PermissionError`` where another user than root owns it or may write it.
    """
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"it belongs to another user, number {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"other users may write to it, mode {stat.S_IMODE(status.st_mode):o}; run chmod 700 {folder}"
        )


class CompileCache:
    """A folder of entries, bytes by key; safe among threads and processes."""

    def __init__(self, folder: Path | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = default_folder() if folder is None else folder
        self.max_bytes = max_bytes
        self._trimmed = False

    def get(self, key: str) -> bytes | None:
        """The entry, or None if there is none."""
        path, content = self._path(key), None
        with contextlib.suppress(OSError):
            if self._usable:
                content = path.read_bytes()
                os.utime(path)  # refused in a folder of root's, which may be used
        return content

    def put(self, key: str, payload: bytes) -> None:
        """Keep an entry; does nothing but warn, once, if the folder cannot be used."""
        if not self._usable:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(mode=_PRIVATE, exist_ok=True)
            write_whole(path, payload)
            if not self._trimmed:
                self._trimmed = True
                self._trim()
        except OSError as problem:
            self._give_up(problem)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.entry"

    @functools.cached_property
    def _usable(self) -> bool:
        try:
            make_private(self.folder)
        except OSError as problem:
            self._give_up(problem)
            return False
        return True

    def _trim(self) -> None:
        """Remove what was used longest ago: once in a run, with the first entry that it writes."""
        entries = []
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):  # another process trims too
                status = path.stat()
                entries.append((status.st_mtime_ns, status.st_size, path))
        excess = sum(size for _, size, _ in entries) - self.max_bytes
        for _, size, path in sorted(entries):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size

    def _give_up(self, problem: OSError) -> None:
        self._usable = False
        with contextlib.suppress(CompileCacheWarning):  # under -W error: a cache never fails a run
            warnings.warn(
                f"compile cache {self.folder} cannot be used ({problem.strerror or problem}): kernels are compiled "
                "anew; set GPUPERF_CACHE_DIR to a writable folder of your own",
                CompileCacheWarning,
                stacklevel=4,
            )
