"""Counters of this run: collected before its first test, by a process under ncu that the reporting one starts.

pytest-xdist workers find what it brought in a file; ``counted`` reads and judges it.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.api.marker import settings_of
from pytest_gpuperf.atomic_write import scratch_folder, write_whole
from pytest_gpuperf.counters.catalogue import canonical, chip_of
from pytest_gpuperf.counters.collect import TAKES, Assignment, Collection, together
from pytest_gpuperf.counters.exchange import COLLECTED, Collected
from pytest_gpuperf.counters.failures import CountersUnavailable
from pytest_gpuperf.counters.metric_request import names_of
from pytest_gpuperf.counters.report import read_report
from pytest_gpuperf.counters.run_ncu import find_ncu
from pytest_gpuperf.device.discovery import first_architecture
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.hookspecs import device_given, given
from pytest_gpuperf.process.children import child_command, progress_of
from pytest_gpuperf.workload.counter_evidence import WORKER_INPUT, collected_of

START_LIMIT_S, TEST_LIMIT_S = 60.0, 10.0
"""Time for collecting: for the start, and for each test."""


def prepare_worker(config: pytest.Config, workerinput: MutableMapping[str, Any]) -> None:
    """Tell a pytest-xdist worker where the counters will be, before it starts."""
    workerinput[WORKER_INPUT] = str(_folder(config))


def count_items(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Collect for these tests, in the only process."""
    if config.pluginmanager.hasplugin("dsession"):
        return
    those = [item for item in items if "gpuperf" in getattr(item, "fixturenames", ())]
    own = [name for item in those for name in settings_of(item).metrics or ()]
    _count(config, [item.nodeid for item in those], own)


def count_nodes(config: pytest.Config, ids: Sequence[str]) -> None:
    """Collect for the tests that the first pytest-xdist worker has found, before any is handed out."""
    if stash.run_of(config).collected is None:
        _count(config, ids)


def _count(config: pytest.Config, nodes: Sequence[str], own: Sequence[str] = ()) -> None:
    if not nodes:
        return
    show = progress_of(config)
    try:
        collected = _collect(config, nodes, own, show)
    except CountersUnavailable as problem:
        collected = Collected(problem=problem.reason, remedy=problem.remedy)
    write_whole(_folder(config) / COLLECTED, msgspec.json.encode(collected))
    stash.run_of(config).collected = collected
    if collected.problem:
        show(f"no counters: {collected.problem}")
    else:
        counted = numbered(len(collected.workloads), "workload")
        show(f"counters of {counted} in {collected.seconds:.1f} s by {collected.ncu}")


def _collect(config: pytest.Config, nodes: Sequence[str], own: Sequence[str], show: Callable[[str], None]) -> Collected:
    options = config.stash[stash.OPTIONS]
    chip = chip_of(_architecture(config))
    ncu = find_ncu()
    asked = [canonical(name, chip) for name in names_of([*options.ncu, *own])]
    assignment = Assignment(
        nodes=tuple(nodes), metrics=tuple(dict.fromkeys(asked)), cache=options.cache, chip=chip, ncu=ncu,
        reader=given(config, "pytest_gpuperf_ncu_reader", "__call__") or read_report,
        target=lambda task: child_command(config, task),
        working_folder=config.invocation_params.dir, limit_s=START_LIMIT_S + TEST_LIMIT_S * len(nodes),
    )  # fmt: skip
    begin = f"counting {numbered(len(nodes), 'test')} under {ncu}"
    stash.run_of(config).give_memory_back()
    takes: list[Collected] = []
    for number in range(1, 1 + (TAKES if options.update else 1)):
        show(f"{begin}, take {number} of {TAKES}" if options.update else begin)
        try:
            takes.append(Collection(assignment, _folder(config) / str(number)).collect())
        except CountersUnavailable as problem:  # what a later one cannot have does not cost the earlier ones
            if not takes:
                raise
            return together(takes, f"taken only {number - 1} of {TAKES} times: {problem}")
    return together(takes) if options.update else takes[0]


def _architecture(config: pytest.Config) -> str:
    """Of the GPU that the profiled process will take.  Raises ``CountersUnavailable`` without one."""
    if not config.pluginmanager.hasplugin("dsession"):
        worker = stash.run_of(config)
        if worker.native_arch is None:
            raise CountersUnavailable("there is no GPU", str(worker.no_device))
        return worker.native_arch
    given = device_given(config, None)
    if given is not None:
        return str(given.facts.arch)
    found = first_architecture()
    if found is None:
        raise CountersUnavailable("NVML lists no GPU", "counters need an NVIDIA GPU and its driver")
    return found


def counters_at_end(config: pytest.Config) -> tuple[str, ...]:
    """Words on the collection for the summary."""
    collected = collected_of(config)
    log = ("the last lines of the profiled tests:", *(f"    {line}" for line in collected.log)) if collected.log else ()
    return (*collected.notes, *log)


def _folder(config: pytest.Config) -> Path:
    """The run's own folder, gone when pytest ends."""
    run = stash.run_of(config)
    if run.counter_folder is None:
        temporary = scratch_folder("gpuperf-ncu-")
        config.add_cleanup(temporary.cleanup)
        run.counter_folder = Path(temporary.name)
    return run.counter_folder
