"""The steps of one workload: run, check, counters, rounds, judgement, run, check.

The order is the promise: nothing is timed before the check has passed, no time counts unless it passes again, and
nothing here writes a baseline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from pytest_gpuperf.counters import exchange
from pytest_gpuperf.counters.catalogue import canonical, chip_of, names_of, rules_for
from pytest_gpuperf.counters.exchange import Collected, CollectedWorkload
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.judge.counters import Counts, Metric, compare_counters, not_counted, widened
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import ProfileTask
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly, StaticOnly, TestRecord
from pytest_gpuperf.workload.check import FreshInputs, run_and_check
from pytest_gpuperf.workload.measurement import Measurement
from pytest_gpuperf.workload.request import Request

__tracebackhide__ = True  # of pytest: an error is shown at the test's line

_Found = tuple[Exception | None, Mapping[str, float] | str]
"""Why a time is missing; and counters, or why they are missing."""


def measure(run: Run, test: TestRecord, request: Request) -> Measurement:
    """Run, check, measure and judge one workload.  Raises the check's exception; then nothing is timed."""
    launch, evidence = request.launch, WorkloadEvidence(key=test.open(request.name), tolerance=request.limits.tolerance)
    if launch is not None and request.against is None:  # a callable has no static evidence of its own
        static = {arch: record for arch, record in launch.records().items() if arch in launch.kernel.targets}
        evidence = msgspec.structs.replace(evidence, static=static, toolchain=launch.binary.toolchain)
        binaries = (launch.kernel.binaries[arch] for arch in static)
        test.cubins |= {binary.cubin_hash: binary.cubin for binary in binaries}  # a shared fixture's kernels too
    test.add(evidence)
    untimed, counters = (_run if run.has_gpu else _without_gpu)(run, test, request)
    return Measurement(request, test.workloads[request.name], run.gpu, untimed, counters)


def _without_gpu(run: Run, test: TestRecord, request: Request) -> _Found:
    """Keep static evidence and the identity of the work."""
    evidence = test.workloads[request.name]
    test.add(msgspec.structs.replace(
        evidence, identity=request.identity(), cache=request.cache,
        judgements=(not_counted(evidence.key, "any GPU", "there is no GPU"),) if run.options.ncu else (),
    ))  # fmt: skip
    if request.launch is None and run.options.times and "triton" in sys.modules:
        from pytest_gpuperf.workload.capture import capture_without_gpu  # noqa: PLC0415 as below

        capture_without_gpu(run, test, request)
    why = str(run.no_device)
    test.stop("static only", why)
    return StaticOnly(why), why


def _run(run: Run, test: TestRecord, request: Request) -> _Found:
    """Run and check the workload, and measure it as far as this run does."""
    if request.inputs is not None:
        with run.device.current():
            request = request.with_fresh(FreshInputs(request.name, request.inputs, request.launch, request.outputs))
    if not run.options.active:
        run_and_check(run, request)
        return None, NOT_COUNTED
    run.hold_gpu()
    key, times = test.workloads[request.name].key, run.options.times
    baseline = run.store.time(run.device.facts.slug, key) if times and request.against is None else None
    rounds = baseline.rounds if baseline is not None else ()
    run.recorded_ns = max(rounds, default=0.0)
    with run.device.lock():  # who waits for the GPU sees that its holder goes on
        run_and_check(run, request)
        with run.device.current():  # anew, for the first run may have been the first that PyTorch saw of the GPU
            if isinstance(run.options.task, ProfileTask):  # in a process under ncu: one run in a range of its own
                profile(run, key, request, run.options.task)
                why = f"{request.name}: this process collects counters and takes no times"
                return CheckedOnly(why), "they are being collected"
            evidence = msgspec.structs.replace(test.workloads[request.name], identity=request.identity())
            evidence, counters = counted(run, evidence, request)
            test.add(evidence)
            if not times:
                return None, counters
            if request.launch is None and request.against is None and run.confirming is None:
                from pytest_gpuperf.workload.capture import capture  # noqa: PLC0415 a launch has its own evidence

                capture(run, test, request)
            from pytest_gpuperf.workload.gate import time_workload  # noqa: PLC0415 SciPy comes with it

            return time_workload(run, test, request), counters


# --- counters: collected in a process under ncu, judged in the one that runs the test -------------------

NOT_COUNTED = "run pytest --gpuperf-ncu"


def profile(run: Run, key: Key, request: Request, task: ProfileTask) -> None:
    """Under ncu: run a warm workload once in an NVTX range, or leave it to a process that collects its metrics."""
    facts = run.device.facts
    own = tuple(canonical(name, chip_of(facts.arch)) for name in names_of(request.metrics))
    fits = request.cache == task.cache and set(own) <= set(task.metrics)
    number = len(exchange.entries(task.folder)) if fits else None
    code, run_baseline = _changed_baseline(run, key, request) if fits else ("", None)
    workload = CollectedWorkload(key=key, identity=request.identity(), cache=request.cache, baseline_code=code)
    entry = exchange.Entry(workload=workload, gpu=facts.slug, metrics=own, number=number)
    exchange.add_entry(task.folder, entry)
    if number is None:
        return
    name = f"{exchange.RANGE_PREFIX}{number}"
    if run_baseline is not None:  # before the candidate, whose results the test goes on with
        _run_in_range(run, request, name + exchange.OF_BASELINE, run_baseline)
    _run_in_range(run, request, name, request.workload)


def _run_in_range(run: Run, request: Request, name: str, workload: Callable[[], Any]) -> None:
    if request.cache == "warm":  # the check has been at the caches since
        request.restore()
        workload()
    request.restore()
    run.device.synchronize()
    with run.device.profiler_range(name):
        workload()
        run.device.synchronize()


def _changed_baseline(run: Run, key: Key, request: Request) -> tuple[str, Callable[[], Any] | None]:
    """Hash and launch of the baseline's machine code; none of a callable, of unchanged code, or if CI launches none."""
    launch, record = request.launch, run.store.time(run.device.facts.slug, key)
    if launch is None or record is None or request.identity().same_execution(record.identity):
        return "", None
    from pytest_gpuperf.workload.gate import NotLaunched, baseline_launch  # noqa: PLC0415 SciPy comes with it

    try:
        binary, configuration, sources = baseline_launch(run, key, record, launch)
        loaded = run.device.load(binary)
    except (NotLaunched, LoadError):  # the time's verdict says why
        return "", None
    launch.kernel.fill(loaded, binary)
    values = None if sources is None else launch.values_for(binary, sources)
    return record.identity.code, lambda: launch.run_with(loaded, configuration, values)


def counted(
    run: Run, evidence: WorkloadEvidence, request: Request
) -> tuple[WorkloadEvidence, Mapping[str, float] | str]:
    """The evidence with its counters and their judgement; and counters for the test, or why none."""
    key = evidence.key
    if not run.options.ncu or request.against is not None:
        return evidence, NOT_COUNTED
    collected = run.collected or Collected(problem="nothing was collected; see the beginning of the run")
    target, found = collected.gpu or run.device.facts.slug, collected.of(key)
    why = _missing_reason(collected, found, request)
    if why or found is None:
        evidence = msgspec.structs.replace(evidence, judgements=(not_counted(key, target, why),))
        return evidence, why
    baseline = run.store.time(target, key)
    evidence = msgspec.structs.replace(
        evidence, cache=found.cache, counters=found.counters, counter_ranges=found.ranges,
        ncu_report=found.report, ncu_range=found.range,
    )  # fmt: skip
    if baseline is not None:
        measured = found.baseline if found.baseline_code == baseline.identity.code else {}
        evidence = msgspec.structs.replace(evidence, baseline_counters=measured or baseline.counters)
    judged = compare_counters(target, baseline, evidence, _rules(run, evidence, request, baseline), found.notes)
    return msgspec.structs.replace(evidence, judgements=(judged,)), found.counters


def _missing_reason(collected: Collected, found: CollectedWorkload | None, request: Request) -> str:
    """Why a workload has no counters; empty if it has some."""
    if collected.problem:
        return collected.problem
    if found is None:
        return "its test did not reach it under ncu: it failed, or read a time: read times after the last gpuperf(...)"
    if not found.counters:
        unseen = "ncu saw no kernel of it: it has to launch on the current stream of its own process"
        return found.notes[0] if found.notes else unseen
    if found.identity != request.identity():
        return "the profiled process ran other code or other arguments: seed random inputs; edit no file during the run"
    return ""


def _rules(run: Run, evidence: WorkloadEvidence, request: Request, baseline: TimeRecord | None) -> Sequence[Metric]:
    chip = chip_of(run.native_arch or "")
    own = {canonical(name, chip): tolerance for name, tolerance in request.metrics.items()}
    old = baseline.counters if baseline is not None else {}
    rules = rules_for(dict.fromkeys([*old, *evidence.counters]), own, request.cache)
    if baseline is None:
        return rules
    ranges = {name: ends for name, ends in baseline.counter_ranges.items() if own.get(name) is None}
    return list(widened(rules, Counts(baseline.counters, ranges)))
