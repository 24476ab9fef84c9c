"""A run without baselines: whether other folders have some, as of a run below the root or with another ini file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context import stash
from pytest_gpuperf.options import USUAL_FOLDER


def no_baselines_line(config: pytest.Config) -> str:
    """What to say of a gated run whose folder has no baselines; empty where it has some, or needs none."""
    options, root = config.stash[stash.OPTIONS], config.rootpath
    gathered = stash.run_of(config).results.gathered_anything
    if options.update is not None or options.against or not gathered or stash.run_of(config).store.targets():
        return ""
    where = f"there are no baselines in {options.baselines} (rootdir {root})"
    others = [place for place in _places_nearby(root) if place != options.baselines and _has_baselines(place)]
    if not others:
        return f"{where}: if there should be, --rootdir or --gpuperf-baselines names their folder"
    return (
        f"{where}; there are some in {', '.join(map(str, others))}. To do: start pytest in their folder's parent or "
        "name it with --rootdir or --gpuperf-baselines; if they are others: pytest --update-baselines=new"
    )


def _places_nearby(root: Path) -> list[Path]:
    """Folders of the usual name above and just below pytest's root, and any in it."""
    try:
        below = sorted(folder for folder in root.iterdir() if folder.is_dir())
    except OSError:
        below = []
    return list(dict.fromkeys([*(folder / USUAL_FOLDER for folder in (*root.parents, *below)), *below]))


def _has_baselines(place: Path) -> bool:
    try:
        return (place / manifest.FILE).is_file() and bool(BaselineStore(place).targets())
    except (BaselineError, OSError):  # a link, or a folder that cannot be entered or listed
        return False
