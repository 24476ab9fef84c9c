"""New workloads that are renamed ones: their verdict names the record, how they compare with it, and the remedy."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

import msgspec
import pytest

from pytest_gpuperf.baselines.lookup import under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context import stash
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.judge.continued import Work, move_command, of_its_kernel, origin_of
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import Key, TimeRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import BESIDE, Judgement, Verdict
from pytest_gpuperf.run import Run
from pytest_gpuperf.session.run_scope import scope_of
from pytest_gpuperf.test_record import TestRecord

GONE: pytest.StashKey[tuple[Key, ...]] = pytest.StashKey()


def name_origins(config: pytest.Config, worker: Run, book: TestRecord, *, whole: bool) -> None:
    """Tell of every NEW workload of this test which record it continues, if one lost its test.

    ``whole``: the test ran to its end, so that records of its own that it did not come to count too.
    Raises ``BaselineError``.
    """
    fresh = [work for work in book.workloads.values() if any(map(_tells_of_a_new_name, work.judgements))]
    if not fresh or stash.FINDING not in config.stash:
        return
    target = worker.device.facts.slug if worker.has_gpu else ""
    own = _own_gone(worker, book, target) if whole else []
    keys = dict.fromkeys([*own, *_gone(config, worker.store)])
    for work in fresh:
        candidates = [_on_record(worker.store, key, work.toolchain, target) for key in keys]
        new = Work(work.key, work.static, work.identity if work.time is not None else None)
        origin = origin_of(new, candidates)
        if origin is None and worker.revision is not None and new.kernels:
            book.add(_one_of(work, of_its_kernel(new, candidates)))
        elif origin is not None:
            named = _named if worker.revision is None else _compared
            book.add(named(work, origin, worker.store.time(target, origin.key) if target else None))


def _tells_of_a_new_name(one: Judgement) -> bool:
    """A figure beside the time may be new of a workload that is on record."""
    return one.verdict is Verdict.NEW and one.kind not in BESIDE


def _gone(config: pytest.Config, store: BaselineStore) -> tuple[Key, ...]:
    """Keys on record whose module was collected without their test, or whose file is gone; found once."""
    if GONE not in config.stash:
        found, scope, root = config.stash[stash.FINDING].found, scope_of(config), config.rootpath
        config.stash[GONE] = tuple(
            key
            for key in store.all_keys()
            if found is not None and key.node_id not in found.tests and key.node_id not in found.users
            if not (root / key.module).is_file() or (key.module in found.modules and scope.covers(key.module))
        )
    return config.stash[GONE]


def _own_gone(worker: Run, book: TestRecord, target: str) -> list[Key]:
    """Records of this test that it did not come to."""
    names = set(_static_names(worker, book))
    if target:
        names.update(worker.store.time_tests(target, book.module).get(book.test, {}))
    return [book.key(name) for name in sorted(names) if name not in book.workloads]


def _static_names(worker: Run, book: TestRecord) -> Iterator[str]:
    for compiler in {work.toolchain for work in book.workloads.values() if work.toolchain}:
        for arch in worker.expected_archs:
            yield from worker.store.static_tests(arch, book.module, compiler).get(book.test, {})


def _on_record(store: BaselineStore, key: Key, toolchain: str, target: str) -> Work:
    static = {arch: record for arch in store.archs() if (record := store.static(arch, key, toolchain).record)}
    time = store.time(target, key) if target else None
    return Work(key, static, time.identity if time is not None else None)


def _named(work: WorkloadEvidence, origin: Work, time: TimeRecord | None) -> WorkloadEvidence:
    """The workload with its origin, whose time on record is ``time``, in the reasons of NEW."""
    remedy = f"run `{move_command(origin.key, work.key)}` to take its record along"
    judgements = tuple(
        msgspec.structs.replace(one, reason=f"{_than_its_record(one, work, origin, time)}: {remedy}", renamed=True)
        if one.verdict is Verdict.NEW
        else one
        for one in work.judgements
    )
    return msgspec.structs.replace(work, judgements=judgements, was=origin.key)


def _compared(work: WorkloadEvidence, origin: Work, time: TimeRecord | None) -> WorkloadEvidence:
    """The workload with the verdicts on its origin's evidence in the place of NEW, of a run against a revision.

    No baseline moves there, and what is there is all evidence: what it does not settle is NOT-COMPARABLE.
    """
    if not origin.kernels:  # another callable may be meant
        return work

    def judged(one: Judgement) -> Judgement:
        if not _tells_of_a_new_name(one):
            return one
        settled = _settled(one, work, origin, time)
        reason = _than_its_record(one, work, origin, time)
        if settled is None:
            reason = f"{reason}, which proves nothing of a renamed one: {RENAME_ALONE}"
        return msgspec.structs.replace(one, verdict=settled or Verdict.NOT_COMPARABLE, reason=reason)

    return msgspec.structs.replace(work, judgements=tuple(map(judged, work.judgements)), was=origin.key)


def _one_of(work: WorkloadEvidence, origins: Sequence[Work]) -> WorkloadEvidence:
    """The workload as NOT-COMPARABLE in the place of NEW, where it may be any of several that are gone."""
    if not origins:
        return work
    names = first_of([str(one.key) for one in sorted(origins, key=lambda one: one.key)], 2)
    reason = f"it has the kernel of {numbered(len(origins), 'workload')} that went, {names}: {RENAME_ALONE}"
    judgements = tuple(
        msgspec.structs.replace(one, verdict=Verdict.NOT_COMPARABLE, reason=reason)
        if _tells_of_a_new_name(one)
        else one
        for one in work.judgements
    )
    return msgspec.structs.replace(work, judgements=judgements)


RENAME_ALONE = "rename it in a change of its own"


def _settled(one: Judgement, work: WorkloadEvidence, origin: Work, time: TimeRecord | None) -> Verdict | None:
    """The verdict that the evidence of the origin is enough for; None if it is not."""
    if one.kind == "time":
        same = time is not None and work.identity is not None and work.identity.same_execution(time.identity)
        return Verdict.UNCHANGED if same else None
    old, new = origin.static.get(one.target), work.static.get(one.target)
    if old is None or new is None:
        return None
    found = compare_static(work.key, one.target, old, under_recorded_launch(new, old, one.target)).verdict
    return found if found in (Verdict.UNCHANGED, Verdict.SAME, Verdict.BETTER) else None


def _than_its_record(one: Judgement, work: WorkloadEvidence, origin: Work, time: TimeRecord | None) -> str:
    """What the workload was called, and how it compares with the record of that; ``time`` is the origin's."""
    than = _slower(work.time, time) if one.kind == "time" else _other_code(work, origin, one.target)
    return f"was {origin.key}{', ' if than else ''}{than}"


def _slower(new: TimeRecord | None, old: TimeRecord | None) -> str:
    """Today's median over that on record, in words; nothing is proven by it."""
    if new is None or old is None or not new.rounds:
        return ""
    now, then = (statistics.median(one.midmean for one in record.rounds) for record in (new, old))
    percent = (now / then - 1) * 100
    return f"{abs(percent):.1f} % {'slower' if percent > 0 else 'faster'} than its record"


def _other_code(work: WorkloadEvidence, origin: Work, arch: str) -> str:
    old, new = origin.static.get(arch), work.static.get(arch)
    if old is None or new is None:
        return ""
    compared = compare_static(work.key, arch, old, under_recorded_launch(new, old, arch))
    same = old.profile.code_hash == new.profile.code_hash
    if compared.verdict is Verdict.UNCHANGED or (same and old.block is None):
        return "the same machine code"
    worse = [str(change) for change in compared.changes if change.direction == "worse"]
    return ", ".join(["the same machine code in another launch" if same else compared.reason.partition(":")[0], *worse])
