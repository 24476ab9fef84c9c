"""What is done with one workload, in this order: run, check, counters, rounds, judgement, run, check.

The order is the promise: nothing is timed before the check has passed, no time counts unless it passes again, and
nothing here writes a baseline.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.early_stop import CheckedOnly, CountersMissing, StaticOnly
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge.counters import not_counted
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import ConfirmTask, OpponentTask, ProfileTask, RevisionTask
from pytest_gpuperf.workload.check import check_again, run_and_check
from pytest_gpuperf.workload.counters import Counted, counted, profile
from pytest_gpuperf.workload.fresh_inputs import FreshInputs
from pytest_gpuperf.workload.measurement import Measurement
from pytest_gpuperf.workload.request import Request

if TYPE_CHECKING:
    from pytest_gpuperf.context.run_state import RunState
    from pytest_gpuperf.workload.gate import Timed
    from pytest_gpuperf.workload.rounds import TimedWorkload


def measure(worker: Worker, book: TestBook, request: Request) -> Measurement:
    """Run, check, measure and judge one workload.  Raises what the check raises, and nothing is timed then."""
    launch, evidence = request.launch, WorkloadEvidence(key=book.open(request.name), tolerance=request.limits.tolerance)
    if launch is not None:  # a callable has no static evidence of its own
        static = {arch: record for arch, record in launch.records().items() if arch in launch.kernel.targets}
        evidence = msgspec.structs.replace(evidence, static=static, toolchain=launch.binary.toolchain)
        binaries = (launch.kernel.binaries[arch] for arch in static)
        book.cubins |= {binary.cubin_hash: binary.cubin for binary in binaries}  # a fixture's kernel is on another book
    book.add(evidence)
    if not worker.has_gpu:
        return _without_gpu(worker, book, request, evidence)
    request = _with_fresh_inputs(worker, request)
    if not worker.options.active:
        run_and_check(worker, request)
        why = CheckedOnly(f"{request.name} was not timed: run pytest --gpuperf")
        return _untimed(worker, request, evidence.static, why)
    stash.run_state_of(worker.config).recorded_ns = _recorded_ns(worker, evidence.key)
    worker.hold_gpu()
    with worker.device.lock():  # who waits for the GPU sees that its holder goes on
        run_and_check(worker, request)
        with worker.device.current():  # anew, for the first run may have been the first that PyTorch saw of the GPU
            return _measured(worker, book, request, evidence)


def _with_fresh_inputs(worker: Worker, request: Request) -> Request:
    """With inputs of its own for each run, where the test asked for that.  Raises ``BadArgument``."""
    if request.inputs is None:
        return request
    with worker.device.current():
        return request.with_fresh(FreshInputs(request.name, request.inputs, request.launch, request.outputs))


def _recorded_ns(worker: Worker, key: Key) -> float:
    """What one run took when its baseline was recorded; 0 if that is not known."""
    baseline = worker.store.time(worker.device.facts.slug, key) if worker.options.times else None
    return max((one.midmean for one in baseline.rounds), default=0.0) if baseline is not None else 0.0


def _measured(worker: Worker, book: TestBook, request: Request, evidence: WorkloadEvidence) -> Measurement:
    """What this run is to find out of a workload that has passed its check."""
    if isinstance(worker.options.task, ProfileTask):
        return _profile(worker, request, evidence, worker.options.task)
    found = counted(worker, evidence.key, request)
    book.add(msgspec.structs.replace(
        evidence, identity=request.identity(), counters=dict(found.counters), counter_ranges=dict(found.ranges),
        judgements=found.judgements,
    ))  # fmt: skip
    if not worker.options.times:
        why = CheckedOnly(f"{request.name} was not timed: run pytest --gpuperf")
        return _untimed(worker, request, evidence.static, why, found.shown)
    state = stash.run_state_of(worker.config)
    state.findings.clear()
    measured = _with_figures(worker, book, request, _time(worker, book, request, found))
    if isinstance(worker.options.task, ConfirmTask):
        from pytest_gpuperf.workload.confirm import leave  # noqa: PLC0415 SciPy comes with it

        for finding in state.findings:
            leave(worker.options.task, finding)
    return measured


def _with_figures(worker: Worker, book: TestBook, request: Request, found: Measurement) -> Measurement:
    """With what the test asks for beside the time; nothing is done where it asks for nothing and none is recorded."""
    baseline = worker.store.time(worker.device.facts.slug, book.key(request.name))
    if not (request.measure or request.accuracy or (baseline is not None and baseline.beside)):
        return found
    from pytest_gpuperf.workload.figures import measure_figures  # noqa: PLC0415 SciPy comes with it

    return found.with_beside(measure_figures(worker, book, request, stash.run_state_of(worker.config)))


def _without_gpu(worker: Worker, book: TestBook, request: Request, evidence: WorkloadEvidence) -> Measurement:
    """Static evidence is all there is, and what would run."""
    asked = worker.gpu.facts_asked
    evidence = msgspec.structs.replace(evidence, identity=request.identity(), cache=request.cache, facts_asked=asked)
    book.add(evidence)
    why = StaticOnly(str(worker.no_device))
    book.stop("static only", str(worker.no_device))
    if worker.options.ncu:
        judgement = not_counted(evidence.key, "any GPU", "there is no GPU")
        book.add(msgspec.structs.replace(evidence, judgements=(judgement,)))
    missing = CountersMissing(f"{request.name} has no counters: {worker.no_device}")
    return _untimed(worker, request, evidence.static, why, missing)


def _profile(worker: Worker, request: Request, evidence: WorkloadEvidence, task: ProfileTask) -> Measurement:
    """In a process under ncu: one run in a range of its own."""
    profile(worker, evidence.key, request, task)
    why = CheckedOnly(f"{request.name}: this process collects counters and takes no times")
    missing = CountersMissing(f"{request.name}: its counters are being collected")
    return _untimed(worker, request, evidence.static, why, missing)


Counters = Mapping[str, float] | Exception | None


def _untimed(
    worker: Worker, request: Request, static: dict[str, StaticRecord], why: Exception, counters: Counters = None
) -> Measurement:
    return Measurement(request.name, static=static, native=worker.native_arch, bytes=request.bytes,
                       flops=request.flops, untimed=why, counters=counters)  # fmt: skip


def _time(worker: Worker, book: TestBook, request: Request, counted: Counted) -> Measurement:
    """Time the workload for what this process is there for; the caller holds the GPU's lock."""
    from pytest_gpuperf.workload import rounds  # noqa: PLC0415 SciPy comes with it

    began = time.perf_counter()
    evidence = book.workloads[request.name]
    work = rounds.TimedWorkload(worker, request, evidence.key, request.identity())
    state = stash.run_state_of(worker.config)
    timed = _timed(work, state)
    judgements = (*counted.judgements, *([timed.judgement] if timed.judgement is not None else []))
    if not timed.rounds:
        book.add(msgspec.structs.replace(evidence, judgements=judgements))
        why = CheckedOnly(f"{request.name}: unchanged, so not timed")
        return _untimed(worker, request, evidence.static, why, counted.shown)
    check_again(worker, request, timed_runs=sum(one.samples for one in timed.rounds))
    state.suspect([timed.suspect])
    state.findings += [timed.finding] if timed.finding is not None else []
    interval = rounds.interval_of([one.midmean for one in timed.rounds])
    book.add(msgspec.structs.replace(
        evidence, time=rounds.record_of(work, timed.rounds), interval_ns=interval, judgements=judgements,
        disturbances=timed.disturbances, seconds=time.perf_counter() - began,
    ))  # fmt: skip
    return Measurement(
        request.name, static=evidence.static, native=worker.native_arch, bytes=request.bytes, flops=request.flops,
        times_ns=tuple(one.midmean for one in timed.rounds), interval_ns=interval, judgement=timed.judgement,
        counters=counted.shown,
    )  # fmt: skip


def _timed(work: TimedWorkload, state: RunState) -> Timed:
    """Gate it, or take a short round where this process is there for something else."""
    from pytest_gpuperf.revision.pairing import serve  # noqa: PLC0415 SciPy comes with them
    from pytest_gpuperf.workload import aa_test, gate, rounds  # noqa: PLC0415

    worker, request, task = work.worker, work.request, work.worker.options.task
    if isinstance(task, OpponentTask) and state.link is not None and request.launch is None:
        serve(worker, state.link, request.name, work.identity, request.workload, request.reset)
    if isinstance(task, OpponentTask | RevisionTask) or (
        isinstance(task, ConfirmTask) and not task.confirms(work.key)
    ):  # fmt: skip
        return gate.Timed(rounds.one_round(work).rounds)
    timed = gate.gate_time(work, state)
    if worker.options.update is not None and timed.rounds:
        taken = rounds.take_for_record(work)
        timed = dataclasses.replace(timed, rounds=taken.rounds, disturbances=taken.disturbed)
    aa_test.run_if_chosen(work, state)
    return timed
