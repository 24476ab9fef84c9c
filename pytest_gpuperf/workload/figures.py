"""What a workload costs beside its time, measured and judged: device memory, host time, and its error.

Only what the test asks for is measured, after the time, so that nothing of it is in the time.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from pytest_gpuperf.config.call_arguments import number_of
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.run_state import RunState
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge import secondary
from pytest_gpuperf.judge.decision import CONFIRMING_ALPHA, MOST_BLOCKS, Comparison, decide, is_promising, is_unanimous
from pytest_gpuperf.judge.suspects import Confirmation, Suspect
from pytest_gpuperf.model.beside_figures import Beside, HostTime
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ConfirmTask, Place
from pytest_gpuperf.model.tolerance import Limits
from pytest_gpuperf.model.verdict import BESIDE, BESIDE_FIELDS, BesideEvidence, Judgement, Verdict
from pytest_gpuperf.timing.compare import BUDGETS
from pytest_gpuperf.timing.host_blocks import (
    HostBlock,
    blocks_beside,
    calls_of,
    cpu_model,
    host_cost,
    interpreter,
    interpreter_cost,
)
from pytest_gpuperf.workload.array_bytes import array_bytes
from pytest_gpuperf.workload.check import WrongResult
from pytest_gpuperf.workload.request import Request

RECORDED_BLOCKS = 16
"""Of a host time that is compared with nothing, one to be recorded among them."""


@dataclasses.dataclass(frozen=True)
class FigureWork:
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
        error: tuple[BesideEvidence, ...] = ("accuracy",) if self.request.accuracy is not None else ()
        return (*error, *(kind for kind in BESIDE if kind in self.request.measure))

    @property
    def target(self) -> str:
        return self.worker.device.facts.slug

    @property
    def record(self) -> Beside:
        """Recorded figures; empty without any."""
        baseline = self.worker.store.time(self.target, self.key)
        return (baseline.beside if baseline is not None else None) or Beside()

    @property
    def gates(self) -> bool:
        return self.worker.options.gates and not self.worker.options.is_child

    @property
    def confirms(self) -> bool:
        """Whether this process confirms its host time for another one."""
        task = self.worker.options.task
        return isinstance(task, ConfirmTask) and Place(key=self.key, kind="host") in task.places


def measure_figures(worker: Worker, book: TestBook, request: Request, state: RunState) -> Beside:
    """Measure what was asked for, and put it on the book with its judgements; the caller holds the GPU's lock.

    Raises ``WrongResult`` for an error that is no number, and what the test's own functions raise.
    """
    evidence = book.workloads[request.name]
    timed = evidence.time.rounds if evidence.time is not None else ()
    time_ns = statistics.median(one.midmean for one in timed) if timed else state.recorded_ns
    work = FigureWork(worker, request, evidence.key, state, time_ns)
    figures: dict[str, Any] = {}
    judged = list(_not_asked_for(work))
    for kind in work.asked:
        value, judgement = _STEPS[kind](work)
        figures[BESIDE_FIELDS[kind]] = value
        judged += judgement
    found = Beside(**figures)
    book.add(msgspec.structs.replace(evidence, beside=found, judgements=(*evidence.judgements, *judged)))
    return found


def _not_asked_for(work: FigureWork) -> Iterator[Judgement]:
    """Of recorded figures that a test no longer asks for, so that none passes unseen."""
    for kind in BESIDE:
        if work.gates and kind not in work.asked and getattr(work.record, BESIDE_FIELDS[kind]) is not None:
            yield secondary.not_asked_for(work.key, work.target, kind)


def _exactly(work: FigureWork, kind: BesideEvidence, after: float, tolerance: float | None) -> list[Judgement]:
    if not work.gates:
        return []
    before = getattr(work.record, BESIDE_FIELDS[kind])
    if before is None:
        return [secondary.new(work.key, work.target, kind)]
    return [secondary.judge_exact(work.key, work.target, kind, before, after, tolerance)]


def _accuracy(work: FigureWork) -> tuple[float, list[Judgement]]:
    """What the test's ``accuracy=`` says of one run."""
    request = work.request
    if request.reset is not None:
        request.reset()
    request.workload()
    work.worker.device.synchronize()
    answer = request.accuracy() if request.accuracy is not None else None
    error = number_of(answer)
    if not 0 <= error < math.inf:
        raise WrongResult(
            f"{request.name}: accuracy= returned {answer!r}, which is no error of a result: it takes a finite number "
            "from 0 on; NaN in a result is for check= to refuse"
        )
    return error, _exactly(work, "accuracy", error, None)


def _memory(work: FigureWork) -> tuple[int, list[Judgement]]:
    """Of a launch its arrays, and of any workload what one run allocates."""
    request = work.request
    if request.reset is not None:
        request.reset()
    arrays = array_bytes(request.launch) if request.launch is not None else 0
    size = arrays + work.worker.device.bytes_of(request.workload)
    return size, _exactly(work, "memory", size, request.measure["memory"])


def _host(work: FigureWork) -> tuple[HostTime, list[Judgement]]:
    """The ratio of its host time to fixed work, judged where this process gates.  A loss waits for a second process."""
    request, device = work.request, work.worker.device
    cost = host_cost(request.workload, request.reset, device.synchronize, calls_of(work.time_ns))
    blocks = blocks_beside(cost, interpreter_cost, secrets.randbits(32))
    record, limits = work.record.host, secondary.limits_of(request.measure["host"])
    now = HostTime(ratios=(1.0,), time_ns=1.0, cpu=cpu_model(), made_by=interpreter(device.facts.driver))
    obstacle = None if record is None else secondary.incomparable(work.key, work.target, record, now)
    if record is None or obstacle is not None or not (work.gates or work.confirms):
        judged = [obstacle or secondary.new(work.key, work.target, "host")] if work.gates else []
        return _figure(now, [next(blocks) for _ in range(RECORDED_BLOCKS)]), judged
    alpha = CONFIRMING_ALPHA if work.confirms else work.state.next_share(work.key.node_id)
    taken = until_decided(blocks, secondary.recorded_log(record), limits, alpha, request.budget_s)
    first, figure = _comparison(taken, record), _figure(now, taken)
    if work.confirms:
        work.state.findings.append(Confirmation(
            key=work.key, kind="host", identity=request.identity(), comparison=first
        ))  # fmt: skip
        return figure, []

    def settle(found: Sequence[Confirmation]) -> Judgement | None:
        later = [one.comparison for one in found if one.comparison is not None]
        return secondary.judge_host_time(work.key, work.target, record, limits, alpha, [first, *later])

    judgement = secondary.judge_host_time(work.key, work.target, record, limits, alpha, [first])
    assert judgement is not None
    if judgement.verdict in (Verdict.WORSE, Verdict.BETTER):
        work.state.suspect([Suspect(judgement, request.identity(), settle, request.budget_s)])
    return figure, [judgement]


_STEPS: Mapping[BesideEvidence, Callable[[FigureWork], tuple[object, list[Judgement]]]] = MappingProxyType({
    "accuracy": _accuracy, "memory": _memory, "host": _host,
})  # fmt: skip


def until_decided(
    blocks: Iterator[HostBlock], recorded: float, limits: Limits, alpha: float, budget_s: float
) -> list[HostBlock]:
    """Blocks until they decide against the ``recorded`` log ratio, or the budget is spent (as ``timing.compare``)."""
    began, taken = time.perf_counter(), list[HostBlock]()
    while len(taken) < MOST_BLOCKS:
        taken.append(next(blocks))
        r = [one.r - recorded for one in taken]
        if decide(r, limits, alpha) is not None:
            break
        budgets = (time.perf_counter() - began) / budget_s
        if budgets > 1 and not is_unanimous(r, limits) and (budgets > BUDGETS or not is_promising(r, limits)):
            break
    return taken


def _comparison(taken: Sequence[HostBlock], record: HostTime) -> Comparison:
    r = tuple(one.r - secondary.recorded_log(record) for one in taken)
    return Comparison(r=r, means=(), seed=0, time_ns=statistics.median(one.time_ns for one in taken))


def _figure(now: HostTime, taken: Sequence[HostBlock]) -> HostTime:
    ratio = math.exp(statistics.median(one.r for one in taken))
    return msgspec.structs.replace(
        now, ratios=(ratio,), time_ns=statistics.median(one.time_ns for one in taken)
    )  # fmt: skip
