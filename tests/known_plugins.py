"""What does not change from one run of pytest to the next, found once a process: installed plugins and their fixtures.

A run of three short tests takes 50 ms.  A fifth of that is for reading which installed packages are plugins, twice, and
a quarter for looking at every name in pytest's own modules, most of which have no fixture.
"""

from __future__ import annotations

import functools
import sysconfig
from importlib.metadata import Distribution, PathDistribution
from types import ModuleType
from typing import Any

from _pytest.fixtures import FixtureManager, getfixturemarker

INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
UNCHANGING = ("_pytest", "xdist")
"""Packages whose modules and classes have the fixtures that they had."""


def remember() -> None:
    """From here on, in this process and those forked off it."""
    for name in ("entry_points", "files", "metadata"):
        setattr(PathDistribution, name, read_once(vars(Distribution)[name]))
    FixtureManager.pytest_plugin_registered = searched_once(FixtureManager.pytest_plugin_registered)


def read_once(read: property) -> property:
    """The same property; of a package that is installed, of the first time."""
    known: dict[str, Any] = {}

    def value(package: PathDistribution) -> Any:
        place = str(package._path)
        if not place.startswith(INSTALLED):
            return read.fget(package)
        if place not in known:
            known[place] = read.fget(package)
        return known[place]

    return property(value)


def searched_once(search: Any) -> Any:
    """The same search for a plugin's fixtures; not where there is none."""

    @functools.wraps(search)
    def registered(manager: FixtureManager, plugin: object, plugin_name: str) -> None:
        if not without_fixtures(plugin if isinstance(plugin, ModuleType | type) else type(plugin)):
            search(manager, plugin, plugin_name)

    return registered


@functools.cache
def without_fixtures(holder: ModuleType | type) -> bool:
    module = holder.__name__ if isinstance(holder, ModuleType) else holder.__module__
    return module.partition(".")[0] in UNCHANGING and not any(
        getfixturemarker(getattr(holder, name, None)) for name in dir(holder)
    )
