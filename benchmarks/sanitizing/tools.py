"""One tool of compute-sanitizer over the example suite: in which processes, and what it leaves open."""

from __future__ import annotations

import collections
import dataclasses
import json
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sanitizing.kernels import SUITE, shared_kernels, timed_kernels
from sanitizing.launches import FILE
from sanitizing.process import ROOT, Setting, Watched, watch

TOOLS = ("memcheck", "racecheck", "synccheck")
PROCESSES = {"memcheck": 6}
"""Processes that share a tool's tests; one where it is not named.

A single memcheck over all 204 tests of the suite runs out of an H200's 139 GiB after some 160 of them, and hangs.
"""
BASELINES = ROOT / "baselines"
BY_THE_CLOCK = frozenset(
    f"{SUITE}/{test}"
    for test in (
        "test_bank_conflicts.py::test_cycles_of_a_load",
        "test_hardware_facts.py::test_lanes_of_an_sm",
        "test_hardware_facts.py::test_what_a_load_costs",
        "test_kernel_a_latency.py::test_cycles_of_an_addition",
        "test_latency_hiding_chart.py::test_warps_or_chains_keep_a_scheduler_busy",
    )
)
"""Tests that read the SM's clock, which a tool slows down: they may fail by their own assertions."""
_CONTROL_LIMIT_S = 120.0
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "sanitizing.launches")
_ALL_RUN = (0, 1)
"""pytest's exit statuses when every test was run, passed or not."""


@dataclasses.dataclass(frozen=True)
class Shard:
    """What one process left of its share of the tests."""

    name: str
    watched: Watched
    notes: dict[str, Any] | None
    """Of ``sanitizing.launches``; None if pytest did not come to its end."""

    @property
    def ended(self) -> bool:
        return self.watched.errors is not None and self.notes is not None and self.notes["status"] in _ALL_RUN


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a tool said of the suite."""

    tool: str
    version: str
    seconds: float
    control: int | None
    """Errors reported of a kernel that is wrong; None if the tool did not end."""
    processes: int
    """That the tests were shared by."""
    unfinished: tuple[str, ...]
    """Those that left no summary, or in which pytest did not run all its tests."""
    errors: int | None
    """Errors reported of the suite; None if there is an unfinished process."""
    internal: tuple[str, ...]
    """Errors of the tool itself, each with its log's name."""
    gpu: str | None
    """None if a process had none, or left no word of it."""
    driver: str | None
    launches: dict[str, int]
    """By kernel."""
    missed: tuple[str, ...]
    """Kernels that it had to see, and that were not launched."""
    failed: dict[str, str]
    """Tests that failed under the tool though they do not read a clock, with the reason."""

    @property
    def problems(self) -> list[str]:
        """Why this is no clean bill; empty if it is one."""
        found = []
        if not self.control:
            found.append("reports nothing of a kernel that is wrong: its word means nothing here")
        if self.errors is None:
            where = ", ".join(self.unfinished)
            found.append(f"did not come to its end in {where} ({self.seconds:.0f} s in all): see the .log and the .out")
        elif self.errors:
            found.append(f"reports {self.errors} errors")
        if self.internal:
            found.append(f"lost track of launches, internal errors: {len(self.internal)}, first {self.internal[0]}")
        if self.gpu is None and self.errors is not None:
            found.append("there was no GPU")
        if self.missed:
            found.append(f"did not see {', '.join(self.missed)}")
        found += [f"{test} failed: {reason}" for test, reason in self.failed.items()]
        return found


def check(
    tool: str, setting: Setting, folder: Path, baselines: Path = BASELINES, files: Collection[str] = ()
) -> Outcome:
    """Run one tool over a kernel that is wrong, and then over the suite; logs and output stay in ``folder``.

    ``files`` are the suite's test files to run, all where there are none.
    """
    tests, wanted = _work(tool, baselines, files)
    target = ["-m", "sanitizing.control", tool]
    control = watch(setting, tool, folder / f"{tool}-control", target, min(setting.limit_s, _CONTROL_LIMIT_S), {})
    start = time.monotonic()

    def shard(number: int, share: Sequence[str]) -> Shard:
        """A process of its own, in what is left of the tool's time."""
        stem = folder / f"{tool}-{number}"
        launches = folder / f"{stem.name}-launches.json"
        launches.unlink(missing_ok=True)
        left_s = start + setting.limit_s - time.monotonic()
        watched = watch(setting, tool, stem, [*_PYTEST, *share], left_s, {FILE: str(launches)})
        notes = json.loads(launches.read_text(encoding="utf-8")) if launches.exists() else None
        return Shard(stem.name, watched, notes)

    shares = deal(tests, PROCESSES.get(tool, 1))
    # One after the other: of two side by side on an H200, one saw copies on several streams come too late.
    shards = [shard(number, share) for number, share in enumerate(shares, 1)]
    return _outcome(tool, setting.version(), time.monotonic() - start, control, shards, wanted)


def deal(tests: Sequence[str], count: int) -> list[list[str]]:
    """At most ``count`` shares, none empty.  Files are dealt out in turn by name: neighbours, often alike, part."""
    files = sorted({_file(test) for test in tests})
    return [[test for test in tests if _file(test) in files[first::count]] for first in range(min(count, len(files)))]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _work(tool: str, baselines: Path, files: Collection[str]) -> tuple[list[str], set[str]]:
    """The tests to run, and the kernels that have to be seen."""
    if tool == "memcheck":
        found = sorted(file for file in (ROOT / SUITE).rglob("test_*.py") if not files or file.name in files)
        return [file.relative_to(ROOT).as_posix() for file in found], timed_kernels(baselines, files)
    shared = shared_kernels(baselines, files)
    return list(dict.fromkeys(test for one in shared for test in one.tests)), {one.name for one in shared}


def _outcome(
    tool: str, version: str, seconds: float, control: Watched, shards: Sequence[Shard], wanted: Collection[str]
) -> Outcome:
    unfinished = tuple(shard.name for shard in shards if not shard.ended)
    notes = [shard.notes for shard in shards if shard.notes is not None]
    launches: collections.Counter[str] = collections.Counter()
    for note in notes:
        launches.update(note["launches"])
    failed = {test: reason for note in notes for test, reason in note["failed"].items() if test not in BY_THE_CLOCK}
    with_gpu = len(notes) == len(shards) and all(note["gpu"] for note in notes)
    return Outcome(
        tool=tool, version=version, seconds=seconds, control=control.errors, processes=len(shards),
        unfinished=unfinished, errors=None if unfinished else sum(shard.watched.errors or 0 for shard in shards),
        internal=control.internal + tuple(line for shard in shards for line in shard.watched.internal),
        gpu=notes[0]["gpu"] if with_gpu else None, driver=notes[0]["driver"] if with_gpu else None,
        launches=dict(sorted(launches.items())), missed=tuple(sorted(set(wanted) - set(launches))), failed=failed,
    )  # fmt: skip
