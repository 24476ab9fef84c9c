"""Writing a file that is never seen half written: beside its place first, then moved into it.

Baselines are written with more care than this: ``baselines.transaction``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PART = ".part"
"""Ending of a file that is being written, or that was left by a process which was killed meanwhile."""


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` in the place of ``path``, old or new: whoever reads it sees the old content or the new one.

    Raises ``OSError``; then the old file is as it was, and nothing is left beside it.
    """
    with _moved_in(path) as file:
        file.write(content)


def write_durably(path: Path, content: bytes, ending: str = PART) -> None:
    """``write_whole`` for what must outlive a power cut: the content is on the disk before the old one goes.

    ``ending`` is that of the file's name while it is written.
    """
    with _moved_in(path, ending) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _moved_in(path: Path, ending: str = PART) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` once it is written."""
    part = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}{ending}")
    try:
        with part.open("xb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
