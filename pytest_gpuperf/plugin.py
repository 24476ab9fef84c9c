"""pytest hooks and nothing else.

Importing this module imports nothing heavy: a plain ``pytest`` pays only for declaring the options.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuperf import hookspecs, stash
from pytest_gpuperf.api import fixtures, marker
from pytest_gpuperf.read_options import add_options, read_options, spell_out_defaults


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> None:
    spell_out_defaults(args)


def pytest_configure(config: pytest.Config) -> None:
    options = config.stash[stash.OPTIONS] = read_options(config)
    config.addinivalue_line("markers", marker.DESCRIPTION)
    config.pluginmanager.register(fixtures, "gpuperf-fixtures")
    config.stash[stash.SHARED] = stash.SharedFixtures()
    config.pluginmanager.register(config.stash[stash.SHARED], "gpuperf-shared-fixtures")
    if options.active:
        from pytest_gpuperf.session import reporting  # noqa: PLC0415 a plain run has none of its plugins

        reporting.begin(config, options)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """No test lies among baselines, where nobody looks for code, nor behind a link in their place."""
    baselines = config.stash[stash.OPTIONS].baselines
    is_folder = collection_path == baselines and (baselines.is_symlink() or (baselines / "manifest.json").is_file())
    return True if is_folder else None


def pytest_sessionstart(session: pytest.Session) -> None:
    options = session.config.stash[stash.OPTIONS]
    if options.require_gpu and not hasattr(session.config, "workerinput"):
        stash.run_of(session.config).require_gpu()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        marker.settings_of(item)
    task = config.stash[stash.OPTIONS].task
    if task is not None:
        from pytest_gpuperf.process import children  # noqa: PLC0415 a plain run has no children

        children.select(config, items, task)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    stash.begin(item)
    __tracebackhide__ = True
    try:
        return (yield)
    except (Exception, pytest.skip.Exception, pytest.xfail.Exception) as raised:
        if stash.TEST_RECORD not in item.stash:
            raise
        from pytest_gpuperf.session import end_of_test  # noqa: PLC0415 a plain run without kernels has none

        if not end_of_test.ends_in_setup(item, raised):
            end_of_test.without_our_frames(item, raised)
            raise
        problem = raised
    end_of_test.finish(item, problem, "setup")
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    problem: BaseException | None = None
    result = None
    try:
        result = yield
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as raised:
        if stash.TEST_RECORD not in item.stash:
            raise
        problem = raised
    if stash.TEST_RECORD in item.stash:
        from pytest_gpuperf.session import end_of_test  # noqa: PLC0415 a plain run without kernels has none

        end_of_test.finish(item, problem or end_of_test.raised_in_test_case(item))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield  # of a subtest too, while its test goes on
    if stash.TEST_RECORD in item.stash:
        from pytest_gpuperf.session import end_of_test  # noqa: PLC0415 a plain run without kernels has none

        if stash.record_of(item).ended_in == call.when:
            end_of_test.attach(item, report)
        elif call.when == "call" and call.excinfo is not None:
            end_of_test.end_subtest(item, call.excinfo.value, report)
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    if getattr(report, "gpuperf_status", "") == "static only" and (report.passed or report.skipped):
        return "static only", "c", "STATIC ONLY"
    return None
