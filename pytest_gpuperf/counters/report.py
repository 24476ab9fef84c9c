"""Read the results of a ``.ncu-rep`` file: which kernel, in which range, with which metrics.

The reader is NVIDIA's own, the wheel ``ncu-report``.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.counters.catalogue import canonical
from pytest_gpuperf.counters.exchange import RANGE_PREFIX, KernelResult
from pytest_gpuperf.counters.run_ncu import NEWEST_READER, CountersUnavailable
from pytest_gpuperf.model.task import WITHOUT_FOLDER

LIMIT_S = 120.0


def read_report(report: Path) -> list[KernelResult]:
    """Every profiled kernel of a report, in the order of launches; none if the report says nothing.

    Read in a process of its own: on a report that is cut short, NVIDIA's module may crash.  Raises
    ``CountersUnavailable`` if it cannot be read.
    """
    command = [sys.executable, "-c", f"{WITHOUT_FOLDER}from {__name__} import main; main(sys.argv[1])", str(report)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=True)
    except subprocess.TimeoutExpired:
        why = f"it was not done after {LIMIT_S:g} s"
    except subprocess.CalledProcessError as problem:
        why = problem.stderr.decode(errors="replace").strip() or f"its reader ended with status {problem.returncode}"
        why = why.splitlines()[-1]
    else:
        return msgspec.json.decode(done.stdout, type=list[KernelResult])
    raise CountersUnavailable(f"the report of ncu, {report.name}, cannot be read ({why})", NEWEST_READER)


def main(report: str) -> None:
    """In the process that reads: write the report's kernels as JSON to standard output."""
    import ncu_report  # noqa: PLC0415 it may be missing

    context = ncu_report.load_report(report)
    found = [one for index in range(context.num_ranges()) for one in _results(context.range_by_idx(index))]
    sys.stdout.buffer.write(msgspec.json.encode(found))


def _results(chunk: Any) -> Iterator[KernelResult]:
    """Of the kernels in a range of ours: their metrics that are numbers."""
    for action in map(chunk.action_by_idx, range(chunk.num_actions())):
        state = action.nvtx_state()
        domains = map(state.domain_by_id, state.domains()) if state is not None else ()
        ranges = [name for domain in domains for name in domain.push_pop_ranges() if name.startswith(RANGE_PREFIX)]
        if ranges:
            values = {name: _number(action.metric_by_name(name)) for name in action.metric_names()}
            metrics = {name: value for name, value in values.items() if value is not None}
            yield KernelResult(kernel=action.name(), range=ranges[-1].removeprefix(RANGE_PREFIX), metrics=metrics)


def _number(metric: Any) -> float | None:
    value = metric.value() if metric is not None and metric.has_value() else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def sum_up(kernels: Sequence[KernelResult], chip: str, wanted: Iterable[str]) -> tuple[dict[str, float], str]:
    """The ``wanted`` metrics (canonical names) of one workload's kernels, and a note on those that do not add up.

    Counts of several kernels are added up; their ratios and percentages mean nothing without weights and are left out.
    """
    figures = [{canonical(name, chip): value for name, value in kernel.metrics.items()} for kernel in kernels]
    counters: dict[str, float] = {}
    left_out = 0
    for name in wanted if kernels else ():
        values = [one[name] for one in figures if name in one]
        if len(values) < len(kernels):
            continue
        if len(values) == 1 or name.endswith(".sum") or name.startswith("memory_l1_"):
            counters[name] = sum(values)
        else:
            left_out += 1
    note = f"{len(kernels)} kernels: {left_out} ratios and percentages are left out, which do not add up"
    return counters, note if left_out else ""
