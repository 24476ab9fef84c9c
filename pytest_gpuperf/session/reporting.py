"""The start of a run that measures or compares, and the hooks of the process that reports on it.

That is the only process, or the controller of pytest-xdist.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from typing import Any

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.pin import require_pinned
from pytest_gpuperf.formatting import escape_ci_commands
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.options import Options
from pytest_gpuperf.process.children import answer_signals, end_with_parent, interrupt
from pytest_gpuperf.process.gpu_fault import FaultPlugin
from pytest_gpuperf.read_options import REVISION_FOLDER
from pytest_gpuperf.report import terminal
from pytest_gpuperf.report.failures import RedGroups
from pytest_gpuperf.report.terminal import Screen
from pytest_gpuperf.revision import against
from pytest_gpuperf.session import collect_counters, end_of_run


def begin(config: pytest.Config, options: Options) -> None:
    """Prepare the run as its options say, and register the plugins with its hooks."""
    end_with_parent()
    if options.active:
        config.pluginmanager.register(stash.run_of(config).results, "gpuperf-results")
        config.add_cleanup(answer_signals(interrupt, signal.SIGTERM))
        config.pluginmanager.register(FaultPlugin(config), "gpuperf-faults")
    if options.against and not options.is_child and _runs_tests(config):
        against.begin(config)
    if isinstance(options.task, ConfirmTask):
        from pytest_gpuperf.workload.confirm_server import ConfirmServer  # noqa: PLC0415 SciPy comes with it

        config.pluginmanager.register(ConfirmServer(config, options.task), "gpuperf-confirm")
    if options.active and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporting(config), "gpuperf-reporting")


def _runs_tests(config: pytest.Config) -> bool:
    asked = config.option
    return not (asked.collectonly or asked.showfixtures or asked.show_fixtures_per_test)


class Reporting:
    """A plugin of the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._runs_tests = _runs_tests(config)

    @property
    def options(self) -> Options:
        """A comparison with a revision names another folder of baselines at the session's start."""
        return self.config.stash[stash.OPTIONS]

    def pytest_report_header(self) -> str:
        return escape_ci_commands(terminal.header(self.options))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        if self.options.ncu and self._runs_tests and self.config.pluginmanager.hasplugin("dsession"):
            raise pytest.UsageError("--gpuperf-ncu: Nsight Compute counts in one process: leave -n out, or give -n 0")
        if self.options.gates and self.options.update is None and not self.options.against:
            try:
                require_pinned(self.config.rootpath, stash.run_of(self.config).store)
            except BaselineError as problem:
                raise pytest.UsageError(str(problem)) from None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self.options.ncu and self._runs_tests:
            collect_counters.count_items(self.config, session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self.options.against:
            node.workerinput[REVISION_FOLDER] = str(self.options.baselines)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        stash.run_of(self.config).results.note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._runs_tests:
            end_of_run.finish(session)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        """The run's own summary, then those of plugins that look at all reports: ``--durations``, coverage."""
        groups = self.groups
        groups.leave(groups.failed)
        if self._runs_tests:
            run = stash.run_of(self.config)
            terminal.summary(Screen(terminalreporter), run.results, run.outcome, run.options, groups.failed)
        yield
        groups.leave(groups.named)

    @pytest.hookimpl(specname="pytest_terminal_summary", wrapper=True, tryfirst=True)
    def pytest_whole_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        """Around pytest's own summary, which shows messages of failures first and names them at the end."""
        self.groups: RedGroups = RedGroups(terminalreporter)
        self.groups.leave(self.groups.named)
        try:
            return (yield)
        finally:
            self.groups.leave(self.groups.failed)
