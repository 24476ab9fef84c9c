"""New workloads that are renamed ones: their verdict names the record and the command that lets it follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from pytest_gpuperf.baselines.lookup import move_command, of_same_kernel, origin_of
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.tests_found import is_deleted
from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import WorkloadRecords
from pytest_gpuperf.model.verdict import BESIDE, Judgement, Verdict
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import TestRecord


def name_origins(config: pytest.Config, run: Run, test: TestRecord, *, whole: bool) -> None:
    """Tell of every NEW workload of this test which record without a test has its machine code.

    ``whole``: the test ran to its end, so that records of its own that it did not reach count too.  A comparison with
    a revision has no other gate for a renamed test: equal code is UNCHANGED there, and other code of a kernel whose
    test is gone is NOT-COMPARABLE.  Raises ``BaselineError``.
    """
    fresh = [work for work in test.workloads.values() if any(map(_is_new, work.judgements))]
    finding = config.stash.get(stash.FINDING, None)
    if not fresh or finding is None or finding.found is None:
        return
    gone = {
        key: records
        for key, records in run.records.items()
        if is_deleted(config, finding.found, key)
        or (whole and key.node_id == test.node_id and key.workload not in test.workloads)
    }
    target = run.device.facts.slug if run.has_gpu else ""
    for work in fresh:
        static = {(arch, work.toolchain): record for arch, record in work.static.items()}
        records = WorkloadRecords(static, {target: work.time} if work.time is not None else {})
        origin = origin_of(work.key, records, gone)
        if origin is not None:
            test.add(_renamed(work, origin, gone[origin], is_revision=run.revision is not None))
        elif run.revision is not None and (near := of_same_kernel(work.key, records, gone)):
            test.add(_not_comparable(work, near))


def _is_new(one: Judgement) -> bool:
    """A figure beside the time may be new of a workload that is recorded."""
    return one.verdict is Verdict.NEW and one.kind not in BESIDE


def _judged(work: WorkloadEvidence, judge: Callable[[Judgement], Judgement]) -> WorkloadEvidence:
    """The workload with the judgements that are NEW judged again."""
    judgements = tuple(judge(one) if _is_new(one) else one for one in work.judgements)
    return msgspec.structs.replace(work, judgements=judgements)


def _not_comparable(work: WorkloadEvidence, origins: Sequence[Key]) -> WorkloadEvidence:
    """A kernel of the same name went with its test, and this is other code: it may be a regression under a new name."""
    names = first_of([str(one) for one in origins], 2)
    reason = f"it has the kernel of {names}, which is gone, and other machine code: rename it in a change of its own"
    return _judged(work, lambda one: msgspec.structs.replace(one, verdict=Verdict.NOT_COMPARABLE, reason=reason))


def _renamed(work: WorkloadEvidence, origin: Key, records: WorkloadRecords, *, is_revision: bool) -> WorkloadEvidence:
    """Equal code that is launched alike cannot have regressed; without a time of the origin that is not known."""
    reason = f"was {origin}, with the same machine code"
    timed = any(
        work.identity is not None and work.identity.same_execution(one.identity) for one in records.times.values()
    )
    codes = {(arch, record.profile.code_hash) for (arch, _), record in records.static.items()}

    def judge(one: Judgement) -> Judgement:
        if not is_revision:
            remedy = f"run `{move_command(origin, work.key)}` to take its record along"
            return msgspec.structs.replace(one, reason=f"{reason}: {remedy}", renamed=True)
        record = work.static.get(one.target)
        same = timed if one.kind == "time" else record and (one.target, record.profile.code_hash) in codes
        verdict = Verdict.UNCHANGED if same else Verdict.NOT_COMPARABLE
        return msgspec.structs.replace(one, verdict=verdict, reason=reason)

    return msgspec.structs.replace(_judged(work, judge), was=origin)
