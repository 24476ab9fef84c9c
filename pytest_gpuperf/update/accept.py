"""The end of an update: what the run measured goes on record, everything written once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec
import pytest

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Recorded, TestEvidence, unpacked
from pytest_gpuperf.model.time_record import TimeRecord, updated
from pytest_gpuperf.process.children import progress_of
from pytest_gpuperf.results import Results
from pytest_gpuperf.run import Run
from pytest_gpuperf.update.select import (
    counters_alone,
    figures_alone,
    recorded_times,
    wanted_counters,
    wanted_figures,
    wanted_static,
)


def accept(
    config: pytest.Config, worker: Run, book: Results, removed: Collection[tuple[str, Key]] | None = None
) -> list[Recorded]:
    """Write what this update takes of the run's evidence, and remove what a full run found ``removed``.

    Raises the ``BaselineError`` of what cannot be read or written; nothing is half done.
    """
    accepted, store, options = book.accepted(), worker.store, worker.options
    times = [
        msgspec.structs.replace(one, before=store.time(one.target, one.key))
        for one in recorded_times(accepted, options)
    ]
    taken = {(one.target, one.key): one.after for one in times if isinstance(one.after, TimeRecord)}
    figures = wanted_figures(accepted, options)
    for one in figures:
        if (place := (one.target, one.key)) in taken:
            taken[place] = msgspec.structs.replace(taken[place], beside=updated(taken[place].beside, one.figures))
    counters = _counters_alone(worker, accepted, taken)
    kept_figures = [
        figures_alone(one, store.time(one.target, one.key)) for one in figures if (one.target, one.key) not in taken
    ]
    given = unpacked(accepted)
    static = {
        place: _with_cubin_at_hand(store, place, new, given)
        for place, new in wanted_static(store, accepted, options, {key for _, key in taken}).items()
    }
    recorded = [
        Recorded(key=key, target=arch, before=store.static(arch, key, toolchain).record, after=new)
        for (arch, toolchain, key), new in static.items()
    ]
    named = {new.cubin for new in static.values()} | {new.cubin for new in taken.values()}
    store.write(
        Update(
            static=static, time=taken,
            figures=_figures([*counters, *kept_figures]),
            cubins=[cubin for sha256, cubin in given.items() if sha256 in named],
            removed=removed, asked=worker.targets,
        ),
        progress_of(config),
    )  # fmt: skip
    return [*recorded, *times, *counters, *kept_figures]


def _figures(kept: Iterable[Recorded]) -> dict[tuple[str, Key], TimeRecord]:
    """The records that stay, with the counters and the figures that they get: counters are given first."""
    found: dict[tuple[str, Key], TimeRecord] = {}
    for one in kept:
        if isinstance(one.after, TimeRecord):
            place = one.target, one.key
            known = found.get(place)
            found[place] = one.after if known is None else msgspec.structs.replace(known, beside=one.after.beside)
    return found


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


def _counters_alone(
    worker: Run, accepted: Sequence[TestEvidence], taken: Collection[tuple[str, Key]]
) -> list[Recorded]:
    """This run's counters, put to the times on record that stay."""
    if not worker.options.ncu:
        return []
    return [
        found
        for one in wanted_counters(accepted, worker.options)
        if (one.target, one.workload.key) not in taken
        and (found := counters_alone(one, worker.store.time(one.target, one.workload.key)))
    ]
