"""The end of an update: what the run measured goes on record, and what no test has any more goes; one write.

A run answers for the test files below its paths, as ``session.missing`` says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Recorded, TestEvidence, unpacked
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.model.verdict import BESIDE
from pytest_gpuperf.options import Options
from pytest_gpuperf.results import Results
from pytest_gpuperf.run import Run
from pytest_gpuperf.update.select import recorded_times, wanted_static, with_figures


def accept(worker: Run, book: Results, removed: Collection[tuple[str, Key]] | None = None) -> list[Recorded]:
    """Write what this update takes of the run's evidence, and remove what a full run found ``removed``.

    Raises the ``BaselineError`` of what cannot be read or written; nothing is half done.
    """
    accepted, store, options = book.accepted(), worker.store, worker.options
    times = [
        msgspec.structs.replace(one, before=store.time(one.target, one.key))
        for one in recorded_times(accepted, options)
    ]
    taken = {(one.target, one.key): one.after for one in times if isinstance(one.after, TimeRecord)}
    added = _put_beside(store, accepted, options, taken)
    others = {(one.target, one.key): one.after for one in added if isinstance(one.after, TimeRecord)}
    given = unpacked(accepted)
    static = {
        place: _with_cubin_at_hand(store, place, new, given)
        for place, new in wanted_static(store, accepted, options, {key for _, key in taken}).items()
    }
    recorded = [
        Recorded(key=key, target=arch, before=store.static(arch, key, toolchain), after=new)
        for (arch, toolchain, key), new in static.items()
    ]
    named = {new.cubin for new in static.values()} | {new.cubin for new in taken.values()}
    store.write(
        Update(
            static=static, time={**others, **taken},
            cubins=[cubin for sha256, cubin in given.items() if sha256 in named],
            removed=removed, asked=worker.targets,
        )
    )  # fmt: skip
    return [*recorded, *times, *added]


def _put_beside(
    store: BaselineStore, accepted: Iterable[TestEvidence], options: Options, taken: dict[tuple[str, Key], TimeRecord]
) -> list[Recorded]:
    """Records that stay, with the counters and the figures that they get; a ``taken`` one gets its figures here."""
    found = []
    for work in (work for test in accepted for work in test.workloads):
        targets = [one.target for one in work.judgements if one.kind == "counters" or one.kind in BESIDE]
        if not targets:
            continue
        place = (targets[0], work.key)
        one = with_figures(work, options, taken.get(place) or store.time(*place), timed=place in taken)
        if one is not None and place not in taken:
            found.append(one)
        elif one is not None and isinstance(one.after, TimeRecord):
            taken[place] = one.after
    return found


def _with_cubin_at_hand(
    store: BaselineStore, place: tuple[str, str, Key], new: StaticRecord, given: Collection[str]
) -> StaticRecord:
    """The record with a cubin that is in this update or in the store: code that is on record has one there already."""
    if new.cubin in given:
        return new
    arch, toolchain, key = place
    old = store.static(arch, key, toolchain)
    known = old is not None and old.profile.code_hash == new.profile.code_hash
    return msgspec.structs.replace(new, cubin=old.cubin if old is not None and known else "")


# --- what no test has any more --------------------------------------------------------------------


def records_removed(config: pytest.Config, run: Run) -> set[tuple[str, Key]] | None:
    """Records to remove, by target; None of a run that was not asked for everything, or did not come to its end.

    Nothing is removed where a test was deselected, or a file was not collected: its tests are unknown.  Of a test that
    has no parameters here, they may be those of another machine.
    """
    store, found = run.store, run.results.found
    if found is None or run.options.update != "all":
        return None
    if found.failed or found.skipped or found.selected != found.tests or not found.tests <= run.results.ends.keys():
        return None
    try:
        records = {(at, key) for at, module in store.places() for key, _ in store.load(at, module)}
    except BaselineError:  # which the tests and the end of the run tell
        return None
    had = dict[tuple[str, str], set[Key]]()
    for test in run.results.evidence:
        archs = {arch for work in test.workloads for arch in work.static}
        for target in archs | ({test.device.slug} if test.device is not None else set()):
            if test.whole:
                had[target, test.node_id] = {work.key for work in test.workloads}
    return {
        (target, key)
        for target, key in records
        if (found.lacks(config, key) and f"{key.node_id.partition('[')[0]}[NOTSET]" not in found.tests)
        or key not in had.get((target, key.node_id), {key})
    }


def removed_line(removed: Collection[tuple[str, Key]]) -> str:
    """``removed 3 records of tests that are gone: ...``"""
    keys = sorted({key for _, key in removed})
    return f"removed the records of {numbered(len(keys), 'workload')} that no test has any more: {first_of(keys, 3)}"
