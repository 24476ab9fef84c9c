"""Collect counters of a set of tests: as a rule one profiled process, a second one where one cannot do.

ncu flushes the caches for all kernels of a process or for none, and takes one list of metrics for all: workloads
that want the other cache mode or metrics of their own are put off by the first process and taken by a second.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.counters import metric_request
from pytest_gpuperf.counters.aggregate import sum_up
from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.counters.chip_names import canonical, on_chip
from pytest_gpuperf.counters.exchange import Collected, CollectedWorkload, Entry, entries
from pytest_gpuperf.counters.locate_ncu import Ncu
from pytest_gpuperf.counters.ncu_command import REPORT, command, environment
from pytest_gpuperf.counters.ncu_failures import recognise, timed_out, unknown_metrics
from pytest_gpuperf.counters.ncu_report import KernelResult, Reader
from pytest_gpuperf.counters.run_ncu import Finished, run
from pytest_gpuperf.counters.unavailable import CountersUnavailable
from pytest_gpuperf.model.evidence import CacheMode, Key
from pytest_gpuperf.model.task import ProfileTask

MOST_STARTS = 6
"""Most starts of one process, each without the metrics that turned out not to exist."""
LOG_LINES = 25


@dataclasses.dataclass(frozen=True)
class Assignment:
    """Metrics to collect, and the command that runs the tests."""

    nodes: tuple[str, ...]
    metrics: tuple[str, ...]
    """Canonical names."""
    cache: CacheMode
    """Cache mode of most workloads."""
    chip: str
    ncu: Ncu
    reader: Reader
    target: Callable[[ProfileTask], list[str]]
    """To the command line that is profiled."""
    working_folder: Path
    locks: Path
    limit_s: float
    watch: Callable[[int, float], None]
    """Called with the number of workloads met and the seconds spent."""


class Collection:
    """The profiled processes of one run, and what they brought so far."""

    def __init__(self, assignment: Assignment, folder: Path) -> None:
        self._do = assignment
        self._folder = folder
        self._deadline = time.monotonic() + assignment.limit_s
        self._starts = 0
        self._missing: dict[str, None] = {}
        """Canonical names that this GPU does not have, in the order found."""
        self._asked: dict[str, None] = dict.fromkeys(assignment.metrics)
        self._found: dict[Key, CollectedWorkload] = {}
        self._notes: list[str] = []
        self._log: tuple[str, ...] = ()
        self._gpu = self._uuid = ""

    def collect(self) -> Collected:
        """Everything.  Raises ``CountersUnavailable`` if there is nothing; what a later process lacks is noted."""
        started = time.monotonic()
        first = ProfileTask(folder=self._folder, nodes=self._do.nodes, cache=self._do.cache, metrics=self._do.metrics)
        put_off = self._process(first)
        for task in _following(put_off, first):
            self._asked.update(dict.fromkeys(task.metrics))
            try:
                self._process(task)
                why = "the process for its metrics and cache mode did not come to it"
            except CountersUnavailable as problem:
                why = str(problem)
            for entry in put_off:
                if entry.cache == task.cache and entry.key not in self._found:
                    self._found[entry.key] = CollectedWorkload(
                        key=entry.key, identity=entry.identity, cache=entry.cache, counters={}, notes=(why,)
                    )
        self._notes += [f"there is no metric {name} on this GPU{metric_request.hint(name)}" for name in self._missing]
        self._notes += self._without_value()
        return Collected(
            gpu=self._gpu, uuid=self._uuid, ncu=str(self._do.ncu), metrics=tuple(self._asked),
            workloads=tuple(self._found.values()), notes=tuple(dict.fromkeys(self._notes)),
            seconds=time.monotonic() - started, processes=self._starts, log=self._log,
        )  # fmt: skip

    def _without_value(self) -> list[str]:
        """Metrics that ncu took and gave no figure for, of any kernel."""
        if not any(one.kernels for one in self._found.values()):
            return []
        own = {name for one in self._found.values() for kernel in one.kernels for name in kernel.metrics}
        given = {canonical(name, self._do.chip) for name in own} | self._missing.keys()
        return [
            f"ncu gave no value for {name}{'' if name in METRICS else metric_request.hint(name)}"
            for name in self._asked
            if name not in given
        ]

    def _process(self, task: ProfileTask) -> list[Entry]:
        """Run one task and keep what it brought; returns what it put off."""
        folder, finished = self._run_without_unknown_metrics(task)
        met = entries(folder)
        report = folder / REPORT
        results = self._do.reader(report, self._do.ncu.path) if report.exists() else []
        if not met or (not results and any(entry.number is not None for entry in met)):
            raise recognise(finished.words, finished.target_words, finished.status, left_report=report.exists())
        if finished.status:
            self._log = tuple(finished.target_words.splitlines()[-LOG_LINES:])
        self._keep(met, results)
        return [entry for entry in met if entry.number is None]

    def _run_without_unknown_metrics(self, task: ProfileTask) -> tuple[Path, Finished]:
        for _ in range(MOST_STARTS):
            names = self._names(task.metrics)
            folder = self._folder / str(self._starts)
            finished = self._run(msgspec.structs.replace(task, folder=folder), names)
            unknown = [canonical(name, self._do.chip) for name in unknown_metrics(finished.words)]
            known = [name for name in task.metrics if name in unknown or name.partition(".")[0] in unknown]
            if not known or (folder / REPORT).exists():
                return folder, finished
            self._missing.update(dict.fromkeys(known))
        raise CountersUnavailable(
            "metrics", f"more than {MOST_STARTS} of the metrics do not exist: {', '.join(self._missing)}",
            "correct their names; ncu --query-metrics lists them",
        )  # fmt: skip

    def _names(self, metrics: Iterable[str]) -> list[str]:
        """The chip's own names of those that it has."""
        own = {name: on_chip(name, self._do.chip) for name in metrics if name not in self._missing}
        self._missing.update(dict.fromkeys(name for name, here in own.items() if here is None))
        names = [here for here in own.values() if here is not None]
        if not names:
            raise CountersUnavailable("metrics", "no metric is left to collect", "ask for one that this GPU has")
        return names

    def _run(self, task: ProfileTask, names: Sequence[str]) -> Finished:
        task.folder.mkdir(parents=True)
        self._starts += 1
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise timed_out(self._do.limit_s)
        target = self._do.target(task)
        return run(
            command(self._do.ncu.path, task.folder, names, task.cache, target), task.folder, self._do.working_folder,
            environment(os.environ, task.folder, self._do.locks), limit_s=left,
            watch=lambda spent: self._do.watch(len(self._found) + len(entries(task.folder)), spent),
        )  # fmt: skip

    def _keep(self, met: Iterable[Entry], results: Sequence[KernelResult]) -> None:
        for entry in met:
            self._gpu, self._uuid = entry.gpu or self._gpu, entry.uuid or self._uuid
            if entry.number is None:
                continue
            kernels = [result for result in results if result.range == entry.number]
            summed = sum_up(kernels, self._do.chip, self._asked)
            self._found[entry.key] = CollectedWorkload(
                key=entry.key, identity=entry.identity, cache=entry.cache, counters=summed.counters,
                kernels=tuple(kernels), notes=summed.notes,
            )  # fmt: skip


def _following(put_off: Sequence[Entry], first: ProfileTask) -> list[ProfileTask]:
    """One more process for each cache mode among what the first one put off."""
    tasks = []
    for cache in dict.fromkeys(entry.cache for entry in put_off):
        those = [entry for entry in put_off if entry.cache == cache]
        own = dict.fromkeys(name for entry in those for name in entry.metrics)
        tasks.append(msgspec.structs.replace(
            first, nodes=tuple(dict.fromkeys(entry.key.node_id for entry in those)), cache=cache,
            metrics=tuple(dict.fromkeys([*first.metrics, *own])), only=tuple(entry.key for entry in those),
        ))  # fmt: skip
    return tasks
