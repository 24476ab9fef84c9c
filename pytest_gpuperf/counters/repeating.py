"""What several collections of the same tests say together: an update takes its counters more than once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pytest_gpuperf.counters.catalogue import METRICS
from pytest_gpuperf.counters.exchange import Collected, CollectedWorkload
from pytest_gpuperf.judge.takes import summed_up

TAKES = 3
"""Of an update (statistics 3.11), each in processes of its own."""


def together(takes: Sequence[Collected], note: str = "") -> Collected:
    """The first take with the medians of all, and what counters that may gate ranged over; ``note`` is one more."""
    first = takes[0]
    return msgspec.structs.replace(
        first,
        workloads=tuple(_together(one, takes) for one in first.workloads),
        notes=tuple(dict.fromkeys([*(one for take in takes for one in take.notes), *([note] if note else [])])),
        seconds=sum(take.seconds for take in takes),
        processes=sum(take.processes for take in takes),
        log=next((take.log for take in takes if take.log), ()),
    )


def _together(one: CollectedWorkload, takes: Sequence[Collected]) -> CollectedWorkload:
    """Over the takes that ran the same code on the same arguments."""
    found = [take.of(one.key) for take in takes]
    same = [each.counters for each in found if each and each.counters and each.identity == one.identity]
    counts = summed_up(same)
    ranges = {name: ends for name, ends in counts.ranges.items() if _may_gate(name)}
    return msgspec.structs.replace(one, counters=dict(counts.values), ranges=ranges)


def _may_gate(name: str) -> bool:
    return name not in METRICS or METRICS[name].klass != "informational"
