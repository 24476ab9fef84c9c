"""The hooks of the process that reports on an active run: the only one, or the controller of pytest-xdist."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.config.parse_options import REVISION_FOLDER
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.child_command import WORKER_ARGUMENTS, run_arguments
from pytest_gpuperf.report import terminal
from pytest_gpuperf.session import collect_counters, end_of_run


class Reporting:
    """A plugin that ``plugin`` registers where anything is measured or compared."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options

    def pytest_report_header(self) -> str:
        return terminal.header(self.options)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        if self.options.against and not self.options.is_child and not self.config.option.collectonly:
            from pytest_gpuperf.session import compare_revision  # noqa: PLC0415 few runs have another one

            self.options = self.config.stash[stash.OPTIONS] = compare_revision.begin(self.config, self.options)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self.options.ncu and not self.config.option.collectonly:
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
        if self.options.ncu and not self.config.option.collectonly:
            collect_counters.count_nodes(self.config, ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        stash.run_book_of(self.config).collect(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.config.option.collectonly:
            end_of_run.finish(session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.config.option.collectonly:
            end_of_run.summarise(terminalreporter)
