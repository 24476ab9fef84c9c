"""Several takes of the same counters: what they say together, and how wide a band their scatter asks for.

Where all takes agree, a counter is as exact as its class says.  Where they do not, because blocks compete for work
or data are placed elsewhere, the band is three times what they differed by, and at least 1 % (see
docs/how-to/counters.md, "The gate").
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence

from pytest_gpuperf.judge.counter_verdict import PASSES, CounterRule, depends_on_caches, same_passes
from pytest_gpuperf.model.evidence import CacheMode, TimeRecord
from pytest_gpuperf.model.result import WorkloadEvidence

Ranges = Mapping[str, tuple[float, float]]
"""Least and most of the counters that were not the same in all takes."""

LEAST_BAND = 0.01
RANGE_SHARE = 3.0


@dataclasses.dataclass(frozen=True)
class Counts:
    """Counters by name, and the ranges of those that differ from take to take."""

    values: Mapping[str, float]
    ranges: Ranges = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, record: TimeRecord | WorkloadEvidence) -> Counts:
        return cls(record.counters, record.counter_ranges)


def summed_up(takes: Sequence[Mapping[str, float]]) -> Counts:
    """The median of each counter over the takes that have it, and what it ranged over if it was not always the same."""
    found: dict[str, list[float]] = {}
    for take in takes:
        for name, value in take.items():
            found.setdefault(name, []).append(value)
    ranges = {name: (min(values), max(values)) for name, values in found.items() if min(values) < max(values)}
    return Counts({name: statistics.median(values) for name, values in found.items()}, ranges)


def replaced(old: Counts, new: Counts, cache: CacheMode) -> Counts:
    """The newer counts, with those of the old that they lack, but for traffic of a warm workload in other passes."""
    if not new.values:
        return old
    foreign = cache == "warm" and not same_passes(old.values.get(PASSES), new.values.get(PASSES))
    kept = {
        name: value
        for name, value in old.values.items()
        if name not in new.values and not (foreign and depends_on_caches(name))
    }
    ranges = {name: ends for name, ends in old.ranges.items() if name in kept}
    return Counts({**kept, **new.values}, {**ranges, **new.ranges})


def widened(rules: Iterable[CounterRule], old: Counts) -> list[CounterRule]:
    """The rules with bands for what is known to scatter; those that inform only stay as they are."""
    return [_widened(rule, old) for rule in rules]


def _widened(rule: CounterRule, old: Counts) -> CounterRule:
    middle = abs(old.values.get(rule.name, 0.0))
    if rule.tolerance is None or rule.name not in old.ranges:
        return rule
    least, most = old.ranges[rule.name]
    if not middle:
        return dataclasses.replace(rule, floor=max(rule.floor, RANGE_SHARE * (most - least)))
    return dataclasses.replace(rule, tolerance=max(rule.tolerance, LEAST_BAND, RANGE_SHARE * (most - least) / middle))
