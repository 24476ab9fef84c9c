"""Whether a workload that no GPU times here is still the work that its times on record are of.

Machine code does not tell: the same code does other work on other arguments.  What a test made of the facts of a GPU
is not compared, since without one they are those of a typical GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge.comparability import RECORD_ANEW, Comparability, same_work
from pytest_gpuperf.model.evidence import CacheMode, Identity, TimeRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.revision import UntimedWork
from pytest_gpuperf.model.verdict import Judgement, Verdict

RECORD_BY_NAME = ": record the baseline anew with pytest --update-baselines NODEID if that is intended, on a GPU"
"""By its name, since a GPU may find other work as fast as that on record, and what passes moves no record."""


def as_recorded(worker: Worker, workload: WorkloadEvidence, judged: Collection[Judgement]) -> Collection[Judgement]:
    """Judgements on machine code as they are of the work on record: no pass of other work, which is NOT-COMPARABLE.

    UNCHANGED is SAME where the launch alone is another, whose time will tell.  Raises ``BaselineError``.
    """
    found = _nearest_on_record(worker, workload)
    if found is None:
        return judged
    return [_of_that_work(one, found, by_name=worker.revision is None) for one in judged]


def _of_that_work(judgement: Judgement, found: Comparability, *, by_name: bool) -> Judgement:
    if not (judgement.verdict.is_pass or judgement.verdict is Verdict.BETTER):
        return judgement
    if found.relation == "not comparable":
        reason = found.reason.removesuffix(RECORD_ANEW) + (RECORD_BY_NAME if by_name else "")
        return msgspec.structs.replace(judgement, verdict=Verdict.NOT_COMPARABLE, reason=reason)
    same_code = judgement.verdict is Verdict.UNCHANGED or judgement.launched_otherwise
    if found.cause == "launch" and same_code:
        reason = f"{found.reason}: its time will tell"
        return msgspec.structs.replace(judgement, verdict=Verdict.SAME, reason=reason, launched_otherwise=True)
    return judgement


def _nearest_on_record(worker: Worker, workload: WorkloadEvidence) -> Comparability | None:
    """How the workload relates to its times on record, of the GPU where that differs least; None if it is not known."""
    identity, cache = workload.identity, workload.cache
    if worker.has_gpu or identity is None or cache is None:
        return None
    found = [_relation(old, identity, cache) for old in _on_record(worker, workload)]
    return min(found, key=lambda one: (one.relation == "not comparable", one.cause == "launch"), default=None)


def _on_record(worker: Worker, workload: WorkloadEvidence) -> Iterator[UntimedWork]:
    """What was timed, or what a revision would run here: on a GPU that is told the same facts."""
    key = workload.key
    if worker.revision is not None:
        if str(key) in worker.revision.untimed:
            yield worker.revision.untimed[str(key)]
    elif not workload.facts_asked:
        times = (worker.store.time(device, key) for device in worker.store.devices())
        yield from (UntimedWork(identity=one.identity, cache=one.cache) for one in times if one is not None)


def _relation(old: UntimedWork, identity: Identity, cache: CacheMode) -> Comparability:
    """The same but for the machine code, which is judged by itself, and for timers."""
    timed = TimeRecord(identity=old.identity, timer="graph", cache=old.cache, rounds=())
    return same_work(timed, msgspec.structs.replace(identity, code=old.identity.code), timed.timer, cache)
