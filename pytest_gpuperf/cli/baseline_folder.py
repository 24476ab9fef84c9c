"""The folder of the baselines that a command reads or changes."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.task import EVIDENCE
from pytest_gpuperf.options import USUAL_FOLDER
from pytest_gpuperf.process import last_run


class NoFolderError(GpuperfError):
    """There is no folder of baselines; the message says where it was looked for and what to do."""


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Declare ``--baselines``."""
    words = f"baselines folder (default: the nearest one called {USUAL_FOLDER}, else that of the last run)"
    parser.add_argument("--baselines", metavar="DIR", type=Path, help=words)


def folder_of(given: Path | None, start: Path) -> Path:
    """The one given, else the nearest of the usual name, else that of the last run.  Raises ``NoFolderError``."""
    folder = given or _nearest(start) or _of_last_run(start)
    if folder is None:
        raise NoFolderError(f"there is no folder {USUAL_FOLDER} in {start} or above: name it with --baselines DIR")
    if not folder.is_dir():
        raise NoFolderError(f"there is no folder {folder}: name that of the baselines with --baselines DIR")
    return folder


def _nearest(start: Path) -> Path | None:
    return next((path for folder in (start, *start.parents) if (path := folder / USUAL_FOLDER).is_dir()), None)


def _of_last_run(start: Path) -> Path | None:
    """None too after a run against a revision, whose evidence is no baseline."""
    path = last_run.find(start)
    if path is None:
        return None
    try:
        folder = last_run.baselines_of(path, last_run.read(path))
    except last_run.LastRunError:
        return None
    return None if folder.suffix == EVIDENCE else folder


def seen_from_root(name: str, root: Path) -> str:
    """A node id as pytest names it from ``root``, if it begins with a file's path seen from the current folder."""
    module, mark, test = name.partition("::")
    file, root = Path(module).resolve(), root.resolve()
    return f"{file.relative_to(root).as_posix()}{mark}{test}" if file.is_file() and root in file.parents else name
