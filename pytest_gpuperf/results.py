"""The collected tests of a run, their ends and their evidence.

Every test is noted when it is collected, before anything deselects it.  Workers of pytest-xdist collect, and the
controller does not: they hand over what they found when they end.  What a ``TestRecord`` holds leaves its test as
``TestEvidence`` on pytest's report; here the process that reports takes it, the only one or the controller.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.model.verdict import Judgement
from pytest_gpuperf.options import Options
from pytest_gpuperf.read_options import from_root

HANDED_OVER = "gpuperf_tests_found"
"""Where a worker of pytest-xdist leaves what it found for the controller."""


class Ended(NamedTuple):
    how: Literal["passed", "failed", "skipped", "xfailed"]
    reason: str = ""
    """Why it failed, was skipped, or was expected to fail; one line."""


class TestsFound(msgspec.Struct):
    """The collected tests; ids as in node ids."""

    __test__ = False

    tests: set[str] = msgspec.field(default_factory=set)
    """Every test, those included that were deselected afterwards."""
    selected: set[str] = msgspec.field(default_factory=set)
    modules: set[str] = msgspec.field(default_factory=set)
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    """Files, folders and classes that could not be collected, with the error."""
    skipped: dict[str, str] = msgspec.field(default_factory=dict)
    """Those that skipped themselves, with their reason."""
    models: set[str] = msgspec.field(default_factory=set)
    """GPU models of the processes whose tests opened theirs, timed or not."""
    archs: set[str] = msgspec.field(default_factory=set)
    """Architectures of the same GPUs."""
    there: set[str] = msgspec.field(default_factory=set)
    """Tests of the revision that is compared with, if one is, that may measure something."""

    def join(self, other: TestsFound) -> None:
        for name in self.__struct_fields__:
            getattr(self, name).update(getattr(other, name))

    def lacks(self, config: pytest.Config, key: Key) -> bool:
        """Whether no test has a record, of a file that the run collected all tests of, or of a file that is missing.

        A run with ``--lf`` collects parts of files: it tells of none.
        """
        if key.node_id in self.tests or getattr(config.option, "lf", False):
            return False
        places = [from_root(config, one) for one in config.args if "::" not in one]
        searched = any(one in (".", key.module) or key.module.startswith(f"{one}/") for one in places)
        return searched and (key.module in self.modules or not (config.rootpath / key.module).is_file())


class Results:
    """A plugin that ``session.reporting`` registers in every process of an active run."""

    def __init__(self) -> None:
        self.found: TestsFound | None = None
        """None before a collection, and of one that was cut short."""
        self.gated: set[str] = set()
        """Tests that may measure something."""
        self.ends: dict[str, Ended] = {}
        """By node id, of the tests that ended; a failed subtest fails its test."""
        self.by_test: dict[str, TestEvidence] = {}
        """By node id."""
        self.so_far = TestsFound()
        """The tests collected so far, until the collection ends."""
        self._chosen = False
        """Whether the collection is complete: pytest reports its finish even if something ended it early."""

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.so_far.tests.add(item.nodeid)
        if "gpuperf" in getattr(item, "fixturenames", ()):
            self.gated.add(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.so_far.failed[report.nodeid] = failure_line(report)
        elif report.skipped:
            self.so_far.skipped[report.nodeid] = skip_reason(report)
        elif report.nodeid.endswith(".py"):
            self.so_far.modules.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self) -> None:
        self._chosen = True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            if (name := without_group(session.config, item.nodeid)) != item.nodeid:
                item._nodeid = name  # type: ignore[attr-defined] # as pytest-xdist, which knows it, sets it
        if self._chosen and not session.config.pluginmanager.hasplugin("dsession"):
            self.found = self.so_far
            self.found.selected = {item.nodeid for item in session.items}
            self._watch_code(session.config.stash[stash.OPTIONS])

    def _watch_code(self, options: Options) -> None:
        """See the machine code of callables before a test or a fixture has it loaded."""
        traces = options.gates if options.task is None else isinstance(options.task, RevisionTask)
        if self.gated and traces and options.timer != "graph":
            from pytest_gpuperf.device.timers.loaded_code import watch_code  # noqa: PLC0415 CUPTI comes with it

            watch_code()

    def note(self, report: pytest.TestReport) -> None:
        """Note how a test or a phase of it ended, and take its evidence off the report, which pytest keeps."""
        if payload := getattr(report, "gpuperf", ""):
            self.by_test[report.nodeid] = msgspec.json.decode(payload, type=TestEvidence)
            report.gpuperf = ""  # type: ignore[attr-defined]
        known = self.ends.get(report.nodeid)
        if str(report.outcome) == "rerun":  # pytest-rerunfailures: what counts is still to come
            self.ends.pop(report.nodeid, None)
        elif known is not None and known.how == "failed":
            return
        elif report.failed:
            self.ends[report.nodeid] = Ended("failed", failure_line(report) or "it failed")
        elif hasattr(report, "context"):  # of a subtest, whose test goes on
            return
        elif report.skipped:
            expected = getattr(report, "wasxfail", None)
            end = Ended("skipped", skip_reason(report)) if expected is None else Ended("xfailed", expected)
            self.ends[report.nodeid] = end
        elif report.when == "call":
            self.ends[report.nodeid] = Ended("passed")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        handed_over: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        run = stash.run_of(session.config)
        run.end_second_process()  # before its hooks would overwrite files that those of this run write
        opened = run.opened
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

    # --- what is known of all tests -------------------------------------------------------------------

    @property
    def failures(self) -> dict[str, str]:
        """Why tests failed, in a line each, by their node id."""
        return {node: end.reason for node, end in self.ends.items() if end.how == "failed"}

    @property
    def tests_run(self) -> int:
        """Tests that were not skipped, and those that found something before they skipped themselves."""
        return len({node for node, end in self.ends.items() if end.how != "skipped"} | self.by_test.keys())

    @property
    def evidence(self) -> list[TestEvidence]:
        return list(self.by_test.values())

    @property
    def judgements(self) -> list[Judgement]:
        return [judgement for evidence in self.evidence for judgement in evidence.judgements]

    def accepted(self) -> list[TestEvidence]:
        """Evidence of tests that passed in every phase, gate included: all that may become a baseline."""
        not_passed = {node for node, end in self.ends.items() if end.how in ("failed", "xfailed")}
        return [one for node, one in self.by_test.items() if node not in not_passed]

    @property
    def gathered_anything(self) -> bool:
        return any(work.static or work.time or work.counters for one in self.evidence for work in one.workloads)


def may_measure(item: pytest.Item) -> bool:
    """Whether a test may use a kernel or a workload."""
    return not {"cuda_kernel", "gpuperf"}.isdisjoint(getattr(item, "fixturenames", ()))


def skip_reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    """The reason of a skip, in one line."""
    where = report.longrepr
    text = str(where[2]) if isinstance(where, tuple) else str(where or "")
    return " ".join(text.removeprefix("Skipped: ").split())


def failure_line(report: pytest.CollectReport | pytest.TestReport) -> str:
    """The first line of what pytest says of a failure, as its short summary has it; empty if it says nothing."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash is not None else report.longrepr or "").strip().splitlines()
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]  # of a module that cannot be imported
    return next(iter([*errors, *lines]), "")


def without_group(config: pytest.Config, node_id: str) -> str:
    """The plain node id of a test to which pytest-xdist's ``--dist loadgroup`` appended its group: ``test_a@group``.

    Only pytest-xdist needs groups, to hand tests out; baselines, reports and child processes know tests without.
    """
    at = node_id.rfind("@")
    grouped = config.getoption("dist", "no") == "loadgroup" or config.getoption("loadgroup", False)
    return node_id[:at] if grouped and at > max(node_id.rfind("]"), node_id.rfind("::")) else node_id
