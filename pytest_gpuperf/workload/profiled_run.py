"""In a process that runs under ncu: each workload once, inside an NVTX range of its own, and nothing timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.child_process import keep
from pytest_gpuperf.counters.chip_names import canonical, chip_of
from pytest_gpuperf.counters.exchange import Entry, add_entry, entries, read_request
from pytest_gpuperf.counters.metric_request import names_of
from pytest_gpuperf.counters.ncu_command import RANGE_PREFIX

if TYPE_CHECKING:
    from pytest_gpuperf.context.worker import Worker
    from pytest_gpuperf.model.evidence import Key
    from pytest_gpuperf.workload.request import Request


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that the parent names, as far as they measure anything."""
    folder = config.stash[stash.OPTIONS].ncu_to
    assert folder is not None
    nodes = set(read_request(folder).nodes)
    keep(config, items, lambda item: item.nodeid in nodes and "gpuperf" in getattr(item, "fixturenames", ()))


def profile(worker: Worker, key: Key, request: Request) -> None:
    """Run a workload once more for ncu, or put it off to a process that collects what it wants.

    The workload has run before, so whatever is compiled and loaded on first use is there.
    """
    folder = worker.options.ncu_to
    assert folder is not None
    asked = read_request(folder)
    if asked.only is not None and key not in asked.only:
        return
    facts = worker.device.facts
    own = tuple(canonical(name, chip_of(facts.arch)) for name in names_of(request.metrics))
    fits = request.cache == asked.cache and set(own) <= set(asked.metrics)
    number = len(entries(folder)) if fits else None
    add_entry(folder, Entry(
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
