"""A workload of a run, explained against its baseline: for the summary of a run and for ``gpuperf explain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from pytest_gpuperf.advise.advice import advise
from pytest_gpuperf.advise.state import state_of
from pytest_gpuperf.advising import arch_to_explain, sides
from pytest_gpuperf.report.explanation import explained

if TYPE_CHECKING:
    from pytest_gpuperf.advise.side import Side
    from pytest_gpuperf.baselines import BaselineStore
    from pytest_gpuperf.session import TestEvidence, WorkloadEvidence


def explain_all(store: BaselineStore, tests: Iterable[TestEvidence]) -> Iterator[str]:
    """Lines on every workload, an empty one behind each.  Raises ``BaselineError``."""
    for test in tests:
        for work in test.workloads:
            yield from explain_workload(store, test, work)
            yield ""


def explain_workload(store: BaselineStore, test: TestEvidence, work: WorkloadEvidence) -> list[str]:
    """Lines on one workload of a run, compared with its baseline.  Raises ``BaselineError``."""
    arch = arch_to_explain(work, test.device)
    before, after = sides(store, work, arch, work.toolchain, test.device)
    advice = work.advice or (advise(before, after) if before is not None else ())
    work = msgspec.structs.replace(work, advice=advice, state=work.state or state_of(after, test.peaks))
    return explained(
        work, after, test.peaks, compared=_compared(before, after), has_baseline=before is not None
    )  # fmt: skip


def _compared(before: Side | None, after: Side) -> str:
    if before is None:
        return "none for this workload: record one with pytest --update-baselines"
    if before.static is None or after.static is None:
        return "times alone"
    return "the machine code is the same" if before.same_code(after) else "the machine code differs"
