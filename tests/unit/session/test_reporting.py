"""The hooks of the process that reports: when counters are collected, and when a run has an end at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import Run

from pytest_gpuperf import stash
from pytest_gpuperf.report import terminal
from pytest_gpuperf.report.terminal import Screen
from pytest_gpuperf.session import collect_counters, end_of_run
from pytest_gpuperf.session.reporting import Reporting

REPORTER: Any = object()


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is passed on, and to whom."""
    calls: list[tuple[Any, ...]] = []
    for module, names in (
        (collect_counters, ("count_items",)), (end_of_run, ("finish", "summarise"))
    ):  # fmt: skip
        for name in names:
            monkeypatch.setattr(module, name, lambda *arguments, name=name: calls.append((name, *arguments)))
    return calls


def all_hooks(run: Run, called: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    called.clear()
    reporting = Reporting(run.config)
    node: Any = SimpleNamespace(workerinput={})
    reporting.pytest_collection_finish(run.session())
    reporting.pytest_configure_node(node)
    reporting.pytest_sessionfinish(run.session())
    assert list(reporting.pytest_terminal_summary(REPORTER)) == [None]  # in front of other plugins' summaries
    return called


def test_counters_are_collected_where_they_are_asked_for(run: Run, called: list[tuple[Any, ...]]) -> None:
    assert [name for name, *_ in all_hooks(run, called)] == ["finish", "summarise"]
    count, _, summary = all_hooks(run.with_options(ncu=("full",)), called)
    assert count == ("count_items", run.config, [])
    assert summary == ("summarise", Screen(REPORTER), ())


def test_a_run_that_only_collects_tests_has_no_end(run: Run, called: list[tuple[Any, ...]]) -> None:
    run.config.option.collectonly = True
    assert [name for name, *_ in all_hooks(run.with_options(ncu=("full",)), called)] == []


def test_the_header_says_what_the_run_is_for(run: Run) -> None:
    assert Reporting(run.config).pytest_report_header() == terminal.header(run.options)


def test_reports_go_into_the_runs_book(run: Run) -> None:
    report: Any = SimpleNamespace(
        nodeid="a", when="call", duration=1.0, failed=True, skipped=False, outcome="failed", longrepr="it failed"
    )
    Reporting(run.config).pytest_runtest_logreport(report)
    assert stash.run_of(run.config).results.tests_run == 1


@pytest.mark.parametrize("option", ["collectonly", "showfixtures", "show_fixtures_per_test"])
def test_a_run_that_lists_something_has_no_end(run: Run, called: list[tuple[Any, ...]], option: str) -> None:
    setattr(run.config.option, option, True)
    assert all_hooks(run, called) == []
