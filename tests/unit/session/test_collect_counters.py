"""Collecting counters before the first test: for which tests, of which figures, and what is left of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import Run, key

from pytest_gpuperf.counters.catalogue import canonical, chip_of, names_of
from pytest_gpuperf.counters.collect import Assignment
from pytest_gpuperf.counters.exchange import Collected, CollectedWorkload
from pytest_gpuperf.counters.report import read_report
from pytest_gpuperf.counters.run_ncu import CountersUnavailable, Ncu
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.session import collect_counters
from pytest_gpuperf.session.collect_counters import (
    count_items,
    counters_at_end,
)

NCU = Ncu(Path("/usr/bin/ncu"), (2025, 3, 1))
METRIC = "smsp__inst_executed.sum"
BUSY = CountersUnavailable("another profiler is running", "wait")


def brought(number: float = 1.0, **fields: Any) -> Collected:
    """Counters of one workload."""
    one = CollectedWorkload(
        key=key(), identity=Identity(code="c0" * 32, launch="grid"), cache="cold", counters={METRIC: number}
    )
    return Collected(**{"workloads": (one,), "seconds": 1.5, "ncu": "ncu 2025.3.1", **fields})


class Profiled:
    """Collections that were asked for, and what each of them brings."""

    def __init__(self) -> None:
        self.assignments: list[Assignment] = []
        self.folders: list[Path] = []
        self.results: list[Collected | CountersUnavailable] = []

    def __call__(self, assignment: Assignment, folder: Path) -> Any:
        self.assignments.append(assignment)
        self.folders.append(folder)
        return SimpleNamespace(collect=self.collect)

    def collect(self) -> Collected:
        result = self.results.pop(0) if self.results else brought()
        if isinstance(result, CountersUnavailable):
            raise result
        return result


@pytest.fixture
def profiled(monkeypatch: pytest.MonkeyPatch) -> Profiled:
    found = Profiled()
    monkeypatch.setattr(collect_counters, "Collection", found)
    monkeypatch.setattr(collect_counters, "find_ncu", lambda: NCU)
    monkeypatch.setattr(collect_counters, "child_command", lambda *arguments: ["pytest", *arguments])
    return found


@pytest.fixture
def shown(run: Run) -> list[str]:
    """Lines on the terminal of a run that collects the full set."""
    lines: list[str] = []
    reporter = SimpleNamespace(ensure_newline=lambda: None, write_line=lines.append)
    run.config.pluginmanager.get_plugin = {"terminalreporter": reporter}.get
    run.config.hook = SimpleNamespace(pytest_gpuperf_device=None)
    run.with_options(ncu=("default",))
    return lines


def names(*asked: str) -> tuple[str, ...]:
    return tuple(canonical(name, chip_of("sm_90")) for name in names_of(asked))


def count(run: Run, *items: Any, **options: Any) -> Collected:
    count_items(run.with_options(**options).config, items or [run.item()])
    collected: Collected = run.worker.collected
    return collected


def test_tests_that_use_gpuperf_are_counted(run: Run, profiled: Profiled, shown: list[str]) -> None:
    first, plain = run.item("test_a", metrics=["dram__bytes_write.sum"]), run.item("test_b")
    plain.fixturenames = ["tmp_path"]
    options = {"ncu": (METRIC, "dram__bytes_read.sum"), "cache": "warm"}
    assert count(run, first, plain, SimpleNamespace(nodeid="README"), run.item("test_c"), **options) == brought()
    (found,) = profiled.assignments
    assert found.nodes == (first.nodeid, run.item("test_c").nodeid)
    assert found.metrics == names(METRIC, "dram__bytes_read.sum", "dram__bytes_write.sum")
    assert (found.cache, found.chip, found.ncu, found.limit_s) == ("warm", chip_of("sm_90"), NCU, 60 + 10 * 2)
    assert (found.reader, found.working_folder) == (read_report, run.config.rootpath)
    task: Any = SimpleNamespace(folder=Path("there"))
    assert found.target(task) == ["pytest", run.config, task]
    assert shown == [
        "gpuperf: counting 2 tests under ncu 2025.3.1", "gpuperf: counters of 1 workload in 1.5 s by ncu 2025.3.1"
    ]  # fmt: skip


def test_nothing_is_started_for_no_test(run: Run, profiled: Profiled, shown: list[str]) -> None:
    count_items(run.config, [])
    assert (profiled.assignments, shown, run.worker.collected) == ([], [], None)


TAKES: dict[str, tuple[dict[str, Any], list[Any], float | None, tuple[str, ...] | str]] = {
    "one": ({}, [brought(1.0)], 1.0, ()),
    "an update takes three": ({"update": "all"}, [brought(1.0), brought(3.0), brought(2.0)], 2.0, ()),
    "a later one fails": (
        {"update": "all"}, [brought(1.0), BUSY], 1.0, ("taken only 1 of 3 times: another profiler is running; wait",)
    ),
    "the first one fails": ({"update": "all"}, [BUSY], None, "another profiler is running"),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKES)
def test_takes(run: Run, profiled: Profiled, shown: list[str], case: str) -> None:
    options, profiled.results, number, notes = TAKES[case]
    takes = len(profiled.results)
    collected = count(run, **options)
    assert [folder.name for folder in profiled.folders] == ["1", "2", "3"][:takes]
    assert profiled.folders[0].parent.name.startswith("gpuperf-ncu-")
    if number is None:
        assert (collected.problem, shown[-1]) == (notes, f"gpuperf: no counters: {notes}")
    else:
        assert (collected.workloads[0].counters, collected.notes) == ({METRIC: number}, notes)
    if options:
        assert shown[0] == "gpuperf: counting 1 test under ncu 2025.3.1, take 1 of 3"


def test_process_without_a_gpu_has_no_counters(run: Run, profiled: Profiled, shown: list[str]) -> None:
    run.worker.native_arch, run.worker.no_device = None, "no driver; install one"
    collected = count(run)
    assert (collected.problem, collected.remedy) == ("there is no GPU", "no driver; install one")
    assert profiled.assignments == []


def test_summary_has_the_notes_and_the_last_lines_of_the_tests() -> None:
    notes = ("a note", "the last lines of the profiled tests:", "    E  wrong")
    assert counters_at_end(brought(notes=("a note",), log=("E  wrong",))) == notes
    assert counters_at_end(brought()) == counters_at_end(None) == ()
