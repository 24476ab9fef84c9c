"""Gating a workload's time: what it is compared with, and the verdict.  What is slower waits for a second process.

An unchanged kernel is not compared.  A changed one runs beside the machine code of its baseline, a callable beside the
revision of its baseline in a process of its own.  ``judge`` decides.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
from collections.abc import Callable, Sequence

import msgspec

from pytest_gpuperf.compile.machine_code.symbols import readable
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.formatting import duration
from pytest_gpuperf.judge import time_verdict
from pytest_gpuperf.judge.decision import CONFIRMING_ALPHA, Comparison
from pytest_gpuperf.judge.same_work import explain, other_arguments
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect, TimeCase
from pytest_gpuperf.model.time_record import RecordedRound, Round, TimeRecord, mean_time_ns, rounds_on
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.revision.pairing import compare_with_revision, may_have_changed
from pytest_gpuperf.revision.process import NotPaired
from pytest_gpuperf.timing.compare import Compared, compare
from pytest_gpuperf.timing.cubin_opponent import BaselineLaunch, CubinOpponent
from pytest_gpuperf.timing.process_opponent import limits_of_processes
from pytest_gpuperf.timing.rounds import Rounds
from pytest_gpuperf.workload.baseline_kernel import NotLaunched, baseline_launch, changes_since
from pytest_gpuperf.workload.timed_workload import UNCHANGED_ROUNDS, UNCHANGED_S, TimedWorkload, one_round, take

MOST_KERNELS = 8
"""Of a callable that a note names."""


@dataclasses.dataclass(frozen=True)
class Timed:
    """What became of a workload's time."""

    rounds: tuple[Round, ...]
    judgement: Judgement | None = None
    disturbances: tuple[str, ...] = ()
    suspect: Suspect | None = None
    """Waits for another process, at the end of the test."""
    comparison: Comparison | None = None
    problem: str = ""
    """Why there is none, for the process that this one confirms for."""

    @classmethod
    def unpaired(cls, taken: Rounds, judgement: Judgement, problem: str) -> Timed:
        return cls(taken.rounds, judgement, taken.disturbed, problem=problem)


def gate_time(work: TimedWorkload) -> Timed:
    """Compare a workload with its baseline, and judge it."""
    record = work.baseline
    case = _case(work, record)
    if record is None or not (record.rounds or work.worker.revision):
        taken = take(work)
        return Timed.unpaired(taken, time_verdict.new(case, taken.time_ns), "there is no baseline")
    if work.request.launch is None:
        return _gate_callable(work, case, record)
    if work.worker.options.time == "all" or not work.identity.same_execution(record.identity):
        return _gate_kernel(work, case, record, work.request.launch)
    reason = "the machine code and its launch are those of the baseline"
    if work.worker.options.time == "changed":
        return Timed((), time_verdict.unchanged(case, f"{reason}; not timed"))
    budget_s = min(UNCHANGED_S, work.request.budget_s)
    taken = take(work, UNCHANGED_ROUNDS, budget_s) if case.record_ns else one_round(work)
    return Timed.unpaired(taken, time_verdict.unchanged(case, reason, taken.time_ns), reason)


def _case(work: TimedWorkload, record: TimeRecord | None) -> TimeCase:
    cause, here, new = "", _recorded_here(work, record), work.identity
    if work.request.launch is not None and record is not None and not new.same_execution(old := record.identity):
        cause = explain(old, new)
        cause += "; the baseline ran with its own" if other_arguments(old, new) else ""
    return TimeCase(
        key=work.key, target=work.target, limits=work.request.limits, pair_slot=work.request.pair_slot,
        alpha=CONFIRMING_ALPHA if work.confirms else work.worker.next_share(work.key.node_id),
        cause=cause, record_ns=mean_time_ns(here) if here else 0.0,
    )  # fmt: skip


def _recorded_here(work: TimedWorkload, record: TimeRecord | None) -> Sequence[RecordedRound]:
    """The rounds on record that today's compare with: by this timer and cache state, on this GPU if there are any."""
    taken_alike = record is not None and (record.cache, record.timer) == (work.request.cache, work.worker.timer.name)
    if record is None or not taken_alike or work.worker.revision is not None:
        return ()
    return rounds_on(work.worker.device.facts.uuid, record) or record.rounds


# --- kernels -------------------------------------------------------------------------------------


def _gate_kernel(work: TimedWorkload, case: TimeCase, record: TimeRecord, launch: Launch) -> Timed:
    """Let the baseline's machine code run beside the candidate's."""
    problem = ""
    try:
        baseline = baseline_launch(work.worker, work.key, record, launch)
        compared = compare_with_baseline(work, case, launch, baseline, work.request.budget_s)
    except NotLaunched as error:
        problem = str(error)
    except LoadError as error:
        problem = f"the baseline's machine code cannot be loaded: {error}"
    if problem:  # behind the handlers, whose error would keep the copies of the arrays
        return _not_comparable(take(work), case, problem)
    first = compared.comparison
    judgement = time_verdict.by_blocks(case, first)
    if judgement.verdict is Verdict.SLOWER:
        changes = changes_since(work.worker, work.key, record, launch)
        judgement = msgspec.structs.replace(judgement, changes=changes)

    def settle(found: Sequence[Confirmation]) -> Judgement:
        return time_verdict.by_blocks(case, first, found[0].comparison)

    return Timed(compared.rounds, judgement, (), _suspect(work, judgement, settle, first.seconds), first)


def compare_with_baseline(
    work: TimedWorkload, case: TimeCase, launch: Launch, baseline: BaselineLaunch, budget_s: float
) -> Compared:
    """Paired blocks of the baseline's machine code and the workload's launch.  Raises ``LoadError``."""
    worker, request = work.worker, work.request
    opponent = CubinOpponent(worker.device, worker.timer, launch, baseline, reset=request.reset, cache=request.cache)
    return compare(
        worker.device, opponent, case.limits, case.alpha, seed=secrets.randbits(32), duration_ns=work.expected_ns(),
        budget_s=budget_s, burst=case.pair_slot == "sustained", session=worker.session.id,
    )  # fmt: skip


def _not_comparable(taken: Rounds, case: TimeCase, why: str) -> Timed:
    return Timed.unpaired(taken, time_verdict.not_comparable(case, why, taken.time_ns), why)


# --- callables -----------------------------------------------------------------------------------


def _gate_callable(work: TimedWorkload, case: TimeCase, record: TimeRecord) -> Timed:
    """Let the baseline's revision run the callable beside this one, each in its process."""
    worker, options = work.worker, work.worker.options
    taken = take(work, budget_s=work.request.budget_s / 4)
    now_ns = taken.time_ns
    if record.identity.launch != work.identity.launch:
        was, now = record.identity.launch, work.identity.launch
        return _not_comparable(taken, case, f"the workload changed: launch {was} became {now}")
    bound = time_verdict.record_bound(record.rounds) if record.rounds else math.inf
    by_choice = options.time == "all" or worker.revision is not None or work.confirms
    if not by_choice and now_ns <= bound * (case.record_ns or now_ns) and not may_have_changed(worker, work.key):
        reason = "no file that it may run changed since the commit of its record"
        return Timed.unpaired(taken, time_verdict.unchanged(case, reason, now_ns), reason)
    case = dataclasses.replace(case, limits=limits_of_processes(case.limits, now_ns), by_process=True)
    try:
        compared = compare_with_revision(
            worker, work.key, work.identity, work.request.workload, work.request.reset, case.limits, case.alpha,
            cache=work.request.cache, duration_ns=now_ns, budget_s=work.request.budget_s,
        )  # fmt: skip
    except NotPaired as problem:
        return _by_record(work, case, taken, bound, str(problem))
    first, kernels = compared.comparison, _kernels_of(work)

    def settle(found: Sequence[Confirmation]) -> Judgement | None:
        judged = time_verdict.by_processes(case, [first, *(one.comparison for one in found if one.comparison)])
        return judged and _with_kernels(judged, kernels)

    judgement = _with_kernels(time_verdict.by_blocks(case, first), kernels)
    suspect = _suspect(work, judgement, settle, first.seconds)
    return Timed(taken.rounds, judgement, taken.disturbed, suspect, first)


def _by_record(work: TimedWorkload, case: TimeCase, taken: Rounds, bound: float, obstacle: str) -> Timed:
    """The verdict on a callable that cannot be paired, for this reason."""
    now_ns, revision = taken.time_ns, work.worker.revision
    if revision is not None:
        return _not_comparable(taken, case, f"it cannot be paired with {revision.name}: {obstacle}")
    other = _other_machine(work) if case.record_ns else "it was recorded with another timer or cache state"
    if other:
        reason = f"its record proves nothing here ({other}); not paired: {obstacle}"
        judged = case.judgement(Verdict.INCONCLUSIVE, reason, now_ns=now_ns)
        return Timed.unpaired(taken, judged, obstacle)
    kernels = _kernels_of(work)

    def settle(found: Sequence[Confirmation]) -> Judgement:
        times_ns = [now_ns, *(one.time_ns for one in found[:1])]
        return _with_kernels(time_verdict.by_record(case, times_ns, bound, obstacle), kernels)

    judgement = settle(())
    return Timed(taken.rounds, judgement, taken.disturbed, _suspect(work, judgement, settle))


def _other_machine(work: TimedWorkload) -> str:
    """The driver, if it differs from that of every session on record; else empty."""
    record, driver = work.baseline, work.worker.session.driver
    drivers = {one.driver for one in record.sessions} if record is not None else set()
    return "" if driver in drivers else f"driver {', '.join(sorted(drivers)) or 'unknown'}, now {driver}"


def _kernels_of(work: TimedWorkload) -> str:
    """The callable's kernels by their time in its last slot, as a note; empty where the timer sees no kernels."""
    seen = work.worker.timer.kernel_breakdown
    kernels = sorted(seen[-1].items() if seen else (), key=lambda one: -one[1])
    shown = [f"{readable(name)} {duration(ns)}" for name, ns in kernels[:MOST_KERNELS]]
    more = [f"and {len(kernels) - MOST_KERNELS} more"] if len(kernels) > MOST_KERNELS else []
    return f"its kernels: {', '.join(shown + more)}" if kernels else ""


def _with_kernels(judgement: Judgement, kernels: str) -> Judgement:
    """With this note on its kernels, where it did not pass."""
    notes = () if judgement.verdict.is_pass or not kernels else (kernels,)
    return msgspec.structs.replace(judgement, notes=(*judgement.notes, *notes))


def _suspect(
    work: TimedWorkload, judgement: Judgement, settle: Callable[[Sequence[Confirmation]], Judgement | None],
    seconds: float = 0.0,
) -> Suspect | None:  # fmt: skip
    if judgement.verdict is not Verdict.SLOWER or work.confirms:
        return None
    return Suspect(judgement, work.identity, settle, max(work.request.budget_s, seconds))
