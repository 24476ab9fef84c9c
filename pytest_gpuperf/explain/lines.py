"""A workload of a run, explained against its baseline: for the summary of a run and for ``gpuperf explain``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from pytest_gpuperf.advise.limiting_resource import state_of
from pytest_gpuperf.explain import compare
from pytest_gpuperf.explain.estimates import Estimates
from pytest_gpuperf.explain.explanation import Compared, explained
from pytest_gpuperf.model.result import unpacked
from pytest_gpuperf.model.verdict import Verdict

if TYPE_CHECKING:
    from pytest_gpuperf.advise.side import Side
    from pytest_gpuperf.baselines.store import BaselineStore
    from pytest_gpuperf.compile import CompileCache
    from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence


def explain_all(
    store: BaselineStore, workloads: Sequence[tuple[TestEvidence, WorkloadEvidence]], cache: CompileCache | None
) -> Iterator[str]:
    """Lines on each of these workloads of a run, an empty one behind each.  Raises ``BaselineError``."""
    estimates = Estimates(store, unpacked(test for test, _ in workloads), cache)
    estimates.prepare(
        (arch, record)
        for test, work in workloads
        for arch in compare.archs_to_explain(work, test.device)
        for record in compare.static_pair(store, work, arch, work.toolchain, test.workloads)
    )
    for test, work in workloads:
        yield from _explain_workload(store, test, work, estimates)
        yield ""


def _explain_workload(
    store: BaselineStore, test: TestEvidence, work: WorkloadEvidence, estimates: Estimates
) -> list[str]:
    """Lines on one workload, compared with its baseline."""
    before, after, advice = compare.explained(store, work, work.toolchain, test.workloads, test.device, estimates)
    work = msgspec.structs.replace(work, advice=work.advice or advice, state=work.state or state_of(after, test.peaks))
    return explained(work, after, test.peaks, compared=_compared(work, before, after))


def _compared(work: WorkloadEvidence, before: Side | None, after: Side) -> Compared:
    if before is None and any(judgement.verdict is Verdict.NOT_COMPARABLE for judgement in work.judgements):
        return Compared("none that this workload can be compared with", known=False)
    if before is None:
        return Compared("none for this workload: record one with pytest --update-baselines", known=False)
    if before.static is None or after.static is None:
        return Compared("times alone" if not (before.counters and after.counters) else "times and counters", known=True)
    same = before.same_code(after)
    return Compared("the machine code is the same" if same else "the machine code differs", known=True)
