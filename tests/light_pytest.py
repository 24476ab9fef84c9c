"""Less work at the start of a run of pytest within another, or in a fork: half of what an empty one takes.

pytest reads the metadata of all that is installed, and looks at each name of each plugin for fixtures, in each of two
thousand runs.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from types import ModuleType
from typing import Any

from _pytest import fixtures

FIXTURE: Any = getattr(fixtures, "FixtureFunctionDefinition", None)
"""pytest has it since 8.4."""
Found = importlib.metadata.PathDistribution
found, parsed = importlib.metadata.distributions, fixtures.FixtureManager.parsefactories


class Distribution(Found):
    """One whose files are read once."""

    entry_points, files, metadata = (
        functools.cached_property(one.fget)  # type: ignore[attr-defined]
        for one in (Found.entry_points, Found.files, Found.metadata)
    )


def use() -> None:
    importlib.metadata.distributions = distributions  # type: ignore[assignment]
    if FIXTURE is not None:
        fixtures.FixtureManager.parsefactories = parsefactories  # type: ignore[assignment, method-assign]


def distributions(**chosen: Any) -> Any:
    folders = tuple(folder for folder in sys.path if folder.endswith("-packages"))
    return found(**chosen) if chosen else installed(folders)


@functools.cache
def installed(folders: tuple[str, ...]) -> list[Distribution]:
    return [Distribution(one._path) for one in found()]  # type: ignore[attr-defined]


def parsefactories(manager: Any, *given: Any, **named: Any) -> None:
    """Of a module that has fixtures, as most of pytest's plugins have none."""
    holder = named.get("holder", *given[:1])
    if not isinstance(holder, ModuleType) or any(isinstance(value, FIXTURE) for value in vars(holder).values()):
        parsed(manager, *given, **named)
