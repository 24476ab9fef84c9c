"""What a workload costs beside its time, measured and judged: memory, time of the CPU, and its error.

Only what the test asks for is measured, after the time, so that nothing of it is in the time.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from pytest_gpuperf.config.call_arguments import number_of
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge import beside_verdict
from pytest_gpuperf.judge.block_decision import Paired
from pytest_gpuperf.judge.clear_case import blocks_to_decide
from pytest_gpuperf.judge.error_budget import ALPHA, ALPHA_FASTER
from pytest_gpuperf.judge.policy import CONFIRMATION_ALPHA, Decision, Policy
from pytest_gpuperf.model.beside_figures import Beside, HostTime
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.model.verdict import BESIDE, BESIDE_FIELDS, BesideEvidence, Judgement, Verdict
from pytest_gpuperf.timing.host_blocks import (
    HostBlock,
    blocks_beside,
    calls_of,
    cpu_model,
    host_cost,
    interpreter,
    interpreter_cost,
)
from pytest_gpuperf.timing.pending_confirmations import BesidePending
from pytest_gpuperf.workload.confirm_beside import leave_blocks
from pytest_gpuperf.workload.declared_rates import known_array_bytes
from pytest_gpuperf.workload.request import Request
from pytest_gpuperf.workload.result_check import WrongResult

BLOCKS = 16
"""Of a host time that is compared with nothing, one for the record of a process among them."""
LEANING = 4
"""Budgets of what is worse by the blocks so far, and not proven to be."""


@dataclasses.dataclass(frozen=True)
class BesideWork:
    """One workload, and what it was asked for."""

    worker: Worker
    request: Request
    key: Key
    state: RunState
    time_ns: float
    """About what one run takes on the GPU; 0 if that is not known."""

    @property
    def asked(self) -> tuple[BesideEvidence, ...]:
        """What to measure, in this order: the error is that of a run of its own."""
        error = ("accuracy",) if self.request.accuracy is not None else ()
        return (*error, *(kind for kind in BESIDE if kind in self.request.measure))

    @property
    def target(self) -> str:
        return self.worker.device.facts.slug

    @property
    def record(self) -> Beside:
        """What is on record; empty without one."""
        baseline = self.worker.store.time(self.target, self.key)
        return (baseline.beside if baseline is not None else None) or Beside()

    @property
    def gates(self) -> bool:
        return self.worker.options.gates and not self.worker.options.is_child


def measure_beside(worker: Worker, book: TestBook, request: Request, state: RunState) -> Beside:
    """Measure what was asked for, and put it on the book with its judgements; the caller holds the GPU's lock.

    Raises ``WrongResult`` for an error that is no number, and what the test's own functions raise.
    """
    evidence = book.workloads[request.name]
    timed = evidence.time.rounds if evidence.time is not None else ()
    time_ns = statistics.median(one.midmean for one in timed) if timed else state.recorded_ns
    work = BesideWork(worker, request, evidence.key, state, time_ns)
    figures: dict[str, Any] = {}
    judged = list(_not_asked_for(work))
    for kind in work.asked:
        value, judgement = _STEPS[kind](work)
        figures[BESIDE_FIELDS[kind]] = value
        judged += judgement
    found = Beside(**figures)
    book.add(msgspec.structs.replace(evidence, beside=found, judgements=(*evidence.judgements, *judged)))
    if isinstance(worker.options.task, ConfirmTask):
        leave_blocks(worker.options.task, state, evidence.key)
    return found


def _not_asked_for(work: BesideWork) -> Iterator[Judgement]:
    """Of what is on record: a test that does not ask for it any more lets it pass unseen."""
    for kind in BESIDE:
        if work.gates and kind not in work.asked and getattr(work.record, BESIDE_FIELDS[kind]) is not None:
            yield beside_verdict.not_asked_for(work.key, work.target, kind)


def _exactly(work: BesideWork, kind: BesideEvidence, after: float, tolerance: float | None) -> list[Judgement]:
    if not work.gates:
        return []
    before = getattr(work.record, BESIDE_FIELDS[kind])
    if before is None:
        return [beside_verdict.new(work.key, work.target, kind)]
    return [beside_verdict.judge_exact(work.key, work.target, kind, before, after, tolerance)]


def _accuracy(work: BesideWork) -> tuple[float, list[Judgement]]:
    """What the test's ``accuracy=`` says of one run."""
    request = work.request
    if request.reset is not None:
        request.reset()
    request.workload()
    work.worker.device.synchronize()
    said = request.accuracy() if request.accuracy is not None else None
    error = number_of(said)
    if not 0 <= error < math.inf:
        raise WrongResult(
            f"{request.name}: accuracy= returned {said!r}, which is no error of a result: it takes a finite number "
            "from 0 on; NaN in a result is for check= to refuse"
        )
    return error, _exactly(work, "accuracy", error, None)


def _memory(work: BesideWork) -> tuple[int, list[Judgement]]:
    """Of a launch its arrays, and of any workload what one run allocates."""
    request = work.request
    if request.reset is not None:
        request.reset()
    arrays = known_array_bytes(request.launch) if request.launch is not None else 0
    size = arrays + work.worker.device.bytes_of(request.workload)
    return size, _exactly(work, "memory", size, request.measure["memory"])


def _host(work: BesideWork) -> tuple[HostTime, list[Judgement]]:
    request, device = work.request, work.worker.device
    cost = host_cost(request.workload, request.reset, device.synchronize, calls_of(work.time_ns))
    blocks = blocks_beside(cost, interpreter_cost, secrets.randbits(32))
    return _host_time(work, blocks, interpreter(device.facts.driver))


_STEPS: Mapping[BesideEvidence, Callable[[BesideWork], tuple[object, list[Judgement]]]] = MappingProxyType({
    "accuracy": _accuracy, "memory": _memory, "host": _host,
})  # fmt: skip


def _host_time(work: BesideWork, blocks: Iterator[HostBlock], made_by: str) -> tuple[HostTime, list[Judgement]]:
    """The ratio of these blocks, and their judgement where this process gates.  What changed waits for a second one.

    A confirming process judges as strictly as it has to, and leaves its blocks.
    """
    kind: BesideEvidence = "host"
    record, tolerance = work.record.host, work.request.measure["host"]
    now = HostTime(ratios=(1.0,), time_ns=1.0, cpu=cpu_model(), made_by=made_by)
    confirms = isinstance(work.worker.options.task, ConfirmTask) and work.key in work.worker.options.task.beside
    obstacle = None if record is None else beside_verdict.incomparable(work.key, work.target, kind, record, now)
    if record is None or obstacle is not None or not (work.gates or confirms):
        taken = [next(blocks) for _ in range(BLOCKS)]
        judged = [obstacle or beside_verdict.new(work.key, work.target, kind)] if work.gates else []
        return _figure(now, taken), judged
    alpha = CONFIRMATION_ALPHA if confirms else work.state.next_share()
    faster = CONFIRMATION_ALPHA if confirms else alpha * ALPHA_FASTER / ALPHA
    policy = beside_verdict.policy_of(kind, tolerance, alpha, faster)
    taken, paired = taken_until_decided(blocks, record, policy, work.request.budget_s, time.perf_counter)
    r, figure = tuple(one.r for one in taken), _figure(now, taken)
    if confirms:
        work.state.confirming_blocks.setdefault(work.key, {})[kind] = r
        return figure, []
    least = beside_verdict.least_time_ns(record, policy)
    judgement = beside_verdict.judge_host_time(work.key, work.target, kind, paired, figure.time_ns, least)
    if judgement.verdict in (Verdict.WORSE, Verdict.BETTER):
        pending = BesidePending("host", record, policy, paired, figure.time_ns, judgement, work.request.budget_s)
        work.state.pending_beside.setdefault(work.key, []).append(pending)
    return figure, [judgement]


def taken_until_decided(
    blocks: Iterator[HostBlock], record: HostTime, policy: Policy, budget_s: float,
    clock: Callable[[], float],
) -> tuple[list[HostBlock], Paired]:  # fmt: skip
    """Blocks until they decide, or the budget is spent; a clear case goes on until it is decided.

    What leans to WORSE has ``LEANING`` budgets: more blocks cost a change its time, and not the error rate.
    """
    begin, taken = clock(), list[HostBlock]()
    while True:
        taken.append(next(blocks))
        r = [one.r for one in taken]
        paired = beside_verdict.decided(r, record, policy)
        if paired.decision is not Decision.CONTINUE:
            return taken, paired
        ends = begin + budget_s * (LEANING if paired.evidence.log_e_slower > 0 else 1)
        if clock() > ends and not len(r) < blocks_to_decide(beside_verdict.against(r, record), policy) < math.inf:
            return taken, beside_verdict.decided(r, record, policy, stopped=True)


def _figure(now: HostTime, taken: list[HostBlock]) -> HostTime:
    ratio = math.exp(statistics.median(one.r for one in taken))
    return msgspec.structs.replace(
        now, ratios=(ratio,), time_ns=statistics.median(one.time_ns for one in taken)
    )  # fmt: skip
