"""What differs between two states of the baselines, in figures: a description, no verdict.

The figures of machine code and counters, and their order, are those that the gate compares.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.judge.code_diff import CodeDiff, code_diffs
from pytest_gpuperf.judge.counters import Metric
from pytest_gpuperf.judge.moved_workloads import moved_workloads, renamed_and_changed
from pytest_gpuperf.judge.run_diff import RunDiff, run_diffs
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.workload_records import WorkloadRecords

_NOTHING = WorkloadRecords({}, {})


@dataclasses.dataclass(frozen=True)
class WorkloadDiff:
    """A workload that both states have, and that differs."""

    key: Key
    kernel: str
    """Empty for a callable."""
    was: Key | None
    """Its name in the earlier state, if that is another one."""
    code: tuple[CodeDiff, ...]
    runs: tuple[RunDiff, ...]

    @property
    def severity(self) -> tuple[float, int]:
        """Loss of time to a percent, and how many figures got worse."""
        slowest = max((run.ratio for run in self.runs), default=1.0)
        changes = (change for one in self.code for change in one.changes)
        counted = (change for run in self.runs for change in run.counters)
        worse = sum(change.direction == "worse" for change in (*changes, *counted))
        return round(max(slowest, 1.0), 2), worse


class Listed(NamedTuple):
    """A workload that one state alone has."""

    key: Key
    kernel: str


class Coverage(NamedTuple):
    """Records for one target that workloads of both states have in one of them alone."""

    target: str
    toolchain: str
    """Empty for a GPU model."""
    added: bool
    workloads: int


@dataclasses.dataclass(frozen=True)
class EvidenceDiff:
    """What differs between two states of the baselines."""

    workloads: tuple[WorkloadDiff, ...]
    new: tuple[Listed, ...]
    gone: tuple[Listed, ...]
    coverage: tuple[Coverage, ...]
    unseen: int
    """Workloads whose records differ in nothing that is compared: hashes of sources and cubins."""


def compare_evidence(
    before: Mapping[Key, WorkloadRecords],
    after: Mapping[Key, WorkloadRecords],
    rules: Sequence[Metric],
    *,
    elsewhere: Collection[Key] = frozenset(),
) -> EvidenceDiff:
    """Compare the records of every workload by name.

    ``rules``: the counters that are known, of which those without a band only inform; others are compared exactly.
    ``elsewhere``: workloads that have records which are the same in both states and are in neither mapping.
    """
    new = {key: after[key] for key in after if key not in before and key not in elsewhere}
    gone = {key: before[key] for key in before if key not in after and key not in elsewhere}
    moved = moved_workloads(gone, new)
    left = {key: gone[key] for key in gone.keys() - set(moved.values())}
    moved |= renamed_and_changed(left, {key: new[key] for key in new.keys() - moved.keys()})
    new = {key: new[key] for key in sorted(new.keys() - moved.keys())}
    coverage: Counter[tuple[str, str, bool]] = Counter()
    found: list[WorkloadDiff] = []
    unseen = 0
    for key in sorted({*before, *after} - new.keys() - gone.keys()):
        was = moved.get(key, key)
        old, now = before.get(was, _NOTHING), after.get(key, _NOTHING)
        coverage.update(_coverage(old, now))
        code = code_diffs(key, old, now)
        runs = run_diffs(key, old, now, rules, code_told=bool(code))
        if code or runs or was != key:
            kernel = now.kernel or old.kernel
            found.append(WorkloadDiff(key, kernel, was if was != key else None, code, runs))
        else:
            unseen += _differ(old, now)
    lost = sorted(gone.keys() - set(moved.values()))
    return EvidenceDiff(
        workloads=tuple(found),
        new=tuple(Listed(key, records.kernel) for key, records in new.items()),
        gone=tuple(Listed(key, gone[key].kernel) for key in lost),
        coverage=tuple(Coverage(*what, count) for what, count in sorted(coverage.items())),
        unseen=unseen,
    )


def _differ(old: WorkloadRecords, new: WorkloadRecords) -> bool:
    """Whether any record of both is not the same."""
    static = any(old.static[at] != new.static[at] for at in old.static.keys() & new.static.keys())
    return static or any(old.times[gpu] != new.times[gpu] for gpu in old.times.keys() & new.times.keys())


def _coverage(old: WorkloadRecords, new: WorkloadRecords) -> Iterator[tuple[str, str, bool]]:
    for arch, toolchain in old.static.keys() ^ new.static.keys():
        yield arch, toolchain, (arch, toolchain) in new.static
    for gpu in old.times.keys() ^ new.times.keys():
        yield gpu, "", gpu in new.times
