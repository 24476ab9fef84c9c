"""A pytest plugin for a child process: collects tests, runs none, writes down what there is.

Loaded with ``-p`` by ``collected_tests``, never in a user's own run.  Only the tests that pytest itself finds say
whether a baseline still has one, so pytest is asked, with the user's own configuration.  Each is noted when it is
collected: a conftest may take it out of those that are run without a word.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from pytest_gpuperf.read_options import from_root, read_options

FLAG = "--gpuperf-write-collection"
EMPTY = "got empty parameter set"
"""How pytest begins the reason of the mark that it gives the one test of an empty parameter set."""


class CollectionNotes:
    """Notes what collection meets; written as the JSON of a ``CollectedTests`` when the session ends."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.deselected: list[str] = []
        self.failed: list[str] = []
        self.skipped: list[str] = []
        self.modules: list[str] = []
        self.tests: set[str] = set()
        self.fixtures: set[str] = set()
        self.empty: set[str] = set()

    def _note(self, item: pytest.Item) -> None:
        self.tests.add(item.nodeid)
        if any(str(mark.kwargs.get("reason", "")).startswith(EMPTY) for mark in item.iter_markers()):
            self.empty.add(item.nodeid.partition("[")[0])

    @pytest.hookimpl
    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self._note(item)

    @pytest.hookimpl
    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.deselected += [item.nodeid for item in items]

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            self.skipped.append(report.nodeid)
        elif report.nodeid.endswith(".py"):
            self.modules.append(report.nodeid)

    @pytest.hookimpl
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        if exitstatus in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
            return  # pytest says why, and the parent quotes it
        config = session.config
        for item in session.items:  # a conftest may have put some there, or have given them other names
            self._note(item)
        document = {
            "root": str(config.rootpath),
            "baselines": str(read_options(config).baselines),
            "scope": [from_root(config, argument.partition("::")[0]) for argument in config.args],
            "named_tests": [argument for argument in config.args if "::" in argument],
            "tests": sorted(self.tests),
            "fixtures": sorted(self.fixtures),
            "empty": sorted(self.empty),
            "modules": self.modules,
            "deselected": self.deselected,
            "failed": self.failed,
            "skipped": self.skipped,
        }
        self.target.write_text(json.dumps(document), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(FLAG, metavar="FILE", help="internal to 'gpuperf prune': where to write what was collected")


def pytest_configure(config: pytest.Config) -> None:
    target = cast(str, config.getoption(FLAG))
    config.pluginmanager.register(CollectionNotes(Path(target)), "gpuperf-collected")
