"""Which workloads an update records, and what becomes of the rounds and counters that were taken for it.

Writes nothing: a run's evidence and the old baselines go in; records come out, and why one is refused.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.lookup import records_stood_for, static_baseline
from pytest_gpuperf.baselines.recorded_launch import under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.config.options import Options
from pytest_gpuperf.judge.counter_scatter import Counts, replaced
from pytest_gpuperf.judge.static_verdict import with_launch_of
from pytest_gpuperf.model.evidence import Key, Session, StaticRecord, TimeRecord
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence
from pytest_gpuperf.update.modes import takes
from pytest_gpuperf.update.record import ProcessRecord, by_workload

OTHER_WORK = (
    "the recording processes ran other code or arguments than this run: seed what is random, and do not edit meanwhile"
)


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


def wanted_times(accepted: Iterable[TestEvidence], options: Options) -> dict[Key, WorkloadEvidence]:
    """Timed workloads that this update records."""
    return {
        workload.key: workload
        for evidence in accepted
        for workload in evidence.workloads
        if (judged := workload.time_judgement) is not None
        if takes(judged, options)
    }


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


def with_counters(recorded: Recorded, workload: WorkloadEvidence | None) -> Recorded:
    """A newly recorded time with the counters that this run took of the same code."""
    if workload is None or not isinstance(recorded.after, TimeRecord):
        return recorded
    if not workload.counters or workload.identity != recorded.after.identity:
        return recorded
    counts = {"counters": workload.counters, "counter_ranges": workload.counter_ranges}
    return msgspec.structs.replace(recorded, after=msgspec.structs.replace(recorded.after, **counts))


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
    counts = replaced(known, new, before.cache) if taken.replace else replaced(new, known, before.cache)
    if counts == known:
        return None
    after = msgspec.structs.replace(before, counters=counts.values, counter_ranges=counts.ranges)
    return Recorded(key=key, target=target, before=before, after=after)


def merge(
    records: Sequence[ProcessRecord], wanted: Iterable[WorkloadEvidence], options: Options
) -> tuple[Session, list[Recorded]]:
    """Put the rounds of all processes together, workload by workload; ``wanted`` are as this run found them."""
    session = msgspec.structs.replace(records[0].session, processes=len(records), canaries=_canaries(records))
    found = by_workload(records)
    return session, [_merge_one(records, mine, found.get(mine.key, ()), session, options) for mine in wanted]


def _canaries(records: Sequence[ProcessRecord]) -> dict[str, float]:
    """The median time of each over the processes."""
    each = [record.session.canaries for record in records]
    names = dict.fromkeys(name for canaries in each for name in canaries)
    return {name: statistics.median(times[name] for times in each if name in times) for name in names}


def _merge_one(
    records: Sequence[ProcessRecord], mine: WorkloadEvidence, found: Sequence[WorkloadEvidence], session: Session,
    options: Options,
) -> Recorded:  # fmt: skip
    key = mine.key
    slug = records[0].device.slug
    parts = [workload.time for workload in found if workload.time is not None]
    if len(parts) < len(records):
        why = next((f": {record.failures[key.node_id]}" for record in records if key.node_id in record.failures), "")
        return Recorded(key=key, target=slug, refused=f"its test did not pass in every recording process{why}")
    if any(part.identity != parts[0].identity for part in parts):
        return Recorded(key=key, target=slug, refused="the recording processes did not run the same code or arguments")
    if mine.identity is not None and parts[0].identity != mine.identity:
        return Recorded(key=key, target=slug, refused=OTHER_WORK)
    implausible = [text for workload in found for text in workload.implausible]
    if implausible:
        return Recorded(key=key, target=slug, refused=implausible[0])
    rounds = tuple(
        msgspec.structs.replace(taken, session=session.id, process=record.index)
        for record, part in zip(records, parts, strict=True)
        for taken in part.rounds
    )
    disturbed = "; ".join(sorted({reason for workload in found for reason in workload.disturbances}))
    if disturbed and not options.force_update:
        return Recorded(key=key, target=slug, refused=f"{disturbed}; --gpuperf-force-update takes it all the same")
    return Recorded(key=key, target=slug, after=msgspec.structs.replace(parts[0], rounds=rounds))
