"""Collect counters of a set of tests: as a rule one profiled process, a second one where one cannot do.

ncu flushes the caches for all kernels of a process or for none, and takes one list of metrics for all: workloads
that want the other cache mode or metrics of their own are put off by the first process and taken by a second.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.counters.catalogue import METRICS, canonical, hint, on_chip
from pytest_gpuperf.counters.exchange import (
    OF_BASELINE,
    RANGE_PREFIX,
    Collected,
    CollectedWorkload,
    Entry,
    entries,
)
from pytest_gpuperf.counters.report import read_report, sum_up
from pytest_gpuperf.counters.run_ncu import (
    REPORT,
    CountersUnavailable,
    Finished,
    Ncu,
    command,
    recognise,
    run,
    unknown_metrics,
)
from pytest_gpuperf.judge.counters import summed_up
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ProfileTask
from pytest_gpuperf.model.time_record import CacheMode

TAKES = 3
"""Times that an update takes its counters, each in processes of its own (docs/how-to/counters.md, "The gate")."""
LOG_LINES = 25


@dataclasses.dataclass
class Collection:
    """The profiled processes of one run: what they collect, the command that runs the tests, and what they brought."""

    folder: Path
    nodes: tuple[str, ...]
    metrics: tuple[str, ...]
    """Canonical names."""
    cache: CacheMode
    """Cache mode of most workloads."""
    chip: str
    ncu: Ncu
    target: Callable[[ProfileTask], list[str]]
    """To the command line that is profiled."""
    working_folder: Path
    limit_s: float
    """Longest time of one process."""

    def __post_init__(self) -> None:
        self._folders = (self.folder / str(number) for number in itertools.count())
        self._missing: dict[str, None] = {}
        """Canonical names that this GPU does not have, in the order found."""
        self._asked: dict[str, None] = dict.fromkeys(self.metrics)
        self._given: set[str] = set()
        """Those that ncu gave a figure for, of any kernel."""
        self._found: dict[Key, CollectedWorkload] = {}
        self._log: tuple[str, ...] = ()
        self._gpu = ""

    def collect(self) -> Collected:
        """Everything.  Raises ``CountersUnavailable`` if there is nothing; what a later process lacks is noted."""
        started = time.monotonic()
        first = ProfileTask(folder=self.folder, nodes=self.nodes, cache=self.cache, metrics=self.metrics)
        put_off = self._process(first)
        workloads = [entry.workload for entry in put_off]
        for task in _following(put_off, first):
            self._asked.update(dict.fromkeys(task.metrics))
            try:
                self._process(task)
            except CountersUnavailable as problem:
                lost = [one for one in workloads if one.cache == task.cache and one.key not in self._found]
                self._found.update((one.key, msgspec.structs.replace(one, notes=(str(problem),))) for one in lost)
        return Collected(
            gpu=self._gpu, ncu=str(self.ncu), workloads=tuple(self._found.values()),
            notes=tuple(self._notes()), seconds=time.monotonic() - started, log=self._log,
        )  # fmt: skip

    def _notes(self) -> list[str]:
        """Metrics that this GPU does not have, and those that ncu took and gave no figure for, of any kernel."""
        missing = [f"there is no metric {name} on this GPU{hint(name)}" for name in self._missing]
        without = [name for name in self._asked if name not in {*self._given, *self._missing}] if self._given else []
        return missing + [f"ncu gave no value for {name}{'' if name in METRICS else hint(name)}" for name in without]

    def _process(self, task: ProfileTask) -> list[Entry]:
        """Run one task and keep what it brought; returns what it put off."""
        folder, finished = self._run(task)
        met, left_report = entries(folder), (folder / REPORT).exists()
        results = read_report(folder / REPORT) if left_report else []
        if not met or (not results and any(entry.number is not None for entry in met)):
            raise recognise(finished.output, finished.target_output, finished.status, left_report=left_report)
        if finished.status:
            self._log = tuple(finished.target_output.splitlines()[-LOG_LINES:])
        self._gpu = met[0].gpu
        for entry in met:
            if entry.number is not None:
                number = str(entry.number)
                own, old = ([one for one in results if one.range == name] for name in (number, number + OF_BASELINE))
                self._given.update(canonical(name, self.chip) for kernel in own for name in kernel.metrics)
                counters, note = sum_up(own, self.chip, self._asked)
                self._found[entry.workload.key] = msgspec.structs.replace(
                    entry.workload, counters=counters, baseline=sum_up(old, self.chip, self._asked)[0],
                    report=str(folder / REPORT), range=RANGE_PREFIX + number, notes=(note,) if note else (),
                )  # fmt: skip
        return [entry for entry in met if entry.number is None]

    def _run(self, task: ProfileTask) -> tuple[Path, Finished]:
        """The folder and the words of a run; ncu is started again without each metric that it does not know."""
        while True:
            folder = next(self._folders)
            folder.mkdir(parents=True)
            own = {name: on_chip(name, self.chip) for name in task.metrics}
            self._missing.update((name, None) for name, here in own.items() if here is None)
            names = [here for name, here in own.items() if here is not None and name not in self._missing]
            if not names:
                raise CountersUnavailable("no metric is left to collect", "ask for one that this GPU has")
            target = self.target(msgspec.structs.replace(task, folder=folder))
            finished = run(
                command(self.ncu.path, folder, names, task.cache, target), folder, self.working_folder,
                limit_s=self.limit_s,
            )  # fmt: skip
            unknown = {canonical(name, self.chip) for name in unknown_metrics(finished.output)}
            found = [name for name in task.metrics if not unknown.isdisjoint((name, name.partition(".")[0]))]
            if self._missing.keys() >= set(found) or (folder / REPORT).exists():
                return folder, finished
            self._missing.update(dict.fromkeys(found))


def _following(put_off: Sequence[Entry], first: ProfileTask) -> list[ProfileTask]:
    """One more process for each cache mode among what the first one put off."""
    tasks = []
    for cache in dict.fromkeys(entry.workload.cache for entry in put_off):
        those = [entry for entry in put_off if entry.workload.cache == cache]
        nodes = dict.fromkeys(entry.workload.key.node_id for entry in those)
        metrics = dict.fromkeys([*first.metrics, *(name for entry in those for name in entry.metrics)])
        tasks.append(msgspec.structs.replace(first, nodes=tuple(nodes), cache=cache, metrics=tuple(metrics)))
    return tasks


def together(takes: Sequence[Collected]) -> Collected:
    """The first take, with the medians of all, and what counters that may gate ranged over."""
    notes = [one for take in takes for one in take.notes]
    return msgspec.structs.replace(
        takes[0], workloads=tuple(_together(one, takes) for one in takes[0].workloads),
        notes=tuple(dict.fromkeys(notes)), seconds=sum(take.seconds for take in takes),
    )  # fmt: skip


def _together(first: CollectedWorkload, takes: Sequence[Collected]) -> CollectedWorkload:
    """Over the takes that ran the code and arguments of the first."""
    found = [one for take in takes if (one := take.of(first.key)) is not None and one.identity == first.identity]
    counts = summed_up([one.counters for one in found])
    ranges = {name: ends for name, ends in counts.ranges.items()
              if name not in METRICS or METRICS[name].tolerance is not None}  # fmt: skip
    return msgspec.structs.replace(first, counters=dict(counts.values), ranges=ranges)
