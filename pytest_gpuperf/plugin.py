"""pytest hooks and nothing else.

Importing this module imports nothing heavy: a plain ``pytest`` pays only for declaring the options.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from pytest_gpuperf import hookspecs
from pytest_gpuperf.api import fixtures
from pytest_gpuperf.config import parse_options
from pytest_gpuperf.context import marker, stash

STATIC_ONLY = "static only"


def pytest_addoption(parser: pytest.Parser) -> None:
    parse_options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


def pytest_load_initial_conftests(args: list[str]) -> None:
    parse_options.spell_out_defaults(args)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, Any, Any]:
    parse_options.keep_modules_together(config)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[stash.OPTIONS] = parse_options.read_options(config)
    config.addinivalue_line("markers", marker.DESCRIPTION)
    config.pluginmanager.register(fixtures, "gpuperf-fixtures")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporting(config), "gpuperf-reporting")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        marker.settings_of(item)
    task = config.stash[stash.OPTIONS].task
    if task is not None:
        from pytest_gpuperf.context import child_process

        child_process.select(config, items, task)


def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    if config.stash[stash.OPTIONS].enabled and not config.option.collectonly:
        from pytest_gpuperf.workload import self_pairs

        stash.worker_of(config).self_pairs = self_pairs.choose(config, session.items)
    if config.stash[stash.OPTIONS].ncu and not config.option.collectonly and not hasattr(config, "workerinput"):
        from pytest_gpuperf.session import collect_counters

        collect_counters.count_items(config, session.items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    stash.forget(item)  # what an attempt before this one found, where a plugin lets failed tests run again
    try:
        return (yield)
    except Exception as raised:
        if stash.TEST_BOOK not in item.stash:
            raise
        from pytest_gpuperf.session import end_of_test

        if not end_of_test.stops_early(item, raised):
            raise
        problem = raised
    end_of_test.finish(item, problem, "setup")
    raise pytest.skip.Exception(f"checked only: {problem}")  # there is no test to run without its fixture


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    problem: BaseException | None = None
    result = None
    try:
        result = yield
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as raised:
        if stash.TEST_BOOK not in item.stash:
            raise
        problem = raised
    except BaseException:
        stash.cut_short(item)
        raise
    if stash.TEST_BOOK in item.stash:
        from pytest_gpuperf.session import end_of_test

        end_of_test.finish(item, problem or end_of_test.raised_in_test_case(item))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield  # of a subtest too, while its test goes on
    if stash.TEST_BOOK in item.stash:
        from pytest_gpuperf.session import end_of_test

        if stash.book_of(item).ended_in == call.when:
            end_of_test.attach(item, report)
        elif call.when == "call" and call.excinfo is not None:
            end_of_test.end_subtest(item, call.excinfo.value, report)
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    if getattr(report, "gpuperf_status", None) == STATIC_ONLY and report.skipped:
        return STATIC_ONLY, "c", "STATIC ONLY"
    return None


class Reporting:
    """The hooks of the process that reports: the only one, or the controller of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.options = config.stash[stash.OPTIONS]

    def pytest_report_header(self) -> str | None:
        if not self.options.active:
            return None
        from pytest_gpuperf.report import terminal

        return terminal.header(self.options)

    def pytest_sessionstart(self) -> None:
        if self.options.require_gpu:
            stash.worker_of(self.config).require_gpu()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self.options.ncu:
            from pytest_gpuperf.session import collect_counters

            collect_counters.prepare_worker(self.config, node.workerinput)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if self.options.ncu and not self.config.option.collectonly:
            from pytest_gpuperf.session import collect_counters

            collect_counters.count_nodes(self.config, ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.options.active:
            stash.run_book_of(self.config).collect(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.options.active and not self.config.option.collectonly:
            from pytest_gpuperf.session import end_of_run

            end_of_run.finish(session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.options.active and not self.config.option.collectonly:
            from pytest_gpuperf.session import end_of_run

            end_of_run.summarise(terminalreporter)
