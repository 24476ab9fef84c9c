"""Writes a file that is never seen half written: under another name first, then renamed.

Baselines are written with more care than this: ``baselines.writing``.
"""

from __future__ import annotations

import secrets
from pathlib import Path

PART = ".part"
"""Ending of a file that is being written, or that was left by a process which was killed meanwhile."""


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` in the place of ``path``, old or new: whoever reads it sees the old content or the new one.

    While it is written, it is next to ``path`` under a name that ends in ``PART``.  Raises ``OSError``; then the old
    file is as it was, and nothing is left there.
    """
    part = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}{PART}"
    try:
        with part.open("xb") as file:  # never through a link
            file.write(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
