"""What a run was asked to run: all of the project's tests, or less.

A full run is one that no ``-k``, ``-m``, ``--deselect``, ``--ignore``, ``--lf`` or ``--sw`` narrows, those in the ini
file's ``addopts`` aside: so the project runs in full.  Its modules are those below its paths; a path with ``::`` picks
single tests, which answer for their own records, and counts for no module.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

import pytest

from pytest_gpuperf.context.child_command import words_of
from pytest_gpuperf.read_options import from_root

NARROWING = {
    "keyword": ("-k",), "markexpr": ("-m",), "deselect": ("--deselect",), "ignore": ("--ignore",),
    "ignore_glob": ("--ignore-glob",), "lf": ("--lf", "--last-failed"),
    "stepwise": ("--sw", "--stepwise"), "stepwise_skip": ("--sw-skip", "--stepwise-skip"),
}  # fmt: skip
"""Flags after which pytest runs less, by their names in its options."""


@dataclasses.dataclass(frozen=True)
class RunScope:
    """Where a run looks for tests."""

    places: tuple[str, ...]
    """Files and folders that are searched, relative to the root; ``.`` is all of it."""
    full: bool
    """No flag narrows it."""
    whole: bool
    """The command gives no path, or the root is one of them."""

    def covers(self, module: str) -> bool:
        """Whether the search would meet every test of this module."""
        return covers(self.places, module)


def covers(places: Iterable[str], module: str) -> bool:
    """Whether the search of these files and folders, seen from the root, would meet every test of this module."""
    return any(place in (".", module) or module.startswith(f"{place}/") for place in places)


def scope_of(config: pytest.Config) -> RunScope:
    """By the command line and the ini file."""
    places = tuple(from_root(config, argument) for argument in config.args if "::" not in argument)
    by_ini = config.args_source is pytest.Config.ArgsSource.TESTPATHS or _are_usual(config, config.args)
    return RunScope(places, full=not is_narrowed(config), whole=by_ini or "." in places)


def _are_usual(config: pytest.Config, places: Sequence[str]) -> bool:
    """Whether all of them stand in the ini file's ``addopts`` and none in the command."""
    return set(places) <= set(config.getini("addopts")).difference(words_of(config.invocation_params.args))


def is_narrowed(config: pytest.Config) -> bool:
    """Whether a flag picks some of the tests, and the ini file does not give it."""
    usual: list[str] = list(config.getini("addopts"))
    for name, flags in NARROWING.items():
        given = getattr(config.option, name, None)
        values = given if isinstance(given, list) else [given]
        if any(value and not _is_usual(usual, flags, value) for value in values):
            return True
    return False


def _is_usual(usual: Sequence[str], flags: Sequence[str], value: object) -> bool:
    if value is True:
        return any(flag in usual for flag in flags)
    pairs = itertools.pairwise(usual)
    spelt = {f"{flag}{between}{value}" for flag in flags for between in ("", "=")}
    return bool(spelt.intersection(usual)) or any(flag in flags and word == value for flag, word in pairs)
