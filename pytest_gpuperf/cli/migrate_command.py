"""``gpuperf migrate``: writes a folder of baselines in the current schema."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.migrations import SCHEMA_VERSION
from pytest_gpuperf.baselines.rewrite import rewrite, size_of
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import NoFolderError, folder_of
from pytest_gpuperf.formatting import numbered

PROBLEMS = (BaselineError, NoFolderError)
"""What can keep the command from its work."""


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(given=parsed.baselines, start=Path.cwd(), write=write)


def run(*, given: Path | None, start: Path, write: Callable[[str], object]) -> int:
    """Rewrite what would be written otherwise today.  Returns the exit status, 0.  Raises one of ``PROBLEMS``."""
    folder = folder_of(given, start)
    before = size_of(folder)
    written = rewrite(BaselineStore(folder))
    if not written:
        write(f"{folder} has schema {SCHEMA_VERSION} already; nothing was written\n")
        return 0
    after = size_of(folder)
    write(
        f"{numbered(len(written), 'file')} rewritten in schema {SCHEMA_VERSION}: {before / 1e6:.2f} MB before, "
        f"{after / 1e6:.2f} MB now; no evidence changed\nCommit {folder}.\n"
    )
    return 0
