"""A workload of a run, explained against its baseline: for the summary of a run and for ``gpuperf explain``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.advise.limiting_resource import state_of
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.explain.estimates import Estimates
from pytest_gpuperf.explain.explanation import ComparedWith, explained
from pytest_gpuperf.explain.workload_comparison import WorkloadComparison, explain_each
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence, unpacked
from pytest_gpuperf.model.verdict import Verdict


def explain_all(
    store: BaselineStore, workloads: Sequence[tuple[TestEvidence, WorkloadEvidence]], cache: CompileCache | None
) -> Iterator[str]:
    """Lines on each of these workloads of a run, an empty one behind each.  Raises ``BaselineError``."""
    estimates = Estimates(store, unpacked(test for test, _ in workloads), cache)
    comparisons = [
        WorkloadComparison(store, estimates, work, work.toolchain, one.workloads, one.device) for one, work in workloads
    ]
    for (test, work), (before, after, advice) in zip(workloads, explain_each(estimates, comparisons), strict=True):
        state = work.state or state_of(after, test.peaks)
        told = msgspec.structs.replace(work, advice=work.advice or advice, state=state)
        yield from explained(told, after, test.peaks, compared=_compared(work, before, after))
        yield ""


def _compared(work: WorkloadEvidence, before: Side | None, after: Side) -> ComparedWith:
    if before is None and any(judgement.verdict is Verdict.NOT_COMPARABLE for judgement in work.judgements):
        return ComparedWith("none that this workload can be compared with", known=False)
    if before is None:
        return ComparedWith("none for this workload: record one with pytest --update-baselines", known=False)
    if before.static is None or after.static is None:
        return ComparedWith(
            "times alone" if not (before.counters and after.counters) else "times and counters", known=True
        )
    same = before.same_code(after)
    return ComparedWith("the machine code is the same" if same else "the machine code differs", known=True)
