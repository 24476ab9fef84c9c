"""``gpuperf mv``: lets the records of a renamed test, test file or workload follow it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.baselines.move import move
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "old", metavar="OLD", help="a test file, a node id, or a node id and ' [workload]', as on record"
    )
    parser.add_argument("new", metavar="NEW", help="what it is called now")
    parser.add_argument("--force", action="store_true", help="overwrite records that have the new name already")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(parsed.old, parsed.new, given=parsed.baselines, start=Path.cwd(), force=parsed.force, write=write)


def run(old: str, new: str, *, given: Path | None, start: Path, force: bool, write: Callable[[str], object]) -> int:
    """Move the records and say which.  Returns the exit status, 0.  Raises ``GpuperfError``."""
    folder = folder_of(given, start)
    for moved in move(BaselineStore(folder), old, new, force=force, say=lambda line: write(f"{line}\n")):
        write(f"moved  {moved}\n")
    write(f"Commit {folder}.\n")
    return 0
