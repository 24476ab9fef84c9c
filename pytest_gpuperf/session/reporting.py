"""The hooks of the process that reports on an active run: the only one, or the controller of pytest-xdist."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.xdist_groups import without_group
from pytest_gpuperf.formatting import harmless, numbered
from pytest_gpuperf.options import Options
from pytest_gpuperf.process.command import WORKER_ARGUMENTS, run_arguments
from pytest_gpuperf.read_options import REVISION_FOLDER
from pytest_gpuperf.report import terminal
from pytest_gpuperf.report.failures import RedGroups, error_lines
from pytest_gpuperf.report.terminal import Screen
from pytest_gpuperf.revision import against
from pytest_gpuperf.session import collect_counters, end_of_run

MOST_TESTS = 400
LETTERS = 240
"""Tests of a run, beyond which its progress has no letter for each of them; letters it has then."""
MOST_FILES = 8
"""Files of so many tests, beyond which its progress does not name them: each would begin a line."""


class Reporting:
    """A plugin that ``plugin`` registers where anything is measured or compared."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.messages = Messages()
        asked = config.option
        self._runs_tests = not (asked.collectonly or asked.showfixtures or asked.show_fixtures_per_test)
        self._tests_per_letter = 1
        self._ended: Counter[str] = Counter()
        """Tests by the letter that they would have."""

    def pytest_report_header(self) -> str:
        return harmless(terminal.header(self.options))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        if self.options.against and not self.options.is_child and self._runs_tests:
            self.options = self.config.stash[stash.OPTIONS] = against.begin(self.config, self.options)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._count_tests(len(session.items), files=len({item.path for item in session.items}))
        if self.options.ncu and self._runs_tests:
            collect_counters.count_items(self.config, session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[WORKER_ARGUMENTS] = run_arguments(self.config)
        if self.options.against:
            node.workerinput[REVISION_FOLDER] = str(self.options.baselines)
        if self.options.ncu:
            collect_counters.prepare_worker(self.config, node.workerinput)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._count_tests(len(ids))
        if self.options.ncu and self._runs_tests:
            collect_counters.count_nodes(self.config, [without_group(self.config, one) for one in ids])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        stash.run_of(self.config).results.collect(report)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        stash.run_of(self.config).results.told(nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._runs_tests:
            end_of_run.finish(session)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Of thousands of tests, one letter in so many: the progress takes a few lines whatever their number."""
        if self._tests_per_letter == 1 or report.when != "call" or hasattr(report, "wasxfail"):
            return None
        category: str = report.outcome
        letter, word = ".", report.outcome.upper()
        if report.failed:
            letter = "F"
        elif getattr(report, "gpuperf_status", "") == stash.STATIC_ONLY:
            category, letter, word = stash.STATIC_ONLY, "c", "STATIC ONLY"
        elif report.skipped:
            return None
        self._ended[letter] += 1  # the first failure is seen at once
        due = 1 if report.failed else 0
        return category, letter if self._ended[letter] % self._tests_per_letter == due else "", word

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        """The run's own summary, then those of plugins that look at all reports: ``--durations``, coverage."""
        groups = self.messages.groups
        if groups:
            groups.give_back()
            if groups.unshown and self.config.getoption("tbstyle") != "no":
                more = numbered(groups.unshown, "more failure", "is", "are")
                terminalreporter.write_line(f"{more} not shown (-v shows all)")
        if self._runs_tests:
            end_of_run.summarise(Screen(terminalreporter), groups.failed if groups else ())
            for line in error_lines(groups.named, self.options.reports, self.config.rootpath) if groups else ():
                terminalreporter.write_line(line)
        yield
        if groups:
            groups.for_short_summary()

    def _count_tests(self, number: int, files: int = 1) -> None:
        if number <= MOST_TESTS or self.config.get_verbosity() > 0:
            return
        self._tests_per_letter = math.ceil(number / LETTERS)
        terminal_reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if files > MOST_FILES and terminal_reporter is not None:
            terminal_reporter.showfspath = False


class Messages:
    """Around pytest's own summary, which shows messages of failures first and names them at the end."""

    groups: RedGroups | None = None
    """From the summary's beginning on."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        self.groups = RedGroups(terminalreporter)
        self.groups.for_messages()
        try:
            return (yield)
        finally:
            self.groups.give_back()
