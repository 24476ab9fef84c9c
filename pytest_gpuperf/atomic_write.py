"""Writing a file that is never seen half written: beside its place or in another folder first, then moved into it.

Baselines are written with more care than this: ``baselines.writing``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PART = ".part"
"""Ending of a file that is being written, or that was left by a process which was killed meanwhile."""


def scratch_folder(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """A folder that only this user can enter, in the temporary folder."""
    return tempfile.TemporaryDirectory(prefix=prefix)


def write_whole(path: Path, content: bytes, ending: str = PART, folder: Path | None = None) -> None:
    """Put ``content`` in the place of ``path``, old or new: whoever reads it sees the old content or the new one.

    While it is written, the file's name has this ``ending``; it lies in ``folder``, on the same file system, or
    beside ``path``.  Raises ``OSError``; then the old file is as it was, and nothing is left there.
    """
    with _moved_in(path, ending, folder) as file:
        file.write(content)


def write_durably(path: Path, content: bytes, ending: str = PART, folder: Path | None = None) -> None:
    """``write_whole`` for what must outlive a power cut: the content is on the disk before the old one goes."""
    with _moved_in(path, ending, folder) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _moved_in(path: Path, ending: str, folder: Path | None) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` once it is written."""
    part = (folder or path.parent) / f".{path.name[:100]}.{secrets.token_hex(8)}{ending}"
    try:
        with part.open("xb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
