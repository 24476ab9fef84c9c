"""One GPU, one measuring process: a file lock per GPU UUID, machine-wide.

Holds off every process of this machine that uses the plugin, whoever started it.  Other users of the GPU do
not know of it; ``state`` finds those.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from pytest_gpuperf.device.errors import LockTimeout

WAIT_S = 600.0


def lock_folder() -> Path:
    """The machine's folder of GPU locks, writable for all its users."""
    folder = Path(tempfile.gettempdir()) / "gpuperf-locks"
    folder.mkdir(exist_ok=True)
    if folder.stat().st_uid == os.getuid():
        folder.chmod(stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO | stat.S_ISVTX)
    return folder


class GpuLock:
    """Re-entrant within a process."""

    def __init__(self, uuid: str, folder: Path | None = None, wait_s: float = WAIT_S) -> None:
        name = re.sub(r"[^A-Za-z0-9-]", "_", uuid) or "unknown"
        self._path = (folder or lock_folder()) / f"{name}.lock"
        self._holder = self._path.with_suffix(".pid")
        self._wait_s = wait_s
        self._lock = FileLock(self._path, mode=0o666)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Hold the GPU.  Raises ``LockTimeout`` that names the holder."""
        try:
            self._lock.acquire(timeout=self._wait_s)
        except Timeout:
            raise LockTimeout(
                f"another process (pid {self._read_holder()}) has measured on this GPU for {self._wait_s:g} s: wait "
                f"for it or end it; if none runs, delete {self._path}"
            ) from None
        try:
            self._write_holder()
            yield
        finally:
            self._lock.release()

    def _read_holder(self) -> str:
        try:
            return self._holder.read_text(encoding="ascii").strip() or "unknown"
        except OSError:
            return "unknown"

    def _write_holder(self) -> None:
        with contextlib.suppress(OSError):  # the name is a courtesy; the lock does not depend on it
            self._holder.write_text(str(os.getpid()), encoding="ascii")
