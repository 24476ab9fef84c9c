"""New workloads that are renamed ones: their verdict names the record and the command that lets it follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from pytest_gpuperf.baselines.lookup import move_command, of_same_kernel, origin_of
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.tests_found import searched_by
from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import WorkloadRecords
from pytest_gpuperf.model.verdict import BESIDE, Judgement, Verdict
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import TestRecord

RECORDED: pytest.StashKey[Mapping[Key, WorkloadRecords]] = pytest.StashKey()
RENAME_ALONE = "rename it in a change of its own"


def name_origins(config: pytest.Config, worker: Run, book: TestRecord, *, whole: bool) -> None:
    """Tell of every NEW workload of this test which record without a test has its machine code.

    ``whole``: the test ran to its end, so that records of its own that it did not reach count too.  A comparison with
    a revision has no other gate for a renamed test: what is not the same there is NOT-COMPARABLE.
    Raises ``BaselineError``.
    """
    fresh = [work for work in book.workloads.values() if any(map(_is_new, work.judgements))]
    if not fresh or stash.FINDING not in config.stash:
        return
    gone = _without_test(config, worker.store, book, whole=whole)
    target = worker.device.facts.slug if worker.has_gpu else ""
    for work in fresh:
        static = {(arch, work.toolchain): record for arch, record in work.static.items()}
        records = WorkloadRecords(static, {target: work.time} if work.time is not None else {})
        origin = origin_of(work.key, records, gone)
        if worker.revision is None:
            book.add(work if origin is None else _named(work, origin))
        elif origin is not None:
            book.add(_compared(work, origin, gone[origin]))
        else:
            book.add(_not_comparable(work, of_same_kernel(work.key, records, gone)))


def _is_new(one: Judgement) -> bool:
    """A figure beside the time may be new of a workload that is recorded."""
    return one.verdict is Verdict.NEW and one.kind not in BESIDE


def _without_test(
    config: pytest.Config, store: BaselineStore, book: TestRecord, *, whole: bool
) -> dict[Key, WorkloadRecords]:
    """Records that no collected test is of, and those that this test itself did not reach."""
    if RECORDED not in config.stash:
        found = dict[Key, WorkloadRecords]()
        for target in store.targets():
            for module in store.modules(target):
                store.workloads(target, module, found)
        config.stash[RECORDED] = found
    found_tests, searched = config.stash[stash.FINDING].found, searched_by(config)
    return {
        key: records
        for key, records in config.stash[RECORDED].items()
        if ((key.module, key.test) == (book.module, book.test) and (whole and key.workload not in book.workloads))
        or (
            found_tests is not None
            and key.node_id not in found_tests.tests
            and searched(key.module)
            and (key.module in found_tests.modules or not (config.rootpath / key.module).is_file())
        )
    }


def _named(work: WorkloadEvidence, origin: Key) -> WorkloadEvidence:
    remedy = f"run `{move_command(origin, work.key)}` to take its record along"
    return _judged(work, origin, Verdict.NEW, f"was {origin}, with the same machine code: {remedy}")


def _compared(work: WorkloadEvidence, origin: Key, records: WorkloadRecords) -> WorkloadEvidence:
    """Equal code that is launched alike cannot have regressed; without a time of the origin that is not known."""
    timed = any(
        work.identity is not None and work.identity.same_execution(one.identity) for one in records.times.values()
    )
    static = {arch: record.profile.code_hash for (arch, _), record in records.static.items()}

    def verdict(one: Judgement) -> Verdict:
        record = work.static.get(one.target)
        same = (
            timed if one.kind == "time" else record is not None and record.profile.code_hash == static.get(one.target)
        )
        return Verdict.UNCHANGED if same else Verdict.NOT_COMPARABLE

    reason = f"was {origin}, with the same machine code"
    judgements = [
        msgspec.structs.replace(one, verdict=verdict(one), reason=reason) if _is_new(one) else one
        for one in work.judgements
    ]
    return msgspec.structs.replace(work, judgements=tuple(judgements), was=origin)


def _not_comparable(work: WorkloadEvidence, origins: Sequence[Key]) -> WorkloadEvidence:
    """A kernel of the same name went with its test, and this is other code: it may be a regression under a new name."""
    if not origins:
        return work
    names = first_of([str(one) for one in origins], 2)
    reason = f"it has the kernel of {names}, which is gone, and other machine code: {RENAME_ALONE}"
    return _judged(work, None, Verdict.NOT_COMPARABLE, reason)


def _judged(work: WorkloadEvidence, origin: Key | None, verdict: Verdict, reason: str) -> WorkloadEvidence:
    judgements = tuple(
        msgspec.structs.replace(one, verdict=verdict, reason=reason, renamed=origin is not None)
        if _is_new(one)
        else one
        for one in work.judgements
    )
    return msgspec.structs.replace(work, judgements=judgements, was=origin)
