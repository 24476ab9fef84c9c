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

from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.counters.chip_names import canonical, on_chip
from pytest_gpuperf.counters.exchange import Collected, CollectedWorkload, Entry, KernelResult, entries
from pytest_gpuperf.counters.failures import CountersUnavailable, recognise, timed_out, unknown_metrics
from pytest_gpuperf.counters.metric_request import hint
from pytest_gpuperf.counters.report import Reader, sum_up
from pytest_gpuperf.counters.run_ncu import REPORT, Finished, Ncu, command, environment, run
from pytest_gpuperf.judge.counters import summed_up
from pytest_gpuperf.model.evidence import CacheMode, Key
from pytest_gpuperf.model.task import ProfileTask

TAKES = 3
"""Times that an update takes its counters, each in processes of its own (docs/how-to/counters.md, "The gate")."""
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
        self._log: tuple[str, ...] = ()
        self._gpu = self._uuid = ""

    def collect(self) -> Collected:
        """Everything.  Raises ``CountersUnavailable`` if there is nothing; what a later process lacks is noted."""
        started = time.monotonic()
        first = ProfileTask(folder=self._folder, nodes=self._do.nodes, cache=self._do.cache, metrics=self._do.metrics)
        put_off = self._process(first)
        for task in _following(put_off, first):
            self._asked.update(dict.fromkeys(task.metrics))
            why = "the process for its metrics and cache mode did not come to it"
            try:
                self._process(task)
            except CountersUnavailable as problem:
                why = str(problem)
            for entry in put_off:
                if entry.cache == task.cache and entry.key not in self._found:
                    self._found[entry.key] = entry.collected({}, why)
        return Collected(
            gpu=self._gpu, uuid=self._uuid, ncu=str(self._do.ncu), metrics=tuple(self._asked),
            workloads=tuple(self._found.values()), notes=tuple(dict.fromkeys(self._notes())),
            seconds=time.monotonic() - started, processes=self._starts, log=self._log,
        )  # fmt: skip

    def _notes(self) -> list[str]:
        """Metrics that this GPU does not have, and those that ncu took and gave no figure for, of any kernel."""
        missing = [f"there is no metric {name} on this GPU{hint(name)}" for name in self._missing]
        own = {name for one in self._found.values() for kernel in one.kernels for name in kernel.metrics}
        if not any(one.kernels for one in self._found.values()):
            return missing
        given = {canonical(name, self._do.chip) for name in own} | self._missing.keys()
        without = [name for name in self._asked if name not in given]
        return missing + [f"ncu gave no value for {name}{'' if name in METRICS else hint(name)}" for name in without]

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
        """The folder and the words of a run; ncu is started again without each metric that it does not know."""
        while True:
            names = self._names(task.metrics)
            folder = self._folder / str(self._starts)
            finished = self._run(msgspec.structs.replace(task, folder=folder), names)
            unknown = [canonical(name, self._do.chip) for name in unknown_metrics(finished.words)]
            known = [name for name in task.metrics if name in unknown or name.partition(".")[0] in unknown]
            if self._missing.keys() >= set(known) or (folder / REPORT).exists():
                return folder, finished
            self._missing.update(dict.fromkeys(known))

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
        return run(
            command(self._do.ncu.path, task.folder, names, task.cache, self._do.target(task)), task.folder,
            self._do.working_folder, environment(os.environ, task.folder, self._do.locks), limit_s=left,
            watch=lambda spent: self._do.watch(len(self._found) + len(entries(task.folder)), spent),
        )  # fmt: skip

    def _keep(self, met: Iterable[Entry], results: Sequence[KernelResult]) -> None:
        for entry in met:
            self._gpu, self._uuid = entry.gpu or self._gpu, entry.uuid or self._uuid
            if entry.number is not None:
                kernels = tuple(result for result in results if result.range == entry.number)
                counters, note = sum_up(kernels, self._do.chip, self._asked)
                self._found[entry.key] = entry.collected(counters, note, kernels)


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


def together(takes: Sequence[Collected], note: str = "") -> Collected:
    """The medians of all takes, and what counters that may gate ranged over; ``note`` is one more."""
    keys = dict.fromkeys(one.key for take in takes for one in take.workloads)
    notes = [*(one for take in takes for one in take.notes), *([note] if note else [])]
    return msgspec.structs.replace(
        takes[0], workloads=tuple(_together(key, takes) for key in keys), notes=tuple(dict.fromkeys(notes)),
        seconds=sum(take.seconds for take in takes), processes=sum(take.processes for take in takes),
        log=next((take.log for take in takes if take.log), ()),
    )  # fmt: skip


def _together(key: Key, takes: Sequence[Collected]) -> CollectedWorkload:
    """Over the takes that ran the code and arguments of the first one that has counters."""
    found = [one for take in takes if (one := take.of(key)) is not None]
    first = next((one for one in found if one.counters), found[0])
    same = [one.counters for one in found if one.counters and one.identity == first.identity]
    if not same:
        return first
    counts = summed_up(same)
    ranges = {name: ends for name, ends in counts.ranges.items()
              if name not in METRICS or METRICS[name].tolerance is not None}  # fmt: skip
    fewer = (f"counted in {len(same)} of {len(takes)} takes",) if len(same) < len(takes) else ()
    return msgspec.structs.replace(first, counters=dict(counts.values), ranges=ranges, notes=(*first.notes, *fewer))
