"""Whether a workload that no GPU times here is still the work that its times on record are of.

Machine code does not tell: the same code does other work on other arguments.  What a test made of the facts of a GPU
is not compared, since without one they are those of a typical GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from pytest_gpuperf.judge.same_work import explain, other_work
from pytest_gpuperf.model.evidence import CacheMode, Identity
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.revision import UntimedWork
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.run import Run

RECORD_BY_NAME = ": record the baseline anew with pytest --update-baselines NODEID if that is intended, on a GPU"
"""By its name, since a GPU may find other work as fast as that on record, and what passes moves no record."""


def as_recorded(worker: Run, workload: WorkloadEvidence, judged: Collection[Judgement]) -> Collection[Judgement]:
    """Judgements on machine code as they are of the work on record: no pass of other work, which is NOT-COMPARABLE.

    UNCHANGED is SAME where the launch alone is another, which needs a timing run.  Raises ``BaselineError``.
    """
    identity, cache = workload.identity, workload.cache
    if worker.has_gpu or identity is None or cache is None:
        return judged
    olds = [_known(old, identity) for old in _on_record(worker, workload)]
    nearest = min(olds, key=lambda one: (bool(_differs(one, identity, cache)), one.identity.launch != identity.launch),
                  default=None)  # fmt: skip
    if nearest is None:
        return judged
    return [_of_that_work(one, nearest, identity, cache, by_name=worker.revision is None) for one in judged]


def _known(old: UntimedWork, new: Identity) -> UntimedWork:
    """Its work, by the code of today: that is judged by itself."""
    return msgspec.structs.replace(old, identity=msgspec.structs.replace(old.identity, code=new.code))


def _differs(old: UntimedWork, identity: Identity, cache: CacheMode) -> tuple[str, ...]:
    other_cache = [] if old.cache == cache else [f"the cache state changed from {old.cache} to {cache}"]
    return (*other_cache, *other_work(old.identity, identity))


def _of_that_work(
    judgement: Judgement, old: UntimedWork, identity: Identity, cache: CacheMode, *, by_name: bool
) -> Judgement:
    if not (judgement.verdict.is_pass or judgement.verdict is Verdict.BETTER):
        return judgement
    if differs := _differs(old, identity, cache):
        reason = "; ".join(differs) + (RECORD_BY_NAME if by_name else "")
        return msgspec.structs.replace(judgement, verdict=Verdict.NOT_COMPARABLE, reason=reason)
    same_code = judgement.verdict is Verdict.UNCHANGED or judgement.launched_otherwise
    if old.identity.launch != identity.launch and same_code:
        reason = f"{explain('launch', old.identity, identity)}: its time will tell"
        return msgspec.structs.replace(judgement, verdict=Verdict.SAME, reason=reason, launched_otherwise=True)
    return judgement


def _on_record(worker: Run, workload: WorkloadEvidence) -> Iterator[UntimedWork]:
    """What was timed, or what a revision would run here: on a GPU that is told the same facts."""
    key = workload.key
    if worker.revision is not None:
        if str(key) in worker.revision.untimed:
            yield worker.revision.untimed[str(key)]
    elif not workload.facts_asked:
        times = (worker.store.time(device, key) for device in worker.store.devices())
        yield from (UntimedWork(identity=one.identity, cache=one.cache) for one in times if one is not None)
