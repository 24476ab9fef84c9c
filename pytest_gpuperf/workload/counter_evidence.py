"""Counters of one workload: collected in a process under ncu, judged and handed to the test in the one that runs it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pytest_gpuperf.counters import exchange
from pytest_gpuperf.counters.catalogue import canonical, chip_of
from pytest_gpuperf.counters.exchange import Collected, CollectedWorkload
from pytest_gpuperf.counters.metric_request import names_of, rules_for
from pytest_gpuperf.judge.counters import Conditions, Counts, compare_counters, not_counted, widened
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.task import ProfileTask
from pytest_gpuperf.model.verdict import Judgement
from pytest_gpuperf.run import Run
from pytest_gpuperf.workload.request import Request

NOT_COUNTED = "run pytest --gpuperf-ncu"


def profile(worker: Run, key: Key, request: Request, task: ProfileTask) -> None:
    """Under ncu: run a warm workload once in an NVTX range, or leave it to a process that collects what it wants."""
    if task.only is not None and key not in task.only:
        return
    facts = worker.device.facts
    own = tuple(canonical(name, chip_of(facts.arch)) for name in names_of(request.metrics))
    fits = request.cache == task.cache and set(own) <= set(task.metrics)
    number = len(exchange.entries(task.folder)) if fits else None
    workload = CollectedWorkload(key=key, identity=request.identity(), cache=request.cache)
    entry = exchange.Entry(workload=workload, gpu=facts.slug, uuid=facts.uuid, metrics=own, number=number)
    exchange.add_entry(task.folder, entry)
    if number is None:
        return
    if request.cache == "warm":  # the check has been at the caches since
        request.run()
    request.restore()
    worker.device.synchronize()
    with worker.device.profiler_range(f"{exchange.RANGE_PREFIX}{number}"):
        request.workload()
        worker.device.synchronize()


def counted(
    worker: Run, evidence: WorkloadEvidence, request: Request
) -> tuple[WorkloadEvidence, Mapping[str, float] | str]:
    """The evidence with its counters and their judgement; and counters for the test, or why none."""
    key = evidence.key
    if not worker.options.ncu:
        return evidence, NOT_COUNTED
    collected = worker.collected or Collected(problem="nothing was collected", remedy="see the beginning of the run")
    target, found = collected.gpu or worker.device.facts.slug, collected.of(key)
    obstacle = _obstacle(collected, found, request)
    if obstacle or found is None:
        evidence = msgspec.structs.replace(evidence, judgements=(not_counted(key, target, obstacle),))
        return evidence, obstacle
    evidence = msgspec.structs.replace(
        evidence, cache=found.cache, counters=found.counters, counter_ranges=found.ranges,
        judgements=(_judge(worker, key, request, found, target),),
    )  # fmt: skip
    return evidence, found.counters


def _obstacle(collected: Collected, found: CollectedWorkload | None, request: Request) -> str:
    """Why a workload has no counters; empty if it has some."""
    if collected.problem:
        return f"{collected.problem}; {collected.remedy}"
    if found is None:
        return "its test did not come to it under ncu: it failed, or read a time: do that behind the last gpuperf(...)"
    if not found.counters:
        unseen = "ncu saw no kernel of it: it has to launch on the current stream of its own process"
        return found.notes[0] if found.notes else unseen
    if found.identity != request.identity():
        return "the profiled process ran other code or other arguments: seed what is random, and do not edit meanwhile"
    return ""


def _judge(worker: Run, key: Key, request: Request, found: CollectedWorkload, target: str) -> Judgement:
    baseline = worker.store.time(target, key)
    chip = chip_of(worker.native_arch or "")
    own = {canonical(name, chip): tolerance for name, tolerance in request.metrics.items()}
    old = baseline.counters if baseline else {}
    rules = rules_for(dict.fromkeys([*old, *found.counters]), own, request.cache)
    if baseline:
        ranges = {name: ends for name, ends in baseline.counter_ranges.items() if own.get(name) is None}
        rules = list(widened(rules, Counts(baseline.counters, ranges)))
    return compare_counters(
        key, target, old, found.counters, rules,
        before=Conditions(baseline.identity, baseline.cache) if baseline else None,
        after=Conditions(found.identity, found.cache), notes=found.notes,
    )  # fmt: skip
