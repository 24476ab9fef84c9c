"""Read the results of a ``.ncu-rep`` file: which kernel, in which range, with which metrics.

The reader is NVIDIA's own, the wheel ``ncu-report``; where it is not installed, or cannot read what a newer
``ncu`` wrote, the module that lies beside that ``ncu``.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.counters.catalogue import PASSES
from pytest_gpuperf.counters.chip_names import canonical
from pytest_gpuperf.counters.exchange import RANGE_PREFIX, KernelResult
from pytest_gpuperf.counters.failures import NEWEST_READER, CountersUnavailable
from pytest_gpuperf.model.safe_python import module_command

MODULE = "ncu_report"
LIMIT_S = 120.0
OWN_MODULES = ("extras/python", "nsight-compute-*/extras/python")
"""Folders of ``ncu``'s own module, relative to one of the three above its program."""

Reader = Callable[[Path, Path], list[KernelResult]]
"""Reads a report that an ``ncu`` wrote.  Tests put their own in its place through ``pytest_gpuperf_ncu_reader``."""


def read_report(report: Path, ncu: Path | None = None) -> list[KernelResult]:
    """Every profiled kernel of a report, in the order of launches; none if the report says nothing.

    ``ncu`` is the program that wrote it.  Read in a process of its own: on a report that is cut short, NVIDIA's
    module may crash.  Raises ``CountersUnavailable`` if no module can read it.
    """
    command = module_command(__name__, str(report), *([str(ncu)] if ncu else []))
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise _unreadable(f"reading {report.name} was not done after {LIMIT_S:g} s") from None
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise _unreadable(f"{report.name} is broken: its reader ended with status {done.returncode} {last}")
    results, problem = msgspec.json.decode(done.stdout, type=tuple[list[KernelResult], str])
    if problem:
        raise _unreadable(problem)
    return results


def _unreadable(why: str) -> CountersUnavailable:
    return CountersUnavailable("no reader", f"the report of ncu cannot be read ({why})", NEWEST_READER)


def main(arguments: Sequence[str]) -> int:
    """In the process that reads: what ``read_here`` returns, as JSON on standard output."""
    found = read_here(Path(arguments[0]), Path(arguments[1]) if arguments[1:] else None)
    sys.stdout.buffer.write(msgspec.json.encode(found))
    return 0


def read_here(report: Path, ncu: Path | None) -> tuple[list[KernelResult], str]:
    """The results, and why no module could read the report; empty if one could."""
    problems, read = [], False
    for module in _modules(ncu):
        try:
            context = module.load_report(str(report))
            chunks = map(context.range_by_idx, range(context.num_ranges()))
            results = [result for chunk in chunks for result in _results(chunk)]
        except (OSError, RuntimeError, ValueError, AttributeError, TypeError) as problem:
            problems.append(f"{getattr(module, '__file__', MODULE)}: {problem}")
            continue
        if results:
            return results, ""
        read = True
    why = "; ".join(problems) or "the Python package ncu-report is not installed"
    return [], "" if read else why


def _modules(ncu: Path | None) -> Iterator[Any]:
    """The installed module, and ncu's own ones that load in this Python."""
    with contextlib.suppress(ImportError, OSError):
        yield importlib.import_module(MODULE)
    homes = ncu.resolve().parents[:3] if ncu else ()
    for folder in (found for home in homes for own in OWN_MODULES for found in sorted(home.glob(own), reverse=True)):
        sys.modules.pop(MODULE, None)
        sys.path.insert(0, str(folder))
        try:
            own_module = importlib.import_module(MODULE)
        except (ImportError, OSError):
            continue
        finally:
            sys.path.remove(str(folder))
        yield own_module


def _results(chunk: Any) -> Iterator[KernelResult]:
    for action in map(chunk.action_by_idx, range(chunk.num_actions())):
        number = _range_of(action)
        if number is not None:
            metrics, units = _figures(action)
            yield KernelResult(kernel=action.name(), range=number, metrics=metrics, units=units)


def _range_of(action: Any) -> int | None:
    """The number in the innermost range of ours around a kernel; None outside of all."""
    state = action.nvtx_state()
    if state is None:
        return None
    for domain in state.domains():
        for name in reversed(state.domain_by_id(domain).push_pop_ranges()):
            word = name.removeprefix(RANGE_PREFIX)
            if word != name and word.isdigit():
                return int(word)
    return None


def _figures(action: Any) -> tuple[dict[str, float], dict[str, str]]:
    metrics, units = {}, {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = metric.value() if metric is not None and metric.has_value() else None
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            metrics[name], units[name] = float(value), metric.unit() or ""
    return metrics, units


def sum_up(kernels: Sequence[KernelResult], chip: str, wanted: Iterable[str]) -> tuple[dict[str, float], str]:
    """The ``wanted`` metrics (canonical names) of one workload's kernels, and a note on those that do not add up.

    Counts of several kernels are added up; their ratios and percentages mean nothing without weights and are left out.
    """
    figures = [{canonical(name, chip): value for name, value in kernel.metrics.items()} for kernel in kernels]
    counters: dict[str, float] = {}
    left_out = 0
    for name in wanted:
        values = [one[name] for one in figures if name in one]
        if len(values) < len(kernels) or not values:
            continue
        if name == PASSES.name:
            counters[name] = max(values)
        elif len(values) == 1 or name.endswith(".sum") or name.startswith("memory_l1_"):
            counters[name] = sum(values)
        else:
            left_out += 1
    note = f"{len(kernels)} kernels: {left_out} ratios and percentages are left out, which do not add up"
    return counters, note if left_out else ""
