"""``--update-baselines``: what it records of a run, in one write at the end, and what it refuses.

What passed moves no record unless all is asked for: one that followed every SAME would drift by a fraction of the
tolerance per update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import msgspec

from pytest_gpuperf.baselines.lookup import records_to_replace, static_baseline, under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.compile.machine_code.occupancy import why_unfit
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.judge.counters import Counts, replaced
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence, unpacked
from pytest_gpuperf.model.roofs import ROOFS
from pytest_gpuperf.model.time_record import SecondaryMetrics, Session, TimeRecord, updated
from pytest_gpuperf.model.verdict import SECONDARY, Judgement, Verdict
from pytest_gpuperf.options import Options, UpdateMode
from pytest_gpuperf.run import Run

ACCEPTED: Mapping[UpdateMode, frozenset[Verdict]] = MappingProxyType({
    "new": frozenset({Verdict.NEW}),
    "changed": frozenset(Verdict) - {Verdict.UNCHANGED, Verdict.SAME, Verdict.INCONCLUSIVE, Verdict.NOT_MEASURED},
    "all": frozenset(Verdict) - {Verdict.NOT_MEASURED},
})  # fmt: skip
"""Verdicts against the record, on evidence of any kind."""


def accepts(judgement: Judgement, options: Options) -> bool:
    """Whether this update records the evidence that was judged so."""
    return options.update is not None and judgement.verdict in ACCEPTED[options.update] and not judgement.reference


def accept(run: Run) -> list[Recorded]:
    """Write what this update takes of the run's evidence.

    Raises the ``BaselineError`` of what cannot be read or written; nothing is half done.
    """
    store, options, accepted = run.store, run.options, run.results.accepted()
    timed_records = []
    for test, work in ((one, work) for one in accepted for work in one.workloads):
        target = next((one.target for one in work.judgements if one.kind != "static"), "")
        before = store.time(target, work.key) if target else None
        if (recorded := recorded_time(work, target, test.session, before, options)) is not None:
            timed_records.append(recorded)
    time = {(one.target, one.key): one.after for one in timed_records if isinstance(one.after, TimeRecord)}
    had = {(one.target, one.key): getattr(one.before, "rounds", ()) for one in timed_records}
    timed = {key for (target, key), record in time.items() if record.rounds != had[target, key]}
    static = wanted_static(store, accepted, options, timed)
    changed = []
    for (arch, toolchain, key), new in static.items():
        known = (store.static(arch, key, one) for one in store.compilers(arch, key, toolchain))
        old = next(filter(None, known), None)
        changed += [Recorded(key=key, target=arch, before=old, after=new, refused=why_unfit(new, arch))]
    static = {place: new for (place, new), one in zip(static.items(), changed, strict=True) if not one.refused}
    named = {one.cubin for one in static.values()} | {one.cubin for one in time.values()}
    cubins = [cubin for sha256, cubin in unpacked(accepted).items() if sha256 in named]
    removed = _of_deleted_tests(run) | _of_other_launches(run, accepted, timed)
    sweep = options.update == "all" and bool(static or time or removed)
    roofs = {one.device.slug: {name: one.peaks[name] for name in ROOFS if one.peaks[name]}
             for one in accepted if one.device is not None and one.peaks.keys() >= ROOFS.keys()}  # fmt: skip
    update = Update(static=static, time=time, cubins=cubins, removed=removed, roofs=roofs, asked=run.targets)
    store.write(update, sweep=sweep)
    if removed:
        names = first_of(sorted({str(key) for key in removed}), 3)
        run.outcome.left_out += (f"removed the records of {numbered(len(removed), 'workload')} missing now: {names}",)
    return [*changed, *timed_records]


def _of_deleted_tests(run: Run) -> set[Key]:
    """Recorded workloads that no test has any more, of an update of everything by a full run without a failure.

    Nothing is known of tests that were deselected or skipped with their file, or that could not be collected.
    """
    found = run.results.found
    if run.options.update != "all" or found is None or found.failed or found.skipped:
        return set()
    if run.results.failures or found.selected != found.tests or not found.tests <= run.results.ends.keys():
        return set()
    return {key for key in run.store.workloads() if found.lacks(run.config, key)}


def _of_other_launches(run: Run, accepted: Iterable[TestEvidence], timed: Collection[Key]) -> set[Key]:
    """Kernels that a callable no longer launches, recorded for this run's GPUs alone, where its time is taken anew."""
    works = {work.key: work for one in accepted for work in one.workloads}
    owners = {key for key in timed if key in works and works[key].kernels}
    return {
        key
        for key, records in (run.store.workloads().items() if owners else ())
        if key not in works and any(record.captured for record in records.static.values())
        and msgspec.structs.replace(key, workload=key.workload.rpartition(": ")[0]) in owners
        and {plain(arch) for arch, _ in records.static} <= run.native_archs
    }  # fmt: skip


# --- machine code --------------------------------------------------------------------------------


def wanted_static(
    store: BaselineStore, accepted: Iterable[TestEvidence], options: Options, timed: Collection[Key]
) -> dict[tuple[str, str, Key], StaticRecord]:
    """Static records to write, by architecture, toolchain and key: of figures that differ from the baseline.

    They are written if the update accepts their verdict.  A workload in ``timed``, whose time is recorded again, gets
    all of them: the records of its time and of its code belong together.
    """
    update = {}
    for evidence in accepted:
        for workload in evidence.workloads:
            verdicts = {one.target: one for one in workload.judgements if one.kind == "static"}
            for arch, record in workload.static.items():
                old = static_baseline(store, arch, workload.toolchain, workload, evidence.workloads)
                if not workload.launched and workload.key.workload != record.kernel:  # a label: another has its name
                    old = store.static(arch, workload.key, workload.toolchain)
                lacks = old is not None and (not store.has_cubin(old.cubin) or old.source_hash != record.source_hash)
                judged = verdicts.get(arch)
                wanted = workload.owner in timed or (judged is not None and accepts(judged, options))
                changed = old is not None and _figures(old) != _figures(under_recorded_launch(record, old, arch))
                is_new = old is None and (wanted or judged is None or judged.verdict is not Verdict.WORSE)
                if is_new or (lacks and options.update == "all") or (changed and wanted and options.update != "new"):
                    for key, known in records_to_replace(store, arch, workload, old, evidence.workloads).items():
                        kept = record if known is None else under_recorded_launch(record, known, arch)
                        update[arch, workload.toolchain, key] = kept
    return update


def _figures(record: StaticRecord) -> StaticRecord:
    """A record without the hash of its source, cubin and grid: no comment, neighbour or size of data is a change."""
    return msgspec.structs.replace(record, source_hash="", symbol="", cubin="", grid=None)


# --- times, and the other figures of their records ------------------------------------------------


def recorded_time(
    work: WorkloadEvidence, target: str, session: Session | None, before: TimeRecord | None, options: Options
) -> Recorded | None:
    """The record of a workload's time after this update, or why one is refused; None if nothing of it changes.

    A new time keeps the secondary metrics of the record, and counters of the same execution.  A record whose time is
    not taken gets the secondary metrics that are, and counters of its own code: those that it lacks, and all where
    their verdict is one that the update takes.
    """
    recorded = Recorded(key=work.key, target=target, before=before)
    judged = {one.kind: one for one in work.judgements if one.kind != "static"}
    accepted_kinds = {kind for kind, one in judged.items() if accepts(one, options)}
    after, time = before, work.time if "time" in accepted_kinds else None
    if time is not None:
        if work.disturbances and not options.disturbed:
            refused = f"{'; '.join(work.disturbances)}; --gpuperf-disturbed records it all the same"
            return msgspec.structs.replace(recorded, refused=refused)
        after = _timed_anew(work, time, session, before)
    names = [name for kind, name in SECONDARY.items() if kind in accepted_kinds and work.secondary]
    counted = "counters" in judged and bool(work.counters) and time is None
    if after is None:
        needs = "it has no recorded time: record that first, on a machine with a GPU"
        return msgspec.structs.replace(recorded, refused=needs) if names or counted else None
    if names:
        secondary = SecondaryMetrics(**{name: getattr(work.secondary, name) for name in names})
        after = msgspec.structs.replace(after, secondary=updated(after.secondary, secondary))
    if counted and (other := _other_work(work, after)):
        if "counters" in accepted_kinds:
            why = f"{other}: --update-baselines=all records its time as well"
            return msgspec.structs.replace(recorded, refused=why)
    elif counted:
        known, new = Counts.of(after), Counts.of(work)
        after = _with_counts(after, replaced(known, new) if "counters" in accepted_kinds else replaced(new, known))
    return None if after == before else msgspec.structs.replace(recorded, after=after)


def _timed_anew(
    work: WorkloadEvidence, time: TimeRecord, session: Session | None, before: TimeRecord | None
) -> TimeRecord:
    counts = Counts.of(work)
    if before is not None and time.identity.same_execution(before.identity) and time.cache == before.cache:
        counts = replaced(Counts.of(before), counts)
    secondary = before.secondary if before is not None else None
    return _with_counts(msgspec.structs.replace(time, session=session, secondary=secondary), counts)


def _with_counts(record: TimeRecord, counts: Counts) -> TimeRecord:
    return msgspec.structs.replace(record, counters=dict(counts.values), counter_ranges=dict(counts.ranges))


def _other_work(work: WorkloadEvidence, before: TimeRecord) -> str:
    """Why counters of this run are not those of the recorded time; empty if they are."""
    if work.identity is None or not (work.identity.same_execution(before.identity) or work.identity == before.identity):
        return "the recorded time is of other code"
    if work.time is not None and work.time.cache != before.cache:
        return f"the recorded time is of a {before.cache} L2"
    return ""
