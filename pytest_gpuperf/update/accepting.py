"""The end of an update: times recorded in fresh processes, counters put to them, everything written once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import pytest

from pytest_gpuperf.children import progress_of
from pytest_gpuperf.evidence import Key, Session, TimeRecord
from pytest_gpuperf.judge.takes import Counts
from pytest_gpuperf.update.choosing import (
    Recorded,
    counters_alone,
    merge,
    wanted_counters,
    wanted_static,
    wanted_times,
    with_counters,
)
from pytest_gpuperf.update.recording import record

if TYPE_CHECKING:
    from pytest_gpuperf.bench import Bench
    from pytest_gpuperf.session import Book, TestEvidence, WorkloadEvidence


@dataclasses.dataclass(frozen=True)
class Times:
    """Time baselines to write."""

    update: dict[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    counters: dict[tuple[str, Key], Counts] = dataclasses.field(default_factory=dict)
    """For records whose rounds stay."""
    sessions: Sequence[Session] = ()
    cubins: Sequence[bytes] = ()
    recorded: Sequence[Recorded] = ()


def accept(config: pytest.Config, bench: Bench, book: Book) -> list[Recorded]:
    """Record what changed and write it.

    Raises ``RecordingFailed`` and the ``BaselineError`` of what cannot be read or written; nothing is half done.
    """
    from pytest_gpuperf.baselines import Update

    accepted = list(book.accepted())
    static = wanted_static(bench.store, accepted, bench.options)
    wanted = wanted_times(accepted, bench.options)
    times = _record_times(config, bench, book, [wanted[key] for key in sorted(wanted)]) if wanted else Times()
    times = _with_counters(bench, accepted, times)
    recorded = [
        Recorded(key=key, target=arch, before=bench.store.static(arch, key, toolchain).record, after=new)
        for (arch, toolchain, key), new in static.items()
    ]
    bench.store.write(Update(static=static, time=times.update, counters=times.counters, sessions=times.sessions,
                             cubins=times.cubins))  # fmt: skip
    return [*recorded, *times.recorded]


def _record_times(config: pytest.Config, bench: Bench, book: Book, wanted: Sequence[WorkloadEvidence]) -> Times:
    nodes = sorted({work.key.node_id for work in wanted})
    records = record(config, nodes, progress_of(config), took_s=book.seconds(nodes))
    session, merged = merge(records, wanted, bench.options)
    slug = records[0].device.slug
    cubins = {sha: cubin for one in records for sha, cubin in one.cubins.items()}
    taken = _taken(merged)
    return Times(
        update=taken,
        sessions=(session,) if taken else (),
        cubins=[cubins[sha] for sha in {time.cubin for time in taken.values()} if sha in cubins],
        recorded=[msgspec.structs.replace(one, before=bench.store.time(slug, one.key)) for one in merged],
    )


def _taken(recorded: Sequence[Recorded]) -> dict[tuple[str, Key], TimeRecord]:
    return {(one.target, one.key): one.after for one in recorded if isinstance(one.after, TimeRecord)}


def _with_counters(bench: Bench, accepted: Sequence[TestEvidence], times: Times) -> Times:
    """This run's counters, put to the times that were recorded, and to those on record that stay."""
    if not bench.options.ncu:
        return times
    found = {work.key: work for evidence in accepted for work in evidence.workloads}
    recorded = [with_counters(one, found.get(one.key)) for one in times.recorded]
    again = {one.key for one in recorded}
    alone = [
        found_alone
        for taken in wanted_counters(accepted, bench.options)
        if taken.workload.key not in again
        and (found_alone := counters_alone(taken, bench.store.time(taken.target, taken.workload.key)))
    ]
    counters = {(one.target, one.key): Counts.of(one.after) for one in alone if isinstance(one.after, TimeRecord)}
    return dataclasses.replace(times, update=_taken(recorded), counters=counters, recorded=[*recorded, *alone])
