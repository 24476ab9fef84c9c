"""Messages between the profiled process and the one that started it, as files in a folder.

The parent leaves a ``ProfileTask``; the profiled process adds one line per workload to the index, so that a crash
loses nothing of what came before.  Afterwards all is in one ``Collected``.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from pytest_gpuperf.model.evidence import Key, Record
from pytest_gpuperf.model.time_record import CacheMode, Identity

INDEX = "index.jsonl"
RANGE_PREFIX, OF_BASELINE = "gpuperf:", ":baseline"
"""Before a workload's number in names of NVTX ranges: a test's id has characters that mean something in filters.

And behind it, where the machine code of its baseline runs.
"""


class KernelResult(Record, frozen=True):
    """One profiled kernel."""

    kernel: str
    range: str
    """Name of the range around it, without its beginning: ``3`` or ``3:baseline``, of the workload with this number."""
    metrics: dict[str, float]
    """By the chip's own names, in ncu's base units."""


class CollectedWorkload(Record, frozen=True):
    """The counters of one workload."""

    key: Key
    identity: Identity
    cache: CacheMode
    counters: dict[str, float] = msgspec.field(default_factory=dict)
    """By canonical name; empty if there are none."""
    ranges: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Least and most of those that were not the same in every take."""
    baseline: dict[str, float] = msgspec.field(default_factory=dict)
    """The same of the baseline's machine code, which ran in the same process; empty where it did not."""
    baseline_code: str = ""
    """Hash of that code."""
    report: str = ""
    """Path of the report of ncu, whose folder lasts as long as the run."""
    range: str = ""
    """Of the workload in that report: ``gpuperf:3``."""
    notes: tuple[str, ...] = ()
    """Remarks for a reader; where there are no counters, the reason if one is known."""


class Entry(Record, frozen=True):
    """One workload as the profiled process met it."""

    workload: CollectedWorkload
    """Without counters yet."""
    gpu: str
    metrics: tuple[str, ...] = ()
    """The test's own, canonical names."""
    number: int | None = None
    """Number of its range in the report; None if it was put off to another process."""


class Collected(Record, frozen=True):
    """Everything that one run's profiling brought."""

    gpu: str = ""
    """``nvidia-h200``"""
    ncu: str = ""
    """``ncu 2025.3.1.0``"""
    workloads: tuple[CollectedWorkload, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why there are no counters, and what to do; empty if there are."""
    seconds: float = 0.0
    log: tuple[str, ...] = ()
    """The profiled tests' last lines, where not all of them passed."""

    def of(self, key: Key) -> CollectedWorkload | None:
        return next((one for one in self.workloads if one.key == key), None)


def add_entry(folder: Path, entry: Entry) -> None:
    with (folder / INDEX).open("ab") as index:
        index.write(msgspec.json.encode(entry) + b"\n")


def entries(folder: Path) -> list[Entry]:
    """Workloads that the profiled process has met so far; a last line that is still being written is left out."""
    path = folder / INDEX
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [msgspec.json.decode(line, type=Entry) for line in lines]
