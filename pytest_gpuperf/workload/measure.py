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

from pytest_gpuperf.judge.counters import not_counted
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import ConfirmTask, ProfileTask, RevisionTask
from pytest_gpuperf.model.time_record import mean_time_ns
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly, StaticOnly, TestRecord
from pytest_gpuperf.workload.check import FreshInputs, check_again, run_and_check
from pytest_gpuperf.workload.counter_evidence import NOT_COUNTED, counted, profile
from pytest_gpuperf.workload.measurement import Measurement
from pytest_gpuperf.workload.request import Request

if TYPE_CHECKING:
    from pytest_gpuperf.workload.gate import Timed
    from pytest_gpuperf.workload.timed_workload import TimedWorkload

_Found = tuple[Exception | None, Mapping[str, float] | str]
"""Why there is no time, where there was to be one; and counters, or why there are none."""


def measure(worker: Run, book: TestRecord, request: Request) -> Measurement:
    """Run, check, measure and judge one workload.  Raises what the check raises, and nothing is timed then."""
    launch, evidence = request.launch, WorkloadEvidence(key=book.open(request.name), tolerance=request.limits.tolerance)
    if launch is not None:  # a callable has no static evidence of its own
        static = {arch: record for arch, record in launch.records().items() if arch in launch.kernel.targets}
        evidence = msgspec.structs.replace(evidence, static=static, toolchain=launch.binary.toolchain)
        binaries = (launch.kernel.binaries[arch] for arch in static)
        book.cubins |= {binary.cubin_hash: binary.cubin for binary in binaries}  # a fixture's kernel is on another book
    book.add(evidence)
    untimed, counters = (_run if worker.has_gpu else _without_gpu)(worker, book, request)
    return Measurement(request, book.workloads[request.name], worker.native_arch, untimed, counters)


def _without_gpu(worker: Run, book: TestRecord, request: Request) -> _Found:
    """Static evidence is all there is, and what would run."""
    evidence = book.workloads[request.name]
    book.add(msgspec.structs.replace(
        evidence, identity=request.identity(), cache=request.cache, facts_asked=worker.gpu.facts_asked,
        judgements=(not_counted(evidence.key, "any GPU", "there is no GPU"),) if worker.options.ncu else (),
    ))  # fmt: skip
    why = str(worker.no_device)
    book.stop("static only", why)
    return StaticOnly(why), why


def _run(worker: Run, book: TestRecord, request: Request) -> _Found:
    """Run and check the workload, and find out what this run is to know of it."""
    if request.inputs is not None:
        with worker.device.current():
            request = request.with_fresh(FreshInputs(request.name, request.inputs, request.launch, request.outputs))
    if not worker.options.active:
        run_and_check(worker, request)
        return None, NOT_COUNTED
    worker.hold_gpu()
    key, times = book.workloads[request.name].key, worker.options.times
    baseline = worker.store.time(worker.device.facts.slug, key) if times else None
    rounds = baseline.rounds if baseline is not None else ()
    worker.recorded_ns = max((one.midmean for one in rounds), default=0.0)
    with worker.device.lock():  # who waits for the GPU sees that its holder goes on
        run_and_check(worker, request)
        with worker.device.current():  # anew, for the first run may have been the first that PyTorch saw of the GPU
            return _measured(worker, book, request)


def _measured(worker: Run, book: TestRecord, request: Request) -> _Found:
    """Count, time and judge a workload that has passed its check, as far as this run is to."""
    evidence = book.workloads[request.name]
    if isinstance(worker.options.task, ProfileTask):  # in a process under ncu: one run in a range of its own
        profile(worker, evidence.key, request, worker.options.task)
        why = f"{request.name}: this process collects counters and takes no times"
        return CheckedOnly(why), "they are being collected"
    evidence, counters = counted(worker, msgspec.structs.replace(evidence, identity=request.identity()), request)
    book.add(evidence)
    untimed = _time(worker, book, request) if worker.options.times else None
    return untimed, counters


def _time(worker: Run, book: TestRecord, request: Request) -> CheckedOnly | None:
    """Time and judge the workload and what it costs beside; why there is no time, where it needs none."""
    from pytest_gpuperf.judge.time_verdict import Confirmation  # noqa: PLC0415 SciPy comes with these
    from pytest_gpuperf.workload import confirm, figures, timed_workload  # noqa: PLC0415 and with these

    began = time.perf_counter()
    evidence = book.workloads[request.name]
    work = timed_workload.TimedWorkload(worker, request, evidence.key, request.identity())
    timed = _timed(work)
    if timed.rounds:
        check_again(worker, request, timed_runs=sum(one.samples for one in timed.rounds))
        evidence = msgspec.structs.replace(
            evidence, time=timed_workload.record_of(work, timed.rounds), disturbances=timed.disturbances,
            interval_ns=timed_workload.interval_of([one.midmean for one in timed.rounds]),
            seconds=time.perf_counter() - began,
        )  # fmt: skip
    if timed.judgement is not None:
        evidence = msgspec.structs.replace(evidence, judgements=(*evidence.judgements, timed.judgement))
    book.add(evidence)
    worker.suspects += [timed.suspect] if timed.suspect is not None else []
    if isinstance(worker.options.task, ConfirmTask):
        confirm.leave(worker.options.task, Confirmation(
            key=work.key, kind="time", identity=work.identity, comparison=timed.comparison, problem=timed.problem,
            time_ns=mean_time_ns(timed.rounds) if timed.rounds else 0.0,
        ))  # fmt: skip
    figures.measure_figures(work, book)
    return None if timed.rounds else CheckedOnly(f"{request.name}: unchanged, so not timed")


def _timed(work: TimedWorkload) -> Timed:
    """Gate it, or take a short round where this process is there for something else."""
    from pytest_gpuperf.revision.pairing import serve  # noqa: PLC0415 SciPy comes with them
    from pytest_gpuperf.workload import gate, timed_workload  # noqa: PLC0415 and with these

    worker, request, task = work.worker, work.request, work.worker.options.task
    if isinstance(task, RevisionTask) and worker.link is not None and request.launch is None:
        serve(worker, worker.link, request.name, work.identity, request.workload, request.reset)
    passed_over = isinstance(task, ConfirmTask) and not task.confirms(work.key)
    if passed_over or isinstance(task, RevisionTask):
        return gate.Timed(timed_workload.one_round(work).rounds)
    timed = gate.gate_time(work)
    if worker.options.update is not None and timed.rounds:
        taken = timed_workload.take_for_record(work)
        timed = dataclasses.replace(timed, rounds=taken.rounds, disturbances=taken.disturbed)
    if worker.pairs_with_itself(work.key.node_id):
        gate.pair_with_itself(work)
    return timed
