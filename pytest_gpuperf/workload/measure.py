"""What is done with one workload, in this order: run, check, counters, rounds, judgement, run, check.

The order is the promise: nothing is timed before the check has passed, no time counts unless it passes again, and
nothing here writes a baseline.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.early_stop import CheckedOnly, CountersMissing, StaticOnly
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.judge.counter_verdict import not_counted
from pytest_gpuperf.judge.plausibility import Implausible
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import ConfirmTask, OpponentTask, ProfileTask, RecordTask, RevisionTask
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.workload import profiled_run
from pytest_gpuperf.workload.check_fingerprint import fingerprint
from pytest_gpuperf.workload.checked_run import check_again, run_and_check
from pytest_gpuperf.workload.counter_evidence import Counted, counted
from pytest_gpuperf.workload.declared_rates import beyond_limits
from pytest_gpuperf.workload.guarded_check import guarded
from pytest_gpuperf.workload.measurement import ImplausibleFigure, Measurement
from pytest_gpuperf.workload.request import Request
from pytest_gpuperf.workload.untouched import require_untouched


def measure(worker: Worker, book: TestBook, request: Request) -> Measurement:
    """Run, check, measure and judge one workload.  Raises what the check raises, and nothing is timed then."""
    launch, evidence = (
        request.launch,
        WorkloadEvidence(key=book.open(request.name), check=_check(worker, request), tolerance=request.zone.delta),
    )
    if launch is not None:  # a callable has no static evidence of its own
        static = {arch: record for arch, record in launch.records().items() if arch in launch.kernel.targets}
        evidence = msgspec.structs.replace(evidence, static=static, toolchain=launch.binary.toolchain)
        binaries = (launch.kernel.binaries[arch] for arch in static)
        book.cubins |= {binary.cubin_hash: binary.cubin for binary in binaries}  # a fixture's kernel is on another book
    book.add(evidence)
    if not worker.has_gpu:
        return _without_gpu(worker, book, request, evidence)
    request = _guarded(worker, request)
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


def _guarded(worker: Worker, request: Request) -> Request:
    """With what guards its runs, where the test asked for that."""
    if request.inputs is None and not request.outputs:
        return request
    with worker.device.current():
        return guarded(worker.device, request, worker.options.seed)


def _recorded_ns(worker: Worker, key: Key) -> float:
    """What one run took when its baseline was recorded; 0 if that is not known."""
    baseline = worker.store.time(worker.device.facts.slug, key) if worker.options.times else None
    return max((one.midmean for one in baseline.rounds), default=0.0) if baseline is not None else 0.0


def _check(worker: Worker, request: Request) -> str:
    """What checks the result, where that is compared: with another revision, and in its process."""
    if worker.revision is None and not isinstance(worker.options.task, RevisionTask):
        return ""
    return fingerprint(request.check)


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
    return _with_beside(worker, book, request, _time(worker, book, request, found))


def _with_beside(worker: Worker, book: TestBook, request: Request, found: Measurement) -> Measurement:
    """With what the test asks for beside the time; nothing is done where it asks for nothing and none is on record."""
    baseline = worker.store.time(worker.device.facts.slug, book.key(request.name))
    if not (request.measure or request.accuracy or (baseline is not None and baseline.beside)):
        return found
    from pytest_gpuperf.workload.measure_beside import measure_beside  # noqa: PLC0415 SciPy comes with it

    return found.with_beside(measure_beside(worker, book, request, stash.run_state_of(worker.config)))


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
    profiled_run.profile(worker, evidence.key, request, task)
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
    """Take rounds for what this process is there for, and put them on record; the caller holds the GPU's lock."""
    from pytest_gpuperf.workload import (  # noqa: PLC0415 SciPy comes with them
        confirm_time,
        gate_time,
        record_time,
        take_turns,
        timed_rounds,
    )

    began = time.perf_counter()
    evidence = book.workloads[request.name]
    work = timed_rounds.TimedWorkload(worker, request, evidence.key, request.identity())
    task, state = worker.options.task, stash.run_state_of(worker.config)
    with _nothing_waits_if_wrong(worker, evidence.key):
        if isinstance(task, RecordTask):
            taken = record_time.record_time(work, task, state)
        elif isinstance(task, RevisionTask):
            taken = record_time.one_round(work)
        elif isinstance(task, OpponentTask):
            taken = take_turns.take_turns(work, state)
        elif isinstance(task, ConfirmTask):
            taken = confirm_time.confirm_time(work, task)
        else:
            taken = gate_time.gate_time(work, state)
    judgements = (*counted.judgements, *filter(None, [taken.judgement]))
    if not taken.rounds:
        book.add(msgspec.structs.replace(evidence, judgements=judgements))
        why = CheckedOnly(f"{request.name}: unchanged, so not timed")
        return _untimed(worker, request, evidence.static, why, counted.shown)
    beyond = beyond_limits(worker.device.facts, request, taken.rounds)
    if not isinstance(task, ConfirmTask):  # that one has left what it found, and checked it before
        _check_times(worker, request, evidence.key, taken.rounds, beyond)
    interval = timed_rounds.interval_of([one.midmean for one in taken.rounds])
    book.add(msgspec.structs.replace(
        evidence, time=timed_rounds.record_of(work, taken.rounds), interval_ns=interval, judgements=judgements,
        disturbances=taken.disturbances, implausible=beyond.said, seconds=time.perf_counter() - began,
    ))  # fmt: skip
    return Measurement(
        request.name, static=evidence.static, native=worker.native_arch, bytes=request.bytes, flops=request.flops,
        times_ns=tuple(one.midmean for one in taken.rounds), interval_ns=interval, judgement=taken.judgement,
        counters=counted.shown, beyond=beyond,
    )  # fmt: skip


def _check_times(worker: Worker, request: Request, key: Key, rounds: Sequence[Round], beyond: Implausible) -> None:
    """Check once more what was timed; raises what the check raises, and more of a guarded workload."""
    with _nothing_waits_if_wrong(worker, key):
        check_again(worker, request, timed_runs=sum(one.samples for one in rounds))
        if request.guard is not None:
            require_untouched(worker, key)
        if request.guard is not None and beyond.said:
            raise ImplausibleFigure(f"{request.name}: {beyond.said[0]}")


@contextlib.contextmanager
def _nothing_waits_if_wrong(worker: Worker, key: Key) -> Iterator[None]:
    """What is wrong has no time, so nothing of it waits for its confirmation."""
    try:
        yield
    except BaseException:
        stash.run_state_of(worker.config).pending.pop(key, None)
        raise
