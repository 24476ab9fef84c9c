"""What differs between two states of the baselines, in figures: a description, no verdict.

The figures of machine code and counters, and their order, are those that the gate compares.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pytest_gpuperf.formatting import duration
from pytest_gpuperf.judge import counters
from pytest_gpuperf.judge.counters import Metric
from pytest_gpuperf.judge.static_rules import OCCUPANCY, REGISTERS, SPILL_LOADS, SPILL_STORES
from pytest_gpuperf.judge.static_verdict import differences
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import SecondaryMetrics, TimeRecord, WorkloadRecords, mean_time_ns
from pytest_gpuperf.model.verdict import Change

_ORDER = {rule.what: place for place, rule in enumerate((REGISTERS, SPILL_STORES, SPILL_LOADS, OCCUPANCY))}
"""Figures that a reader asks for first; the others follow in the order of the gate's rules."""


class TargetDiff(NamedTuple):
    """How the records of a workload for one target differ."""

    target: str
    """An architecture, or a GPU model."""
    changes: tuple[Change, ...]
    """Figures of the code, or what was run and how, then counters; empty where other code has the same figures."""
    times_ns: tuple[float, float] | None = None
    """Geometric means of the rounds, before and after; None if the rounds are the same, and of an architecture."""

    @property
    def ratio(self) -> float:
        """After over before; 1 if the rounds are the same."""
        return self.times_ns[1] / self.times_ns[0] if self.times_ns else 1.0


@dataclasses.dataclass(frozen=True)
class WorkloadDiff:
    """A workload that both states have, and that differs."""

    key: Key
    kernel: str
    """Empty for a callable."""
    was: Key | None
    """Its name in the earlier state, if that is another one."""
    targets: tuple[TargetDiff, ...]

    @property
    def severity(self) -> tuple[float, int]:
        """Loss of time to a percent, and how many figures got worse."""
        changes = [change for one in self.targets for change in one.changes]
        slowest = max((1.0, *(one.ratio for one in self.targets)))
        return round(slowest, 2), sum(change.direction == "worse" for change in changes)


@dataclasses.dataclass(frozen=True)
class EvidenceDiff:
    """What differs between two states of the baselines."""

    workloads: tuple[WorkloadDiff, ...]
    new: tuple[Key, ...]
    """Workloads that the later state alone has."""
    removed: tuple[Key, ...]


def compare_evidence(
    before: Mapping[Key, WorkloadRecords], after: Mapping[Key, WorkloadRecords], rules: Sequence[Metric], *,
    renamed: Mapping[Key, Key] = MappingProxyType({}),
) -> EvidenceDiff:  # fmt: skip
    """Compare the records of every workload by name.

    ``rules``: the counters that are known, of which those without a band only inform; others are compared exactly.
    ``renamed``: names of ``before`` by those of ``after``.
    """
    added = after.keys() - before.keys() - renamed.keys()
    lost = before.keys() - after.keys() - set(renamed.values())
    found: list[WorkloadDiff] = []
    for key in sorted(after.keys() - added):
        was = renamed.get(key, key)
        old, now = before[was], after[key]
        targets = (*_code_diffs(old, now), *_run_diffs(old, now, rules))
        if targets or was != key:
            found.append(WorkloadDiff(key, now.kernel or old.kernel, was if was != key else None, targets))
    return EvidenceDiff(tuple(found), tuple(sorted(added)), tuple(sorted(lost)))


# --- machine code --------------------------------------------------------------------------------


def _code_diffs(old: WorkloadRecords, new: WorkloadRecords) -> Iterator[TargetDiff]:
    """One for each architecture and toolchain that differs; what another one made against what came before it."""
    pairs = [(at, at) for at in sorted(old.static.keys() & new.static.keys())]
    for gained in sorted(new.static.keys() - old.static.keys()):
        was = [at for at in sorted(old.static.keys() - new.static.keys()) or sorted(old.static) if at[0] == gained[0]]
        pairs += [(was[-1], gained)] if was else []
    for at, now in pairs:
        before, after = old.static[at], new.static[now]
        changes = [*_texts({"compiler": at[1]}, {"compiler": now[1]}), *_code_changes(before, after)]
        if changes or before.profile.code_hash != after.profile.code_hash:
            yield TargetDiff(now[0], tuple(changes))


def _code_changes(old: StaticRecord, new: StaticRecord) -> list[Change]:
    grids = ["x".join(map(str, one.grid)) if old.grid and new.grid and one.grid else "" for one in (old, new)]
    return [
        *sorted(differences(old, new), key=lambda change: _ORDER.get(change.what, len(_ORDER))),
        *_texts(*({"kernel": one.kernel, "configuration": one.config} for one in (old, new))),
        *_texts(*({"grid": grid} for grid in grids)),
    ]


def _texts(old: Mapping[str, str], new: Mapping[str, str]) -> list[Change]:
    """Of words by name: those that differ."""
    return [
        Change(what=what, before=before or "none", after=new[what] or "none")
        for what, before in old.items()
        if before != new[what]
    ]


# --- runs ----------------------------------------------------------------------------------------


def _run_diffs(old: WorkloadRecords, new: WorkloadRecords, rules: Sequence[Metric]) -> Iterator[TargetDiff]:
    """One for each GPU model that differs; other machine code is said by the static records."""
    gpus = sorted(gpu for gpu in old.times.keys() & new.times.keys() if old.times[gpu] != new.times[gpu])
    found = (_run_diff(gpu, old.times[gpu], new.times[gpu], rules) for gpu in gpus)
    return (one for one in found if one.changes or one.times_ns)


def _run_diff(gpu: str, old: TimeRecord, new: TimeRecord, rules: Sequence[Metric]) -> TargetDiff:
    """Of counters, those that left their bands, the largest relative change first."""
    unknown = sorted(old.counters.keys() - {rule.name for rule in rules})  # a team added them: nobody knows a band
    table = [*rules, *(Metric(name, name, better="neutral") for name in unknown)]
    moved = counters.differences(old.counters, new.counters, table)
    changes = (*_texts(_conditions(old, new), _conditions(new, old)), *sorted(moved, key=_distance, reverse=True))
    times_ns = None if old.rounds == new.rounds else (mean_time_ns(old.rounds), mean_time_ns(new.rounds))
    return TargetDiff(gpu, changes, times_ns)


def _distance(change: Change) -> float:
    """Size of a change of a count, as a distance of logarithms; infinite from or to none."""
    before, after = float(change.before), float(change.after)
    return abs(math.log(after / before)) if before > 0 and after > 0 else math.inf


def _conditions(record: TimeRecord, other: TimeRecord) -> dict[str, str]:
    """What was run, how it was timed, counters that the other lacks, and secondary metrics; empty for none."""
    identity, secondary = record.identity, record.secondary or SecondaryMetrics()
    amounts = {"declared bytes": record.bytes, "declared operations": record.flops}
    host = secondary.host
    return {
        "timer": record.timer, "L2": record.cache, "launch": identity.launch,
        "arguments": ", ".join(identity.arguments),
        "counters": ", ".join(sorted(record.counters.keys() - other.counters.keys())),
        **{name: "" if amount is None else str(amount) for name, amount in amounts.items()},
        "device memory": "" if secondary.memory_bytes is None else f"{secondary.memory_bytes} bytes",
        "error": "" if secondary.accuracy is None else f"{secondary.accuracy:.4g}",
        "host time": f"{duration(host.time_ns)} (x{statistics.median(host.ratios):.4g} of fixed work)" if host else "",
    }  # fmt: skip
