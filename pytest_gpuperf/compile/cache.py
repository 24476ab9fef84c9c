"""Compiled kernels on disk, found by what went into them.

An entry is a file named by its key that begins with the SHA-256 of the rest: a torn or altered one is made again.
The folder may be shared by processes, and is kept under a bound by removing what was used longest ago.  One that
cannot be written costs speed and one warning, nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import warnings
from pathlib import Path

from pytest_gpuperf.atomic_write import PART, write_whole
from pytest_gpuperf.compile.compile_errors import CompileCacheWarning

DEFAULT_MAX_BYTES = 512 << 20
_DIGEST_BYTES = 32
_SUFFIX = ".entry"
_STALE_PART_S = 3600.0


def default_folder() -> Path:
    """``$GPUPERF_CACHE_DIR``, else ``pytest-gpuperf`` in the user's cache folder."""
    own = os.environ.get("GPUPERF_CACHE_DIR")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path("~/.cache").expanduser()) / "pytest-gpuperf"


class CompileCache:
    """A folder of entries, bytes by key; safe among threads and processes."""

    def __init__(self, folder: Path | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = default_folder() if folder is None else folder
        self.max_bytes = max_bytes
        self.problem: str | None = None
        """Reason why entries are not kept; None while they are."""
        self._written_since_trim: int | None = None

    def get(self, key: str) -> bytes | None:
        """The entry, or None if there is none that is whole."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            self._give_up(problem)
            return None
        payload = content[_DIGEST_BYTES:]
        if hashlib.sha256(payload).digest() != content[:_DIGEST_BYTES]:
            self.discard(key)
            return None
        with contextlib.suppress(OSError):  # a read-only folder keeps its old order of use
            os.utime(path)
        return payload

    def __contains__(self, key: str) -> bool:
        """True if there is an entry, whole or not."""
        return self._path(key).is_file()

    def put(self, key: str, payload: bytes) -> None:
        """Keep an entry; does nothing but warn, once, if the folder cannot be written."""
        if self.problem is not None:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, hashlib.sha256(payload).digest() + payload)
            self._trim(len(payload))
        except OSError as problem:
            self._give_up(problem)

    def discard(self, key: str) -> None:
        """Forget an entry."""
        with contextlib.suppress(OSError):
            self._path(key).unlink()

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
                status = path.stat()
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
                f"{self.problem}; set GPUPERF_CACHE_DIR to a writable folder", CompileCacheWarning, stacklevel=4
            )
