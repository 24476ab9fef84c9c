"""The folder of the baselines that a command reads or changes."""

from __future__ import annotations

import itertools
from pathlib import Path

from pytest_gpuperf.cli.pytest_settings import has_pytest_settings
from pytest_gpuperf.compile.cache import default_folder
from pytest_gpuperf.context import last_run
from pytest_gpuperf.model.revision import REVISION_FILE, REVISIONS_FOLDER
from pytest_gpuperf.options import USUAL_FOLDER


class NoFolderError(Exception):
    """There is no folder of baselines; the message says where it was looked for and what to do."""


def folder_of(given: Path | None, start: Path) -> Path:
    """The folder of the baselines: the one given, else that of the last run, else the nearest one of the usual name."""
    try:
        folder = given or _of_last_run(start) or _nearest(start)
        is_there = folder is not None and folder.is_dir()
    except OSError as problem:  # a name that is too long, a folder that may not be entered
        raise NoFolderError(
            f"{problem.filename} cannot be reached ({problem.strerror}): repair that, or name another folder with "
            "--baselines DIR"
        ) from problem
    if folder is None:
        raise NoFolderError(f"there is no folder {USUAL_FOLDER} in {start} or above: name it with --baselines DIR")
    if not is_there:
        raise NoFolderError(f"there is no folder {folder}: name that of the baselines with --baselines DIR")
    return folder


def _of_last_run(start: Path) -> Path | None:
    """None too after a run against a revision, whose evidence is kept for ``gpuperf explain`` and is no baseline."""
    path = last_run.find(start)
    if path is None or _is_another_project(start, last_run.root_of(path)):
        return None
    try:
        folder = last_run.baselines_of(path, last_run.read(path))
    except last_run.LastRunError:  # whose remedy is to read the baselines instead
        return None
    return None if _is_of_a_revision(folder) else folder


def _is_of_a_revision(folder: Path) -> bool:
    """Whether it holds the evidence of a revision, or held it until it was removed."""
    return folder.parent == (default_folder() / REVISIONS_FOLDER).absolute() or (folder / REVISION_FILE).exists()


def _is_another_project(start: Path, root: Path) -> bool:
    """Whether ``start`` lies in a checkout or a project of its own below ``root``, whose last run is not its own."""
    below = itertools.takewhile(lambda folder: folder != root, (start, *start.parents))
    return any(
        (folder / USUAL_FOLDER).is_dir() or (folder / ".git").exists() or has_pytest_settings(folder)
        for folder in below
    )


def _nearest(start: Path) -> Path | None:
    return next((path for folder in (start, *start.parents) if (path := folder / USUAL_FOLDER).is_dir()), None)
