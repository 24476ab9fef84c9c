"""In a process that runs under ncu: each workload once, inside an NVTX range of its own, and nothing timed."""

from __future__ import annotations

from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.counters.chip_names import canonical, chip_of
from pytest_gpuperf.counters.exchange import Entry, add_entry, entries
from pytest_gpuperf.counters.metric_request import names_of
from pytest_gpuperf.counters.ncu_command import RANGE_PREFIX
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ProfileTask
from pytest_gpuperf.workload.request import Request


def profile(worker: Worker, key: Key, request: Request, task: ProfileTask) -> None:
    """Run a workload once more for ncu, or put it off to a process that collects what it wants.

    The workload has run before, so whatever is compiled and loaded on first use is there.
    """
    if task.only is not None and key not in task.only:
        return
    facts = worker.device.facts
    own = tuple(canonical(name, chip_of(facts.arch)) for name in names_of(request.metrics))
    fits = request.cache == task.cache and set(own) <= set(task.metrics)
    number = len(entries(task.folder)) if fits else None
    add_entry(task.folder, Entry(
        key=key, identity=request.identity(), cache=request.cache, metrics=own, number=number, gpu=facts.slug,
        uuid=facts.uuid,
    ))  # fmt: skip
    if number is None:
        return
    if request.cache == "warm":  # the check has been at the caches since
        _prepare(worker, request)
        request.workload()
    _prepare(worker, request)
    with worker.device.profiler_range(f"{RANGE_PREFIX}{number}"):
        request.workload()
        worker.device.synchronize()


def _prepare(worker: Worker, request: Request) -> None:
    if request.reset is not None:
        request.reset()
    worker.device.synchronize()
