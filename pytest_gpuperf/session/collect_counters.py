"""Counters of this run: collected before its first test, by a process under ncu; ``counted`` judges them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.api.marker import settings_of
from pytest_gpuperf.counters.catalogue import canonical, chip_of, names_of
from pytest_gpuperf.counters.collect import TAKES, Collection, together
from pytest_gpuperf.counters.exchange import Collected
from pytest_gpuperf.counters.run_ncu import CountersUnavailable, find_ncu
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.process.children import child_command, show_progress
from pytest_gpuperf.run import Run

START_LIMIT_S, TEST_LIMIT_S = 60.0, 10.0
"""Time for collecting: for the start, and for each test."""


def count_items(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Collect for the tests among these that measure."""
    those = [item for item in items if "gpuperf" in getattr(item, "fixturenames", ())]
    if not those:
        return
    own = [name for item in those for name in settings_of(item).metrics or ()]
    run = stash.run_of(config)
    try:
        run.collected = _collect(run, [item.nodeid for item in those], own)
    except CountersUnavailable as problem:
        run.collected = Collected(problem=str(problem))
        show_progress(config, f"no counters: {problem.reason}")
        return
    log = [f"    {line}" for line in run.collected.log]
    head = ["the last lines of the profiled tests:"] if log else []
    run.outcome.counter_notes = (*run.collected.notes, *head, *log)
    counted = numbered(len(run.collected.workloads), "workload")
    show_progress(config, f"counters of {counted} in {run.collected.seconds:.1f} s by {run.collected.ncu}")


def _collect(run: Run, nodes: Sequence[str], own: Sequence[str]) -> Collected:
    config, options = run.config, run.options
    if run.native_arch is None:
        raise CountersUnavailable("there is no GPU", str(run.no_device))
    chip, ncu = chip_of(run.native_arch), find_ncu()
    asked = [canonical(name, chip) for name in names_of([*options.ncu, *own])]
    collection = functools.partial(
        Collection,
        nodes=tuple(nodes), metrics=tuple(dict.fromkeys(asked)), cache=options.cache, chip=chip, ncu=ncu,
        target=lambda task: child_command(config, task, task.nodes),
        working_folder=config.invocation_params.dir, limit_s=START_LIMIT_S + TEST_LIMIT_S * len(nodes),
    )  # fmt: skip
    begin = f"counting {numbered(len(nodes), 'test')} under {ncu}"
    run.give_memory_back()
    folder = TemporaryDirectory(prefix="gpuperf-ncu-")
    config.add_cleanup(folder.cleanup)
    takes: list[Collected] = []
    for number in range(1, 1 + (TAKES if options.update else 1)):
        show_progress(config, f"{begin}, collection {number} of {TAKES}" if options.update else begin)
        takes.append(collection(Path(folder.name) / str(number)).collect())
    return together(takes) if options.update else takes[0]
