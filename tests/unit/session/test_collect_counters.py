"""Collecting counters before the first test: for which tests, of which figures, and what is left of it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import Run, key

from pytest_gpuperf.counters.catalogue import canonical, chip_of
from pytest_gpuperf.counters.collect import Assignment
from pytest_gpuperf.counters.exchange import COLLECTED, Collected, CollectedWorkload
from pytest_gpuperf.counters.failures import CountersUnavailable
from pytest_gpuperf.counters.metric_request import names_of
from pytest_gpuperf.counters.report import KernelResult, read_report
from pytest_gpuperf.counters.run_ncu import Ncu
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.session import collect_counters
from pytest_gpuperf.session.collect_counters import count_items, count_nodes, counters_at_end, prepare_worker
from pytest_gpuperf.workload.counter_evidence import WORKER_INPUT

NCU = Ncu(Path("/usr/bin/ncu"), (2025, 3, 1))
METRIC = "smsp__inst_executed.sum"


def own_reader(report: Path, ncu: Path) -> list[KernelResult]:
    """Stands for a reader that a conftest gives."""
    return []


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
    run.config.hook = SimpleNamespace(pytest_gpuperf_ncu_reader=lambda config: None, pytest_gpuperf_device=None)
    run.with_options(ncu=("default",))
    return lines


def names(*asked: str) -> tuple[str, ...]:
    return tuple(canonical(name, chip_of("sm_90")) for name in names_of(asked))


def test_the_tests_that_use_gpuperf_are_counted(run: Run, profiled: Profiled, shown: list[str]) -> None:
    first, plain, second = run.item("test_a"), run.item("test_b"), run.item("test_c")
    plain.fixturenames = ["tmp_path"]
    count_items(run.config, [first, plain, SimpleNamespace(nodeid="README"), second])
    (found,) = profiled.assignments
    assert found.nodes == (first.nodeid, second.nodeid)
    assert (found.metrics, found.cache, found.chip, found.ncu) == (names("default"), "cold", chip_of("sm_90"), NCU)
    assert (found.reader, found.working_folder) == (read_report, run.config.rootpath)
    assert found.limit_s == 60 + 10 * 2
    assert shown == [
        "gpuperf: counting 2 tests under ncu 2025.3.1", "gpuperf: counters of 1 workload in 1.5 s by ncu 2025.3.1"
    ]  # fmt: skip


def test_a_profiled_process_is_told_its_task_in_its_own_folder(run: Run, profiled: Profiled, shown: list[str]) -> None:
    count_items(run.config, [run.item()])
    task: Any = SimpleNamespace(folder=Path("there"))
    assert profiled.assignments[0].target(task) == ["pytest", run.config, task]


def test_what_was_collected_is_kept_for_this_process_and_for_workers(
    run: Run, profiled: Profiled, shown: list[str]
) -> None:
    given: dict[str, Any] = {}
    prepare_worker(run.config, given)
    count_items(run.config, [run.item()])
    assert run.worker.collected == brought()
    left = (Path(given[WORKER_INPUT]) / COLLECTED).read_bytes()
    assert msgspec.json.decode(left, type=Collected) == brought()
    assert profiled.folders == [Path(given[WORKER_INPUT]) / "1"]
    assert Path(given[WORKER_INPUT]).name.startswith("gpuperf-ncu-")


def test_metrics_of_flags_and_markers_are_asked_for_once(run: Run, profiled: Profiled, shown: list[str]) -> None:
    run.with_options(ncu=(METRIC, "dram__bytes_read.sum"))
    count_items(run.config, [run.item("test_a", metrics=["dram__bytes_write.sum"]), run.item("test_b")])
    found = profiled.assignments[0].metrics
    assert found == names(METRIC, "dram__bytes_read.sum", "dram__bytes_write.sum")
    assert found[:3] == (METRIC, "dram__bytes_read.sum", "dram__bytes_write.sum")


def test_a_reader_that_was_given_is_taken(run: Run, profiled: Profiled, shown: list[str]) -> None:
    def reader(config: Any) -> Any:
        assert config is run.config
        return own_reader

    run.config.hook.pytest_gpuperf_ncu_reader = reader
    run.with_options(cache="warm")
    count_items(run.config, [run.item()])
    (found,) = profiled.assignments
    assert (found.limit_s, found.cache, found.reader) == (70.0, "warm", own_reader)


def test_nothing_is_started_for_no_test(run: Run, profiled: Profiled, shown: list[str]) -> None:
    count_items(run.config, [])
    assert (profiled.assignments, shown, run.worker.collected is not None) == ([], [], False)


def test_the_controller_of_workers_waits_for_what_they_find(run: Run, profiled: Profiled, shown: list[str]) -> None:
    run.plugins.add("dsession")
    run.config.hook.pytest_gpuperf_device = lambda config, worker: SimpleNamespace(facts=SimpleNamespace(arch="sm_80"))
    count_items(run.config, [run.item()])
    assert profiled.assignments == []
    count_nodes(run.config, ["test_x.py::test_a"])
    count_nodes(run.config, ["test_x.py::test_a"])
    (found,) = profiled.assignments
    assert (found.nodes, found.chip) == (("test_x.py::test_a",), chip_of("sm_80"))


@pytest.fixture
def controller(run: Run, shown: list[str]) -> Run:
    """A controller that no plugin gives a GPU."""

    def none(config: Any, worker: Any) -> None:
        assert (config, worker) == (run.config, None)

    run.plugins.add("dsession")
    run.config.hook.pytest_gpuperf_device = none
    return run


def test_a_controller_asks_nvml_for_the_gpu(
    controller: Run, profiled: Profiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect_counters, "first_architecture", lambda: "sm_120")
    count_nodes(controller.config, ["a"])
    assert profiled.assignments[0].chip == chip_of("sm_120")


def problem_of(run: Run) -> tuple[str, str]:
    collected = run.worker.collected
    return collected.problem, collected.remedy


def test_a_controller_without_a_gpu_has_no_counters(
    controller: Run, profiled: Profiled, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect_counters, "first_architecture", lambda: None)
    count_nodes(controller.config, ["a"])
    assert problem_of(controller) == ("NVML lists no GPU", "counters need an NVIDIA GPU and its driver")
    assert shown == ["gpuperf: no counters: NVML lists no GPU"]


def test_a_process_without_a_gpu_has_no_counters(run: Run, profiled: Profiled, shown: list[str]) -> None:
    run.worker.native_arch, run.worker.no_device = None, "no driver; install one"
    count_items(run.config, [run.item()])
    assert problem_of(run) == ("there is no GPU", "no driver; install one")
    assert profiled.assignments == []


def unavailable(words: str) -> CountersUnavailable:
    return CountersUnavailable(words, "wait")


def test_an_update_takes_its_counters_three_times(run: Run, profiled: Profiled, shown: list[str]) -> None:
    profiled.results = [brought(1.0), brought(3.0), brought(2.0)]
    count_items(run.with_options(update="all").config, [run.item()])
    collected = run.worker.collected
    assert collected.workloads[0].counters == {METRIC: 2.0}
    assert [folder.name for folder in profiled.folders] == ["1", "2", "3"]
    assert {found.nodes for found in profiled.assignments} == {(run.item().nodeid,)}
    assert shown[:3] == [f"gpuperf: counting 1 test under ncu 2025.3.1, take {number} of 3" for number in (1, 2, 3)]
    assert collected.notes == ()


def test_what_a_later_take_cannot_have_does_not_cost_the_earlier_ones(
    run: Run, profiled: Profiled, shown: list[str]
) -> None:
    profiled.results = [brought(1.0), unavailable("another profiler is running")]
    count_items(run.with_options(update="all").config, [run.item()])
    collected = run.worker.collected
    assert collected.workloads[0].counters == {METRIC: 1.0}
    assert collected.notes == ("taken only 1 of 3 times: another profiler is running; wait",)
    assert len(profiled.folders) == 2


def test_an_update_whose_first_take_fails_has_none(run: Run, profiled: Profiled, shown: list[str]) -> None:
    profiled.results = [unavailable("another profiler is running")]
    count_items(run.with_options(update="all").config, [run.item()])
    assert problem_of(run) == ("another profiler is running", "wait")
    assert len(profiled.folders) == 1
    assert shown[-1] == "gpuperf: no counters: another profiler is running"


def test_the_summary_has_the_notes_and_the_last_lines_of_the_tests(run: Run) -> None:
    run.worker.collected = brought(notes=("a note",), log=("E  wrong",))
    notes = ("a note", "the last lines of the profiled tests:", "    E  wrong")
    assert counters_at_end(run.config) == notes
    run.worker.collected = brought()
    assert counters_at_end(run.config) == ()


def test_the_folder_of_the_counters_is_gone_when_pytest_ends(tmp_path: Path) -> None:
    given: dict[str, Any] = {}
    with contextlib.ExitStack() as cleanups:
        prepare_worker(Run(tmp_path, cleanups).config, given)
        assert Path(given[WORKER_INPUT]).is_dir()
    assert not Path(given[WORKER_INPUT]).exists()
