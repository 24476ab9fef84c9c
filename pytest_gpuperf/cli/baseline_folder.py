"""The folder of the baselines that a command reads or changes, and names of tests as they are in it."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.options import USUAL_FOLDER


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Declare ``--baselines``."""
    description = f"baselines folder (default: the nearest one called {USUAL_FOLDER}, here or above)"
    parser.add_argument("--baselines", metavar="DIR", type=Path, help=description)


def folder_of(given: Path | None, start: Path) -> Path:
    """The one given, else the nearest of the usual name.  Raises ``GpuperfError``."""
    places = [given] if given is not None else [folder / USUAL_FOLDER for folder in (start, *start.parents)]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        where = f"folder {USUAL_FOLDER} in {start} or above" if given is None else f"folder {given}"
        raise GpuperfError(f"there is no {where}: name that of the baselines with --baselines DIR")
    return found


def seen_from_root(name: str, root: Path) -> str:
    """A node id as pytest names it from ``root``, if it begins with a file's path seen from the current folder."""
    module, mark, test = name.partition("::")
    file, root = Path(module).resolve(), root.resolve()
    return f"{file.relative_to(root).as_posix()}{mark}{test}" if file.is_file() and root in file.parents else name
