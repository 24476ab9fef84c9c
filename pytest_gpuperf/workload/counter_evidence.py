"""Counters in the process that runs a test: found among what was collected, judged, handed to the test."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.early_stop import CountersMissing
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.counters.catalogue import PASSES
from pytest_gpuperf.counters.chip_names import canonical, chip_of
from pytest_gpuperf.counters.derived import with_derived
from pytest_gpuperf.counters.exchange import COLLECTED, Collected, CollectedWorkload
from pytest_gpuperf.counters.metric_request import rules_for
from pytest_gpuperf.judge.counter_scatter import Counts, widened
from pytest_gpuperf.judge.counter_verdict import Conditions, compare_counters, not_counted
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Judgement
from pytest_gpuperf.workload.request import Request

WORKER_INPUT = "gpuperf_counters"
"""Under this name a pytest-xdist worker is told the folder of what was collected."""


@dataclasses.dataclass(frozen=True)
class Counted:
    """What is known of one workload's counters."""

    counters: Mapping[str, float]
    """As collected; empty if there are none."""
    shown: Mapping[str, float] | CountersMissing
    """For the test: with what follows from them, or why there are none."""
    judgements: tuple[Judgement, ...]
    ranges: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    """Of those that were not the same in every take."""


def collected_of(config: pytest.Config) -> Collected:
    """What the run's profiling brought."""
    if stash.COLLECTED not in config.stash:
        given = getattr(config, "workerinput", {}).get(WORKER_INPUT)
        found = Collected(problem="nothing was collected for this run", remedy="see what it said when it began")
        if given and (path := Path(given) / COLLECTED).exists():
            found = msgspec.json.decode(path.read_bytes(), type=Collected)
        config.stash[stash.COLLECTED] = found
    return config.stash[stash.COLLECTED]


def counted(worker: Worker, key: Key, request: Request) -> Counted:
    """The counters of one workload, and what the gate says of them; nothing where none were asked for."""
    if not worker.options.ncu:
        why = CountersMissing(f"{key.workload} has no counters: none were asked for; run pytest --gpuperf-ncu")
        return Counted({}, why, ())
    collected = collected_of(worker.config)
    found = collected.of(key)
    obstacle = _obstacle(collected, found, request)
    target = collected.gpu or worker.device.facts.slug
    if obstacle or found is None:
        return Counted({}, CountersMissing(f"{key.workload} has no counters: {obstacle}"),
                       (not_counted(key, target, obstacle),))  # fmt: skip
    judgement = _judge(worker, key, request, found, target)
    return Counted(found.counters, with_derived(found.counters), (judgement,), found.ranges)


def _obstacle(collected: Collected, found: CollectedWorkload | None, request: Request) -> str:
    """Why a workload has no counters; empty if it has some."""
    if collected.problem:
        return f"{collected.problem}; {collected.remedy}"
    if found is None:
        return (
            "its test did not come to it in the profiled process: it failed there, or read a time or a peak before; "
            "put such assertions behind the last gpuperf(...)"
        )
    if not found.counters:
        unseen = "ncu saw no kernel of it: it has to launch on the current stream of its own process"
        return found.notes[0] if found.notes else unseen
    if found.identity != request.identity():
        return "the profiled process ran other code or other arguments: seed what is random, and do not edit meanwhile"
    return ""


def _judge(worker: Worker, key: Key, request: Request, found: CollectedWorkload, target: str) -> Judgement:
    baseline = worker.store.time(target, key)
    old = dict(baseline.counters) if baseline else {}
    chip = chip_of(worker.native_arch or "")
    own = {canonical(name, chip): tolerance for name, tolerance in request.metrics.items()}
    before, after = with_derived(old) if old else {}, with_derived(found.counters)
    rules = rules_for(dict.fromkeys([*before, *after]), own)
    if baseline:
        ranges = {name: ends for name, ends in baseline.counter_ranges.items() if own.get(name) is None}
        rules = widened(rules, Counts(old, ranges))
    return compare_counters(
        key, target, before, after, rules,
        before=Conditions(baseline.identity, baseline.cache, old.get(PASSES.name)) if baseline else None,
        after=Conditions(found.identity, found.cache, found.counters.get(PASSES.name)), notes=found.notes,
    )  # fmt: skip
