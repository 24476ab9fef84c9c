"""Counters against counters: exact ones exactly, near-exact ones by a band, the rest never.

A counter is one number per workload, without scatter to test: each metric comes with the band in which it stays on
unchanged code.  Where several takes of equal code differed all the same, because blocks compete for work or data are
placed elsewhere, the band is three times that difference, and at least 1 % (docs/how-to/counters.md, "The gate").
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.judge.same_work import LAUNCH_CHANGED, other_arguments
from pytest_gpuperf.judge.static_rules import less_is_better, more_is_better
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict

Better = Literal["lower", "higher", "neutral"]

LEAST_BAND = 0.01
RANGE_SHARE = 3.0
MOST_LISTED = 3
"""Metrics that a note names."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric, and how it is compared."""

    name: str
    what: str
    """As a reader knows it: ``DRAM bytes read``."""
    unit: str = ""
    better: Better = "lower"
    """Which way is better; a ``neutral`` metric never gates."""
    tolerance: float | None = 0.0
    """Relative change that is none; None: the metric informs and never gates."""
    floor: float = 0.0
    """Absolute change that is none, in the metric's unit."""

    @property
    def klass(self) -> Literal["exact", "near-exact", "informational"]:
        """Exact metrics have no floor, informational ones no band at all."""
        return "informational" if self.tolerance is None else "near-exact" if self.floor else "exact"

    def beyond(self, before: float, after: float) -> bool:
        return abs(after - before) > max(self.floor, (self.tolerance or 0.0) * abs(before))

    def change(self, before: float, after: float) -> Change:
        trend = more_is_better if self.better == "higher" else less_is_better
        return Change(
            what=self.what, before=before, after=after, unit=self.unit,
            direction="neutral" if self.better == "neutral" else trend(before, after),
            note=f"{(after / before - 1) * 100:+.2f} %" if before else "",
        )  # fmt: skip


def compare_counters(
    target: str, old: TimeRecord | None, new: WorkloadEvidence, metrics: Sequence[Metric], notes: Sequence[str] = ()
) -> Judgement:
    """Judge the counters of ``new`` against those of the record, each by canonical name.

    Metrics that only one side has are named in the notes.  A record without counters is NEW, other work, another cache
    state or nothing to compare are NOT-COMPARABLE.
    """
    judgement = functools.partial(Judgement, key=new.key, target=target, kind="counters")
    if old is None or not old.counters:
        reason = "no recorded counters: record them with pytest --update-baselines --gpuperf-ncu"
        return judgement(verdict=Verdict.NEW, reason=reason, notes=tuple(notes))
    gated = [one for one in metrics if one.tolerance is not None]
    why = _incomparable_reason(old, new)
    if not why and not any(one.name in old.counters and one.name in new.counters for one in gated):
        why = "no gated metric was both recorded and collected"
    if why:
        reason = f"{why}: record them again with pytest --update-baselines --gpuperf-ncu"
        return judgement(verdict=Verdict.NOT_COMPARABLE, reason=reason, notes=tuple(notes))
    was, now = old.counters, new.counters
    changes = differences(was, now, gated)
    verdict, reason = _verdict(changes)
    missing = _listed("recorded and not collected by this run", gated, was, now)
    added = _listed("collected and not recorded yet (--update-baselines=new --gpuperf-ncu adds them)", gated, now, was)
    return judgement(verdict=verdict, reason=reason, changes=changes, notes=(*notes, *missing, *added))


def differences(old: Mapping[str, float], new: Mapping[str, float], metrics: Iterable[Metric]) -> tuple[Change, ...]:
    """Counters of both sides that left their bands; those that only inform have none."""
    both = [one for one in metrics if one.tolerance is not None and one.name in old and one.name in new]
    pairs = [(one, old[one.name], new[one.name]) for one in both]
    return tuple(one.change(was, now) for one, was, now in pairs if one.beyond(was, now))


def not_counted(key: Key, target: str, reason: str) -> Judgement:
    return Judgement(key=key, target=target, kind="counters", verdict=Verdict.NOT_MEASURED, reason=reason)


def _verdict(changes: Sequence[Change]) -> tuple[Verdict, str]:
    for verdict, word in ((Verdict.WORSE, "worse"), (Verdict.BETTER, "better")):
        named = [change.what for change in changes if change.direction == word]
        if named:
            return verdict, f"the counters got {word}: {', '.join(named)}"
    return Verdict.UNCHANGED, ""


def _incomparable_reason(old: TimeRecord, new: WorkloadEvidence) -> str:
    """Why two sets of counters are not of the same work; empty if they are."""
    before, after = old.identity, new.identity or old.identity
    if old.cache != new.cache:
        return f"the recorded counters are of a {old.cache} L2, the new ones of a {new.cache} L2"
    if before.launch != after.launch:
        return f"{LAUNCH_CHANGED} from {before.launch} to {after.launch}"
    return "; ".join(other_arguments(before, after))


def _listed(what: str, gated: Sequence[Metric], one: Mapping[str, float], other: Mapping[str, float]) -> Iterator[str]:
    """A note on metrics that one side alone has: all of a few, and the first of many."""
    names = [metric.what for metric in gated if metric.name in one and metric.name not in other]
    if names:
        yield f"{what}: {first_of(names, MOST_LISTED)}"


@dataclasses.dataclass(frozen=True)
class Counts:
    """Counters by name, and the least and most of those that differ from take to take."""

    values: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, record: TimeRecord | WorkloadEvidence) -> Counts:
        return cls(record.counters, record.counter_ranges)


def summed_up(takes: Sequence[Mapping[str, float]]) -> Counts:
    """The median of each counter over the takes that have it, and what it ranged over if it was not always the same."""
    names = dict.fromkeys(name for take in takes for name in take)
    found = {name: [take[name] for take in takes if name in take] for name in names}
    ranges = {name: (min(values), max(values)) for name, values in found.items() if min(values) < max(values)}
    return Counts({name: statistics.median(values) for name, values in found.items()}, ranges)


def replaced(old: Counts, new: Counts) -> Counts:
    """The newer counts, with those of the old that they lack."""
    ranges = {name: ends for name, ends in old.ranges.items() if name not in new.values}
    return Counts({**old.values, **new.values}, {**ranges, **new.ranges})


def widened(metrics: Iterable[Metric], old: Counts) -> Iterator[Metric]:
    """The metrics with bands for what is known to scatter; those that inform only stay as they are."""
    for metric in metrics:
        if metric.tolerance is None or metric.name not in old.ranges:
            yield metric
            continue
        least, most = old.ranges[metric.name]
        band, middle = RANGE_SHARE * (most - least), abs(old.values.get(metric.name, 0.0))
        if middle:
            yield dataclasses.replace(metric, tolerance=max(metric.tolerance, LEAST_BAND, band / middle))
        else:
            yield dataclasses.replace(metric, floor=max(metric.floor, band))
