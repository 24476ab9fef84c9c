"""Baselines of the tests that ran, in another folder than the run's: a run below the root, or with another ini file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.config.flags import USUAL_FOLDER
from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.tests_found import TestsFound
from pytest_gpuperf.report.vanished_lines import elsewhere_line, no_baselines_line, twice_line


def without_baselines(config: pytest.Config, book: Book, found: TestsFound) -> tuple[str, str]:
    """Of a run without baselines: which other folder has those of the tests that ran, else a remark.

    Both are empty where there are baselines.  Raises ``BaselineError``.
    """
    options, root = config.stash[stash.OPTIONS], config.rootpath
    if options.update is not None or options.against or not book.gathered_anything:
        return "", ""
    store = stash.worker_of(config).store
    if any(store.keys(target) for target in store.targets()):
        return "", ""
    nearby = _baselines_nearby(options, root)
    for other, modules in _with_records_of(nearby, root, found):
        return elsewhere_line(options.baselines, root, other, modules, options.repeated), ""
    return "", no_baselines_line(options.baselines, root, nearby)


def recorded_twice(config: pytest.Config, found: TestsFound) -> tuple[str, ...]:
    """After an update: a line for each folder below another root that has baselines of the same tests."""
    root = config.rootpath
    others = [one for one in _baselines_nearby(config.stash[stash.OPTIONS], root) if one.parent != root]
    return tuple(twice_line(other, modules) for other, modules in _with_records_of(others, root, found))


def _with_records_of(places: Iterable[Path], root: Path, found: TestsFound) -> Iterator[tuple[Path, list[str]]]:
    """Folders of baselines that have those of the tests that ran, and the test files by their names there."""
    ran = {node.partition("::")[0] for node in found.selected}
    yield from ((place, sorted(those)) for place in places if (those := _recorded_in(place, root, ran)))


def _recorded_in(other: Path, root: Path, modules: Iterable[str]) -> set[str]:
    """Test files among ``modules``, as seen from ``root``, that another folder has records of, by their names there.

    A file outside the root has no path in its node ids, so its name has to do.
    """
    store, found = BaselineStore(other), set[str]()
    with contextlib.suppress(BaselineError):  # it is none to compare with
        there = {module for target in store.targets() for module in store.modules(target)}
        for module in modules:
            if (root / module).is_file():
                found.update(there & {Path(os.path.relpath(root / module, other.parent)).as_posix()})
            else:
                found.update(one for one in there if one.endswith(f"/{module.rpartition('/')[2]}"))
    return found


def _baselines_nearby(options: Options, root: Path) -> list[Path]:
    """Folders with baselines in them: of the usual name above and just below pytest's root, of any name in it."""
    try:
        below = sorted(folder for folder in root.iterdir() if folder.is_dir())
    except OSError:
        below = []
    places = [*(folder / USUAL_FOLDER for folder in (*root.parents, *below)), *below]
    return [place for place in dict.fromkeys(places) if place != options.baselines and _has_baselines(place)]


def _has_baselines(place: Path) -> bool:
    try:
        usual = place.name == USUAL_FOLDER and place.is_dir()
        return (usual or (place / manifest.FILE).is_file()) and bool(BaselineStore(place).targets())
    except (BaselineError, OSError):  # a link, or a folder that cannot be entered or listed
        return False
