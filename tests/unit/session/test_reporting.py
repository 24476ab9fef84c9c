"""The hooks of the process that reports: when counters are collected, and when a run has an end at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import Run

from pytest_gpuperf.context import stash
from pytest_gpuperf.process.command import WORKER_ARGUMENTS
from pytest_gpuperf.report import terminal
from pytest_gpuperf.report.terminal import Screen
from pytest_gpuperf.session import collect_counters, end_of_run
from pytest_gpuperf.session import reporting as reporting_module
from pytest_gpuperf.session.reporting import Reporting

REPORTER: Any = object()


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is passed on, and to whom."""
    calls: list[tuple[Any, ...]] = []
    for module, names in (
        (collect_counters, ("count_items", "count_nodes", "prepare_worker")), (end_of_run, ("finish", "summarise"))
    ):  # fmt: skip
        for name in names:
            monkeypatch.setattr(module, name, lambda *arguments, name=name: calls.append((name, *arguments)))
    return calls


def all_hooks(run: Run, called: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    called.clear()
    reporting = Reporting(run.config, run.options)
    node: Any = SimpleNamespace(workerinput={})
    reporting.pytest_collection_finish(run.session())
    reporting.pytest_configure_node(node)
    reporting.pytest_xdist_node_collection_finished(["a"])
    reporting.pytest_sessionfinish(run.session())
    assert list(reporting.pytest_terminal_summary(REPORTER)) == [None]  # in front of other plugins' summaries
    return called


def test_counters_are_collected_where_they_are_asked_for(run: Run, called: list[tuple[Any, ...]]) -> None:
    assert [name for name, *_ in all_hooks(run, called)] == ["finish", "summarise"]
    count, prepare, nodes, _, summary = all_hooks(run.with_options(ncu=("full",)), called)
    assert count == ("count_items", run.config, [])
    assert prepare == ("prepare_worker", run.config, {WORKER_ARGUMENTS: ["--gpuperf"]})
    assert nodes == ("count_nodes", run.config, ["a"])
    assert summary == ("summarise", Screen(REPORTER), ())


def test_a_run_that_only_collects_tests_has_no_end(run: Run, called: list[tuple[Any, ...]]) -> None:
    run.config.option.collectonly = True
    assert [name for name, *_ in all_hooks(run.with_options(ncu=("full",)), called)] == ["prepare_worker"]


def test_the_header_says_what_the_run_is_for(run: Run) -> None:
    assert Reporting(run.config, run.options).pytest_report_header() == terminal.header(run.options)


def test_reports_go_into_the_runs_book(run: Run) -> None:
    report: Any = SimpleNamespace(
        nodeid="a", when="call", duration=1.0, failed=True, skipped=False, longrepr="it failed"
    )
    Reporting(run.config, run.options).pytest_runtest_logreport(report)
    assert stash.run_of(run.config).results.tests_run == 1


# --- letters of the progress -----------------------------------------------------------------------


def letters(run: Run, tests: int, *reports: Any, files: int = 1, verbosity: int = 0) -> list[Any]:
    """What the progress shows of these reports in a run of so many tests."""
    run.config.get_verbosity = lambda: verbosity
    reporting = Reporting(run.config, run.options)
    reporting._count_tests(tests, files)
    return [reporting.pytest_report_teststatus(report) for report in reports]


def ended(outcome: str, when: str = "call", **more: Any) -> Any:
    return SimpleNamespace(when=when, outcome=outcome, failed=outcome == "failed", skipped=outcome == "skipped", **more)


def test_a_run_of_few_tests_or_in_full_words_has_pytests_own_letters(run: Run) -> None:
    one = ended("passed")
    assert letters(run, reporting_module.MOST_TESTS, one) == [None]
    assert letters(run, reporting_module.MOST_TESTS * 10, one, verbosity=1) == [None]
    assert letters(run, reporting_module.MOST_TESTS + 1, one) != [None]


def test_of_many_tests_one_letter_stands_for_some(run: Run) -> None:
    several = 3 * reporting_module.LETTERS
    passed = letters(run, several, *[ended("passed")] * 7)
    assert [letter for _, letter, _ in passed] == ["", "", ".", "", "", ".", ""]
    assert passed[0][0::2] == ("passed", "PASSED")
    failed = letters(run, several, *[ended("failed")] * 7)  # the first is seen at once
    assert [letter for _, letter, _ in failed] == ["F", "", "", "F", "", "", "F"]
    assert failed[0][0::2] == ("failed", "FAILED")
    stopped = letters(run, several, *[ended("skipped", gpuperf_status=stash.STATIC_ONLY)] * 3)
    assert stopped == [(stash.STATIC_ONLY, "", "STATIC ONLY")] * 2 + [(stash.STATIC_ONLY, "c", "STATIC ONLY")]
    each = [ended("passed"), ended("failed"), ended("skipped", gpuperf_status=stash.STATIC_ONLY)] * 2
    assert [letter for _, letter, _ in letters(run, several, *each)] == ["", "F", "", "", "", ""]


def test_other_ends_have_pytests_own_letters(run: Run) -> None:
    several = 3 * reporting_module.LETTERS
    others = [ended("failed", "setup"), ended("passed", wasxfail="known"), ended("skipped")]
    assert letters(run, several, *others) == [None, None, None]


def test_of_many_files_the_names_are_left_out(run: Run) -> None:
    terminal_reporter = SimpleNamespace(showfspath=True)
    run.config.pluginmanager.get_plugin = {"terminalreporter": terminal_reporter}.get
    several = 3 * reporting_module.LETTERS
    letters(run, reporting_module.MOST_TESTS, files=reporting_module.MOST_FILES + 1)
    letters(run, several, files=reporting_module.MOST_FILES)
    assert terminal_reporter.showfspath
    letters(run, several, files=reporting_module.MOST_FILES + 1)
    assert not terminal_reporter.showfspath


@pytest.mark.parametrize("option", ["collectonly", "showfixtures", "show_fixtures_per_test"])
def test_a_run_that_lists_something_has_no_end(run: Run, called: list[tuple[Any, ...]], option: str) -> None:
    setattr(run.config.option, option, True)
    assert all_hooks(run, called) == []


def test_files_are_counted_once_each(run: Run) -> None:
    terminal_reporter = SimpleNamespace(showfspath=True)
    run.config.pluginmanager.get_plugin = {"terminalreporter": terminal_reporter}.get
    run.config.get_verbosity = lambda: 0
    session = run.session()
    for files in (reporting_module.MOST_FILES, reporting_module.MOST_FILES + 1):
        session.items = [SimpleNamespace(path=number % files) for number in range(reporting_module.MOST_TESTS + 1)]
        Reporting(run.config, run.options).pytest_collection_finish(session)
        assert terminal_reporter.showfspath == (files == reporting_module.MOST_FILES)
