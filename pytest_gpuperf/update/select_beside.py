"""Which figures beside the time an update records, and from which processes they are.

What one run finds exactly, memory and error, is of the run that updates; times of the CPU are of the recording
processes, one ratio of each.  A figure leaves the record only when another takes its place.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.model.beside_figures import Beside, HostTime, updated
from pytest_gpuperf.model.evidence import Key, TimeRecord
from pytest_gpuperf.model.result import Recorded, WorkloadEvidence
from pytest_gpuperf.model.result import TestEvidence as Evidence
from pytest_gpuperf.model.verdict import BESIDE, BesideEvidence
from pytest_gpuperf.update.modes import takes
from pytest_gpuperf.update.record import ProcessRecord, by_workload


class BesideTaken(NamedTuple):
    """Figures of one workload that an update takes."""

    target: str
    """The GPU model that they belong to."""
    workload: WorkloadEvidence
    kinds: tuple[BesideEvidence, ...]

    @property
    def wants_processes(self) -> bool:
        return "host" in self.kinds


def wanted_beside(accepted: Iterable[Evidence], options: Options) -> list[BesideTaken]:
    """Workloads with figures that this update takes: those whose verdict is one that it takes."""
    found = []
    for evidence in accepted:
        for work in evidence.workloads:
            judged = [one for one in work.judgements if one.kind in BESIDE and takes(one, options)]
            if judged and work.beside is not None:
                kinds = tuple(kind for kind in BESIDE if any(one.kind == kind for one in judged))
                found.append(BesideTaken(judged[0].target, work, kinds))
    return found


def figures_of(taken: BesideTaken, found: Sequence[WorkloadEvidence], processes: int) -> Beside | str:
    """What goes on record, where so many ``processes`` found this of it; or why a time of the CPU cannot."""
    mine = taken.workload.beside or Beside()
    figures = Beside(
        memory_bytes=mine.memory_bytes if "memory" in taken.kinds else None,
        accuracy=mine.accuracy if "accuracy" in taken.kinds else None,
    )
    each = [work.beside for work in found if work.beside is not None]
    if "host" not in taken.kinds:
        return figures
    times = [one.host for one in each if one.host is not None]
    if len(times) < processes or not times:
        return "its host time was not taken in every recording process"
    return msgspec.structs.replace(figures, host=together(times))


def together(times: Sequence[HostTime]) -> HostTime:
    """Of several processes: all their ratios."""
    ratios = tuple(ratio for one in times for ratio in one.ratios)
    return msgspec.structs.replace(times[0], ratios=ratios, time_ns=statistics.median(one.time_ns for one in times))


def recorded_beside(
    taken: Sequence[BesideTaken], records: Sequence[ProcessRecord], before: Mapping[tuple[str, Key], TimeRecord | None],
    timed: Collection[tuple[str, Key]],
) -> tuple[dict[tuple[str, Key], Beside], list[Recorded]]:  # fmt: skip
    """What to write, by GPU model and workload, and a row for each whose time is not in this update anyway.

    ``before`` are the records that there are, ``timed`` the workloads whose time this update records.
    """
    update: dict[tuple[str, Key], Beside] = {}
    rows, found = [], by_workload(records)
    for one in taken:
        place = one.target, one.workload.key
        old, figures = before.get(place), figures_of(one, found.get(one.workload.key, ()), len(records))
        if isinstance(figures, str) or (old is None and place not in timed):
            why = figures if isinstance(figures, str) else "it needs a time on record, and this one has none"
            rows.append(Recorded(key=place[1], target=place[0], before=old, refused=why))
            continue
        update[place] = figures
        if place not in timed and old is not None:
            after = msgspec.structs.replace(old, beside=updated(old.beside, figures))
            rows.append(Recorded(key=place[1], target=place[0], before=old, after=after))
    return update, rows
