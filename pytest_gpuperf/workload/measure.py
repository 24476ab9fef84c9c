"""What is done with one workload, in this order: run, check, counters, rounds, judgement, run, check.

The order is the promise: nothing is timed before the check has passed, no time counts unless it passes again, and
nothing here writes a baseline.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pytest_gpuperf.judge.counters import not_counted
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import ProfileTask
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly, StaticOnly, TestRecord
from pytest_gpuperf.workload.check import FreshInputs, run_and_check
from pytest_gpuperf.workload.counter_evidence import NOT_COUNTED, counted, profile
from pytest_gpuperf.workload.measurement import Measurement
from pytest_gpuperf.workload.request import Request

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
        evidence, identity=request.identity(), cache=request.cache,
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
            if isinstance(worker.options.task, ProfileTask):  # in a process under ncu: one run in a range of its own
                profile(worker, key, request, worker.options.task)
                why = f"{request.name}: this process collects counters and takes no times"
                return CheckedOnly(why), "they are being collected"
            evidence = msgspec.structs.replace(book.workloads[request.name], identity=request.identity())
            evidence, counters = counted(worker, evidence, request)
            book.add(evidence)
            if not times:
                return None, counters
            from pytest_gpuperf.workload.gate import time_workload  # noqa: PLC0415 SciPy comes with it

            return time_workload(worker, book, request), counters
