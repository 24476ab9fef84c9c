"""Which workloads an update records, and what becomes of the rounds and counters that were taken for it.

Writes nothing: a run's evidence and the old baselines go in; records come out, and why one is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.lookup import records_stood_for, static_baseline, under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.judge.static_verdict import with_launch_of
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.time_record import Beside, TimeRecord, updated
from pytest_gpuperf.model.verdict import BESIDE, BESIDE_FIELDS
from pytest_gpuperf.options import Options
from pytest_gpuperf.update.modes import takes


def wanted_static(
    store: BaselineStore, accepted: Iterable[TestEvidence], options: Options, timed: Collection[Key] = ()
) -> dict[tuple[str, str, Key], StaticRecord]:
    """Static records to write, by architecture, toolchain and key: of figures that differ from the baseline.

    They are written where their verdict is one that the update takes.  With a workload whose time is recorded anew,
    ``timed``, all that belongs to it goes along: a record of its time is to find that of its code beside it.
    """
    update = {}
    for evidence in accepted:
        for workload in evidence.workloads:
            verdicts = {one.target: one for one in workload.judgements if one.kind == "static"}
            for arch, record in workload.static.items():
                old = static_baseline(store, arch, workload.toolchain, workload, evidence.workloads)
                if _has_label_of_its_own(workload, record):  # then no record of another name stays its baseline
                    old = store.static(arch, workload.key, workload.toolchain).record
                without_code = options.update == "all" and old is not None and not store.has_cubin(old.cubin)
                judged = verdicts.get(arch)
                wanted = workload.key in timed or (judged is not None and takes(judged, options))
                changed = old is not None and _figures(old) != _figures(record, old)
                if old is None or without_code or (changed and wanted and options.update != "new"):
                    for key, known in records_stood_for(store, arch, workload, old, evidence.workloads).items():
                        kept = record if known is None else under_recorded_launch(record, known, arch)
                        update[arch, workload.toolchain, key] = kept
    return update


def _has_label_of_its_own(workload: WorkloadEvidence, record: StaticRecord) -> bool:
    """Whether a kernel that was not launched is called otherwise than by its name, because another one has it."""
    return not workload.launched and workload.key.workload != record.kernel


def _figures(record: StaticRecord, old: StaticRecord | None = None) -> StaticRecord:
    """A record without the hash of its source, cubin and grid: no comment, neighbour or size of data is a change.

    A kernel that this run did not get to launch takes the launch that ``old`` has.
    """
    known = record if old is None or record.block is not None else with_launch_of(record, old)
    return msgspec.structs.replace(known, source_hash="", symbol="", cubin="", grid=None)


def recorded_times(accepted: Iterable[TestEvidence], options: Options) -> list[Recorded]:
    """The times that this update takes, with the counters that this run took of the same code, or why it refuses them.

    A disturbed time is refused unless that is forced.
    """
    found = []
    for evidence in accepted:
        for work in evidence.workloads:
            judged = work.time_judgement
            if judged is None or work.time is None or not takes(judged, options):
                continue
            if work.disturbances and not options.disturbed:
                refused = f"{'; '.join(work.disturbances)}; --gpuperf-disturbed records it all the same"
                found.append(Recorded(key=work.key, target=judged.target, refused=refused))
                continue
            after = msgspec.structs.replace(work.time, sessions=(evidence.session,) if evidence.session else ())
            if work.counters:
                after = msgspec.structs.replace(after, counters=work.counters, counter_ranges=work.counter_ranges)
            found.append(Recorded(key=work.key, target=judged.target, after=after))
    return found


class FiguresTaken(NamedTuple):
    """Figures beside the time of one workload, as an update finds them."""

    target: str
    """The GPU model that they belong to."""
    key: Key
    figures: Beside


def wanted_figures(accepted: Iterable[TestEvidence], options: Options) -> list[FiguresTaken]:
    """Figures that this update takes: those whose verdict is one that it takes."""
    found = []
    for evidence in accepted:
        for work in evidence.workloads:
            judged = [one for one in work.judgements if one.kind in BESIDE and takes(one, options)]
            if judged and work.beside is not None:
                taken = {BESIDE_FIELDS[one.kind]: getattr(work.beside, BESIDE_FIELDS[one.kind]) for one in judged}  # type: ignore[index]
                found.append(FiguresTaken(judged[0].target, work.key, Beside(**taken)))
    return found


def figures_alone(taken: FiguresTaken, before: TimeRecord | None) -> Recorded:
    """Put figures on ``before``, a record whose rounds stay as they are."""
    if before is None:
        refused = "it needs a time on record, and this one has none"
        return Recorded(key=taken.key, target=taken.target, refused=refused)
    after = msgspec.structs.replace(before, beside=updated(before.beside, taken.figures))
    return Recorded(key=taken.key, target=taken.target, before=before, after=after)


class CountersTaken(NamedTuple):
    """A workload's counters, as an update finds them."""

    target: str
    """The GPU model that they belong to."""
    workload: WorkloadEvidence
    replace: bool
    """Whether they take the place of those on record, or only metrics that the record lacks are added."""


def wanted_counters(accepted: Iterable[TestEvidence], options: Options) -> list[CountersTaken]:
    """Workloads with counters that this update may take."""
    return [
        CountersTaken(judgement.target, workload, takes(judgement, options))
        for evidence in accepted
        for workload in evidence.workloads
        for judgement in workload.judgements
        if judgement.kind == "counters" and workload.counters
    ]


def counters_alone(taken: CountersTaken, before: TimeRecord | None) -> Recorded | None:
    """Put this run's counters on ``before``, a record whose rounds stay as they are.

    Counters of other code than was timed are refused: a record is evidence of one machine code.  None if there is
    nothing to write.
    """
    key, target, mine = taken.workload.key, taken.target, taken.workload.identity
    if before is None:
        return Recorded(key=key, target=target, refused="counters need a time on record, and this one has none")
    time, other = taken.workload.time, ""
    if mine is None or not (mine.same_execution(before.identity) or mine == before.identity):
        other = "the code on record is another"
    elif time is not None and time.cache != before.cache:
        other = f"the time on record is of a {before.cache} L2"
    if other:
        refused = f"{other}: --update-baselines=all records its time as well"
        return Recorded(key=key, target=target, before=before, refused=refused) if taken.replace else None
    known, new = Counts.of(before), Counts.of(taken.workload)
    counts = replaced(known, new) if taken.replace else replaced(new, known)
    if counts == known:
        return None
    after = msgspec.structs.replace(before, counters=counts.values, counter_ranges=counts.ranges)
    return Recorded(key=key, target=target, before=before, after=after)
