"""The end of an update: times recorded in fresh processes, counters put to them, everything written once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import msgspec
import pytest

from pytest_gpuperf.baselines.merging import Update, of_one_source
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.child_process import progress_of
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge.counter_scatter import Counts
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import Key, Session, StaticRecord, TimeRecord
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence, unpacked
from pytest_gpuperf.update.record import ProcessRecord, record
from pytest_gpuperf.update.select import (
    counters_alone,
    merge,
    wanted_counters,
    wanted_static,
    wanted_times,
    with_counters,
)
from pytest_gpuperf.update.select_beside import BesideTaken, recorded_beside, wanted_beside


@dataclasses.dataclass(frozen=True)
class Times:
    """Time baselines to write."""

    update: dict[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    counters: dict[tuple[str, Key], Counts] = dataclasses.field(default_factory=dict)
    """For records whose rounds stay."""
    beside: dict[tuple[str, Key], Beside] = dataclasses.field(default_factory=dict)
    sessions: Sequence[Session] = ()
    cubins: Sequence[bytes] = ()
    recorded: Sequence[Recorded] = ()


def accept(config: pytest.Config, worker: Worker, book: Book) -> list[Recorded]:
    """Record what changed and write it.

    Raises ``RecordingFailed`` and the ``BaselineError`` of what cannot be read or written; nothing is half done.
    """
    accepted = book.accepted()
    wanted = wanted_times(accepted, worker.options)
    beside = wanted_beside(accepted, worker.options)
    keys = wanted.keys() | {one.workload.key for one in beside if one.wants_processes}
    records = _taken_by_processes(config, worker, book, keys) if keys else []
    times = _merged_times(worker, records, [wanted[key] for key in sorted(wanted)]) if wanted else Times()
    times = _with_counters(worker, accepted, times)
    times = _with_beside(worker, beside, records, times)
    given = unpacked(accepted)
    static = of_one_source({
        place: _with_cubin_at_hand(worker.store, place, new, given)
        for place, new in wanted_static(
            worker.store, accepted, worker.options, {key for _, key in times.update}
        ).items()
    })  # fmt: skip
    recorded = [
        Recorded(key=key, target=arch, before=worker.store.static(arch, key, toolchain).record, after=new)
        for (arch, toolchain, key), new in static.items()
    ]
    named = {new.cubin for new in static.values()}
    cubins = [*times.cubins, *(cubin for sha256, cubin in given.items() if sha256 in named)]
    kept = {*times.counters, *times.beside} - times.update.keys()
    stays = {place: record.identity for place in kept if (record := worker.store.time(*place)) is not None}
    update = Update(
        static=static, time=times.update, counters=times.counters, beside=times.beside, stays=stays,
        sessions=times.sessions, cubins=cubins, profile=worker.options.profile, asked=worker.targets,
    )  # fmt: skip
    worker.store.write(update, progress_of(config))
    return [*recorded, *times.recorded]


def _with_cubin_at_hand(
    store: BaselineStore, place: tuple[str, str, Key], new: StaticRecord, given: Collection[str]
) -> StaticRecord:
    """The record with a cubin that is in this update or in the store: code that is on record has one there already."""
    if new.cubin in given:
        return new
    arch, toolchain, key = place
    old = store.static(arch, key, toolchain).record
    known = old is not None and old.profile.code_hash == new.profile.code_hash
    return msgspec.structs.replace(new, cubin=old.cubin if old is not None and known else "")


def _taken_by_processes(
    config: pytest.Config, worker: Worker, book: Book, keys: Collection[Key]
) -> list[ProcessRecord]:  # fmt: skip
    took_s = book.seconds({key.node_id for key in keys})
    worker.give_memory_back()
    return record(config, keys, progress_of(config), took_s=took_s)


def _merged_times(worker: Worker, records: Sequence[ProcessRecord], wanted: Sequence[WorkloadEvidence]) -> Times:
    session, merged = merge(records, wanted, worker.options)
    slug = records[0].device.slug
    cubins = {sha: cubin for one in records for sha, cubin in one.cubins.items()}
    taken = _taken(merged)
    return Times(
        update=taken,
        sessions=(session,) if taken else (),
        cubins=[cubins[sha] for sha in {time.cubin for time in taken.values()} if sha in cubins],
        recorded=[msgspec.structs.replace(one, before=worker.store.time(slug, one.key)) for one in merged],
    )


def _with_beside(
    worker: Worker, wanted: Sequence[BesideTaken], records: Sequence[ProcessRecord], times: Times
) -> Times:  # fmt: skip
    """This run's figures beside the times, put to those that were recorded and to those on record that stay."""
    before = {(one.target, one.workload.key): worker.store.time(one.target, one.workload.key) for one in wanted}
    beside, rows = recorded_beside(wanted, records, before, times.update)
    return dataclasses.replace(times, beside=beside, recorded=[*times.recorded, *rows])


def _taken(recorded: Sequence[Recorded]) -> dict[tuple[str, Key], TimeRecord]:
    return {(one.target, one.key): one.after for one in recorded if isinstance(one.after, TimeRecord)}


def _with_counters(worker: Worker, accepted: Sequence[TestEvidence], times: Times) -> Times:
    """This run's counters, put to the times that were recorded, and to those on record that stay."""
    if not worker.options.ncu:
        return times
    found = {work.key: work for evidence in accepted for work in evidence.workloads}
    recorded = [with_counters(one, found.get(one.key)) for one in times.recorded]
    again = {one.key for one in recorded}
    alone = [
        found_alone
        for taken in wanted_counters(accepted, worker.options)
        if taken.workload.key not in again
        and (found_alone := counters_alone(taken, worker.store.time(taken.target, taken.workload.key)))
    ]
    counters = {(one.target, one.key): Counts.of(one.after) for one in alone if isinstance(one.after, TimeRecord)}
    return dataclasses.replace(times, update=_taken(recorded), counters=counters, recorded=[*recorded, *alone])
