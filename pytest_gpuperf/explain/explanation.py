"""A workload explained: its state, its figures, what differs from the baseline, and of what cause.

For the summary of a run and for ``gpuperf explain``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pytest_gpuperf.advise.comparison import WARP, Side
from pytest_gpuperf.advise.limiting_resource import NO_ROOFLINE, state_of
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.explain.comparison import Estimates, WorkloadComparison, explain_each
from pytest_gpuperf.formatting import duration, quantity
from pytest_gpuperf.model.advice import State
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence, unpacked
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.report.message import INDENT, advice_lines, described, state_line, wrapped

MOST_CAUSES = 4


def explain_all(
    store: BaselineStore, workloads: Sequence[tuple[TestEvidence, WorkloadEvidence]], cache: CompileCache | None
) -> Iterator[str]:
    """Lines on each of these workloads of a run, an empty one behind each.  Raises ``BaselineError``."""
    estimates = Estimates(store, unpacked(test for test, _ in workloads), cache)
    comparisons = [
        WorkloadComparison(store, estimates, work, work.toolchain, one.workloads, one.device) for one, work in workloads
    ]
    for (test, work), (before, after, advice) in zip(workloads, explain_each(estimates, comparisons), strict=True):
        yield from explained(work.key, after, work.state or state_of(after, test.peaks))
        yield from wrapped(f"baseline: {_compared(work, before, after)}", INDENT)
        telling = [one for one in work.judgements if one.verdict not in (Verdict.UNCHANGED, Verdict.NEW)]
        yield from (f"{' ' * INDENT}{line}" for line in described(telling))
        named = work.advice or advice
        yield from advice_lines(named, MOST_CAUSES)
        if not named:
            none = "none can be named without a baseline" if before is None else "none found"
            yield from wrapped(f"cause: {none}", INDENT)
        yield ""


def _compared(work: WorkloadEvidence, before: Side | None, after: Side) -> str:
    """What the workload was compared with."""
    if before is None:
        if any(judgement.verdict is Verdict.NOT_COMPARABLE for judgement in work.judgements):
            return "none that this workload can be compared with"
        return "none for this workload: record one with pytest --update-baselines"
    if before.static is None or after.static is None:
        return "times and counters" if before.counters and after.counters else "times alone"
    return f"the machine code {'is the same' if before.same_code(after) else 'differs'}"


def explained(key: Key, side: Side, state: State | None) -> list[str]:
    """Lines on the state and the figures of one workload by itself."""
    if state is None:
        lines = wrapped(f"state: unknown: without counters (--gpuperf-ncu=full) {NO_ROOFLINE}", INDENT)
    else:
        least = f"unknown: {NO_ROOFLINE}" if state.roofline is None else f"{state.roofline:.0%}"
        lines = [*wrapped(f"state: {state_line(state)}", INDENT), *wrapped(f"roofline: {least}", INDENT)]
    return [str(key), *lines, *wrapped(f"figures: {', '.join(_figures(side))}", INDENT)]


def _figures(side: Side) -> list[str]:
    found = []
    if side.time_ns is not None:
        found.append(f"time {duration(side.time_ns)}")
        if side.bytes is not None:
            found.append(quantity(side.bytes / side.time_ns * 1e9, "B/s"))
        if side.flops is not None:
            found.append(quantity(side.flops / side.time_ns * 1e9, "FLOP/s"))
    if side.static is not None:
        found += _static_figures(side, side.static)
    return found or ["none"]


def _static_figures(side: Side, record: StaticRecord) -> list[str]:
    profile, run = record.profile, side.estimate
    spilled = "unknown" if profile.spill_bytes is None else profile.spill_bytes
    found = [f"{profile.registers} registers", f"{spilled} spilled bytes"]
    if record.occupancy is not None:
        found.append(f"occupancy {record.occupancy.fraction:.0%} (limited by {record.occupancy.limiter})")
    if run is not None:
        sectors = [(a.times, a.sectors) for a in run.accesses if a.op.startswith("global") and a.sectors is not None]
        turns = [(a.times, a.turns) for a in run.accesses if a.op.startswith("shared") and a.turns is not None]
        if sectors:
            found.append(f"{_mean(sectors):.3g} sectors per global request")
        if turns:
            found.append(f"{_mean(turns):.3g} passes per shared-memory access")
        size = side.block_size or WARP
        lanes = run.lanes * size / (math.ceil(size / WARP) * WARP)
        found.append(f"{lanes:.3g} of {WARP} lanes active")
    return [*found[:-1], f"{found[-1]} ({side.arch})"]


def _mean(weighted: list[tuple[float, float]]) -> float:
    return sum(times * figure for times, figure in weighted) / (sum(times for times, _ in weighted) or 1.0)
