"""What one process collects, and how its tests end: so that a record without a test is missing.

Every test is noted when it is collected, before anything deselects it.  Workers of pytest-xdist collect, and the
controller does not: they hand over what they found when they end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec
import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.options import from_root

HANDED_OVER = "gpuperf_tests_found"
"""Where a worker of pytest-xdist leaves it for the controller."""


def may_measure(item: pytest.Item) -> bool:
    """Whether a test may come to a kernel or a workload."""
    return not {"cuda_kernel", "gpuperf"}.isdisjoint(getattr(item, "fixturenames", ()))


class Ended(NamedTuple):
    """How a test ended."""

    how: Literal["passed", "failed", "skipped", "xfailed"]
    reason: str = ""
    """Why it was skipped, or expected to fail."""


class TestsFound(msgspec.Struct):
    """What was collected; ids as in node ids."""

    __test__ = False

    tests: set[str] = msgspec.field(default_factory=set)
    """Every test, those included that were deselected afterwards."""
    selected: set[str] = msgspec.field(default_factory=set)
    modules: set[str] = msgspec.field(default_factory=set)
    failed: set[str] = msgspec.field(default_factory=set)
    """Files, folders and classes that could not be collected."""
    skipped: dict[str, str] = msgspec.field(default_factory=dict)
    """Those that skipped themselves, with their reason."""
    models: set[str] = msgspec.field(default_factory=set)
    """GPU models of the processes whose tests opened theirs, timed or not."""
    archs: set[str] = msgspec.field(default_factory=set)
    """Architectures of the same GPUs."""
    there: set[str] = msgspec.field(default_factory=set)
    """Tests of the revision that is compared with, if one is, that may measure something."""

    def join(self, other: TestsFound) -> None:
        """Add what another process found."""
        for name in self.__struct_fields__:
            getattr(self, name).update(getattr(other, name))


class FindingTests:
    """A plugin that ``session.reporting`` registers in every process of a gated run.

    ``found`` is None before a collection, and of one that was cut short.
    """

    def __init__(self) -> None:
        self.found: TestsFound | None = None
        self.so_far = TestsFound()
        self.gated: set[str] = set()
        """Tests that may measure something."""
        self.ends: dict[str, Ended] = {}
        self._chosen = False
        """Whether the collection came to its end: pytest tells of its finish even if something has ended it."""

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.so_far.tests.add(item.nodeid)
        if "gpuperf" in getattr(item, "fixturenames", ()):
            self.gated.add(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.so_far.failed.add(report.nodeid)
        elif report.skipped:
            self.so_far.skipped[report.nodeid] = skip_reason(report)
        elif report.nodeid.endswith(".py"):
            self.so_far.modules.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self) -> None:
        self._chosen = True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self._chosen and not session.config.pluginmanager.hasplugin("dsession"):
            self.found = self.so_far
            self.found.selected = {item.nodeid for item in session.items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if is_of_subtest(report):
            return
        if str(report.outcome) == "rerun":  # pytest-rerunfailures: what counts is still to come
            self.ends.pop(report.nodeid, None)
        elif report.failed:
            self.ends[report.nodeid] = Ended("failed")
        elif report.skipped:
            expected = getattr(report, "wasxfail", None)
            end = Ended("skipped", skip_reason(report)) if expected is None else Ended("xfailed", expected)
            self.ends[report.nodeid] = end
        elif report.when == "call":
            self.ends[report.nodeid] = Ended("passed")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        handed_over: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        opened = stash.run_of(session.config).opened
        if opened is not None and self.found is not None:
            self.found.models, self.found.archs = {opened.facts.slug}, {opened.facts.arch}
        if handed_over is not None and self.found is not None:
            handed_over[HANDED_OVER] = msgspec.json.encode(self.found).decode()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        text = getattr(node, "workeroutput", {}).get(HANDED_OVER)
        if text is not None:
            self.found = self.found or TestsFound()
            self.found.join(msgspec.json.decode(text, type=TestsFound))
            stash.run_of(node.config).archs_of_workers = frozenset(self.found.archs)


def is_of_subtest(report: pytest.TestReport) -> bool:
    """Whether a report under the test's node id tells of one of its subtests, by pytest or by pytest-subtests."""
    return hasattr(report, "context")


def skip_reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    """What a skip gives as its reason, in one line."""
    where = report.longrepr
    text = str(where[2]) if isinstance(where, tuple) else str(where or "")
    return " ".join(text.removeprefix("Skipped: ").split())


def failure_line(report: pytest.TestReport) -> str:
    """The first line of what pytest says of a failure, as its short summary has it; empty if it says nothing."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash is not None else report.longrepr or "").strip().splitlines()
    return lines[0] if lines else ""


def is_deleted(config: pytest.Config, found: TestsFound, key: Key) -> bool:
    """Whether no test has a record, of a file that the run collected all tests of, or that is gone.

    A run with ``--lf`` collects parts of files: it tells of none.
    """
    if key.node_id in found.tests or getattr(config.option, "lf", False):
        return False
    places = [from_root(config, one) for one in config.args if "::" not in one]
    searched = any(one in (".", key.module) or key.module.startswith(f"{one}/") for one in places)
    return searched and (key.module in found.modules or not (config.rootpath / key.module).is_file())


def take_off_groups(items: Iterable[pytest.Item]) -> None:
    """Give tests of a worker that has told its controller what it collected their plain node ids back.

    ``--dist loadgroup`` appends groups: ``test_x.py::test_a@group``.  Only the controller needs them, to hand tests
    out; baselines, reports and child processes know tests without.
    """
    for item in items:
        marks = list(item.iter_markers("xdist_group"))
        names = {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in marks}
        group = "@" + "_".join(sorted(names))
        if names and item.nodeid.endswith(group):
            item._nodeid = item.nodeid.removesuffix(group)  # type: ignore[attr-defined] # as pytest-xdist sets it


def without_group(config: pytest.Config, node_id: str) -> str:
    """The plain node id of what a worker told its controller, whose configuration this is."""
    at = node_id.rfind("@")
    grouped = config.getoption("dist", "no") == "loadgroup" and at > max(node_id.rfind("]"), node_id.rfind("::"))
    return node_id[:at] if grouped else node_id
