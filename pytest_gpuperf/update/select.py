"""What an update records of a run: verdicts by its mode, workloads by their verdicts, or why one is refused.

Writes nothing: a run's evidence and the old baselines go in, records come out.  What passed never moves a record,
unless it is asked for by name: one that followed every SAME would drift by a fraction of the tolerance per update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import msgspec

from pytest_gpuperf.baselines.lookup import records_stood_for, static_baseline, under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.judge.static_verdict import with_launch_of
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.time_record import Beside, TimeRecord, updated
from pytest_gpuperf.model.verdict import BESIDE, Judgement, Verdict
from pytest_gpuperf.options import Options, UpdateMode

TAKEN: Mapping[UpdateMode, frozenset[Verdict]] = MappingProxyType({
    "new": frozenset({Verdict.NEW}),
    "changed": frozenset({
        Verdict.NEW, Verdict.SLOWER, Verdict.FASTER, Verdict.WORSE, Verdict.BETTER,
        Verdict.NOT_COMPARABLE,
    }),
    "all": frozenset(Verdict) - {Verdict.NOT_MEASURED},
})  # fmt: skip
"""Verdicts against the record, on evidence of any kind."""


def takes(judgement: Judgement, options: Options) -> bool:
    """Whether this update records the evidence that was judged so."""
    if options.update is None or judgement.verdict is Verdict.NOT_MEASURED:
        return False
    return judgement.verdict in TAKEN[options.update] or by_name(judgement.key.node_id, options)


def by_name(node_id: str, options: Options) -> bool:
    """Whether this update was asked for this very test: its node id is an argument, with its parameters or without.

    ``new`` takes nothing by name: it adds, and moves nothing that is there.
    """
    if options.update in (None, "new"):
        return False
    return any(node_id == name or node_id.startswith(f"{name}[") for name in options.named)


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
                    old = store.static(arch, workload.key, workload.toolchain)
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


def with_figures(
    work: WorkloadEvidence, options: Options, before: TimeRecord | None, *, timed: bool = False
) -> Recorded | None:
    """Put this run's counters and secondary metrics on ``before``, whose rounds stay as they are.

    One that was just ``timed`` has its counters already.  Secondary metrics are put there if this update takes their
    verdicts.  Counters take the place of those on record if it takes theirs; else those are added that the record
    lacks.  Counters of other code than was timed are refused: a record is evidence of one machine code.  None if there
    is nothing to write.
    """
    counted = next((one for one in work.judgements if one.kind == "counters" and work.counters and not timed), None)
    beside = [one for one in work.judgements if one.kind in BESIDE and work.beside and takes(one, options)]
    if counted is None and not beside:
        return None
    recorded = Recorded(key=work.key, target=(counted or beside[0]).target, before=before)
    if before is None:
        return msgspec.structs.replace(recorded, refused="it needs a time on record, and this one has none")
    after = before
    if beside:
        names = [BESIDE[one.kind] for one in beside]  # type: ignore[index]
        taken = Beside(**{name: getattr(work.beside, name) for name in names})
        after = msgspec.structs.replace(after, beside=updated(before.beside, taken))
    if counted is not None and (other := _other_work(work, before)):
        if takes(counted, options):
            why = f"{other}: --update-baselines=all records its time as well"
            return msgspec.structs.replace(recorded, refused=why)
    elif counted is not None:
        known, new = Counts.of(before), Counts.of(work)
        counts = replaced(known, new) if takes(counted, options) else replaced(new, known)
        after = msgspec.structs.replace(after, counters=counts.values, counter_ranges=counts.ranges)
    return None if after == before else msgspec.structs.replace(recorded, after=after)


def _other_work(work: WorkloadEvidence, before: TimeRecord) -> str:
    """Why counters of this run are not those of the time on record; empty if they are."""
    if work.identity is None or not (work.identity.same_execution(before.identity) or work.identity == before.identity):
        return "the code on record is another"
    if work.time is not None and work.time.cache != before.cache:
        return f"the time on record is of a {before.cache} L2"
    return ""
