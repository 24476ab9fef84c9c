"""A workload of a run, explained against its baseline: for the summary of a run and for ``gpuperf explain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from pytest_gpuperf.advise.limiting_resource import state_of
from pytest_gpuperf.advise.side import Side
from pytest_gpuperf.baselines import BaselineStore
from pytest_gpuperf.explain import compare
from pytest_gpuperf.explain.explanation import Compared, explained
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Verdict


def explain_all(store: BaselineStore, tests: Iterable[TestEvidence]) -> Iterator[str]:
    """Lines on every workload, an empty one behind each.  Raises ``BaselineError``."""
    for test in tests:
        for work in test.workloads:
            yield from explain_workload(store, test, work)
            yield ""


def explain_workload(store: BaselineStore, test: TestEvidence, work: WorkloadEvidence) -> list[str]:
    """Lines on one workload of a run, compared with its baseline.  Raises ``BaselineError``."""
    before, after, advice = compare.explained(store, work, work.toolchain, test.device)
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
