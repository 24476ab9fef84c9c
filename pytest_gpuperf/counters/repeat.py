"""Counters of several collections of the same tests, combined: an update takes its counters more than once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.counters.exchange import Collected, CollectedWorkload
from pytest_gpuperf.judge.counter_scatter import summed_up
from pytest_gpuperf.model.evidence import Key

TAKES = 3
"""Times that an update takes its counters, each in processes of its own (docs/how-to/counters.md, "The gate")."""


def together(takes: Sequence[Collected], note: str = "") -> Collected:
    """The medians of all takes, and what counters that may gate ranged over; ``note`` is one more."""
    keys = dict.fromkeys(one.key for take in takes for one in take.workloads)
    return msgspec.structs.replace(
        takes[0],
        workloads=tuple(_together(key, takes) for key in keys),
        notes=tuple(dict.fromkeys([*(one for take in takes for one in take.notes), *([note] if note else [])])),
        seconds=sum(take.seconds for take in takes),
        processes=sum(take.processes for take in takes),
        log=next((take.log for take in takes if take.log), ()),
    )


def _together(key: Key, takes: Sequence[Collected]) -> CollectedWorkload:
    """Over the takes that ran the code and arguments of the first one that has counters."""
    found = [one for take in takes if (one := take.of(key)) is not None]
    counted = [one for one in found if one.counters]
    if not counted:
        return found[0]
    first = counted[0]
    same = [one.counters for one in counted if one.identity == first.identity]
    counts = summed_up(same)
    informs = {name for name, metric in METRICS.items() if metric.klass == "informational"}
    ranges = {name: ends for name, ends in counts.ranges.items() if name not in informs}
    fewer = (f"counted in {len(same)} of {len(takes)} takes",) if len(same) < len(takes) else ()
    return msgspec.structs.replace(first, counters=dict(counts.values), ranges=ranges, notes=(*first.notes, *fewer))
