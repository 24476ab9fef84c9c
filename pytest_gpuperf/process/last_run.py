"""The evidence of the last run, kept for ``gpuperf explain``.

One report in JSON, ``.gpuperf/last-run.json`` below pytest's root, that the next run replaces.  It is written by the
process that reports, whole or not at all, and only if a run gathered anything.  It is no baseline: nothing is judged by
it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.process.repository import checkout_around

FOLDER = ".gpuperf"
FILE = "last-run.json"


def keep(root: Path, content: bytes) -> None:
    """Put a report in JSON in the place of the one before.  Raises ``GpuperfError``."""
    target = root / FOLDER / FILE
    if target.parent.is_symlink():
        raise GpuperfError(f"{target.parent} is a link, and nothing is written through it: remove it")
    try:
        target.parent.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError), (target.parent / ".gitignore").open("x") as ignore:
            ignore.write("*\n")
        write_whole(target, content)
    except OSError as problem:
        message = f"{target} cannot be written ({problem}): gpuperf explain will not know of this run"
        raise GpuperfError(message) from problem


def find(start: Path) -> Path | None:
    """The last run of ``start`` or of the nearest folder above that has one, up to the top of its repository."""
    top = checkout_around(start)
    folders = (one for one in (start, *start.parents) if top is None or one.is_relative_to(top))
    return next((path for folder in folders if (path := folder / FOLDER / FILE).is_file()), None)
