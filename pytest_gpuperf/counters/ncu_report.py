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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.counters.ncu_command import RANGE_PREFIX
from pytest_gpuperf.counters.unavailable import CountersUnavailable
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.safe_python import module_command

MODULE = "ncu_report"
LIMIT_S = 120.0
NO_READER = 3
"""Exit status of the reading process where no module can read the report."""
BESIDE = ("extras/python", "../extras/python", "../../extras/python")
"""Folders of ``ncu``'s own module, relative to its own."""


class KernelResult(Record, frozen=True):
    """One profiled kernel."""

    kernel: str
    range: int
    """Number of the workload: the end of the name of the range around it."""
    metrics: dict[str, float]
    """By the chip's own names."""
    units: dict[str, str] = msgspec.field(default_factory=dict)
    """Units as ncu gives them."""


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
        raise unreadable(f"reading {report.name} was not done after {LIMIT_S:g} s") from None
    if done.returncode == NO_READER:
        raise unreadable(done.stdout.decode(errors="replace").strip())
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise unreadable(f"{report.name} is broken: its reader ended with status {done.returncode} {last}")
    return msgspec.json.decode(done.stdout, type=list[KernelResult])


def unreadable(why: str) -> CountersUnavailable:
    remedy = "pip install 'pytest-gpuperf[ncu]', and the newest ncu-report: it has to be as new as ncu"
    return CountersUnavailable("no reader", f"the report of ncu cannot be read ({why})", remedy)


def main(arguments: Sequence[str]) -> int:
    """In the process that reads: the results as JSON on standard output, or why there are none."""
    try:
        results = read_here(Path(arguments[0]), Path(arguments[1]) if arguments[1:] else None)
    except UnreadableReport as problem:
        print(problem)
        return NO_READER
    sys.stdout.buffer.write(msgspec.json.encode(results))
    return 0


class UnreadableReport(Exception):
    """No module is there that can read this report; the message says what was tried."""


def read_here(report: Path, ncu: Path | None) -> list[KernelResult]:
    """``read_report`` in this process.  Raises ``UnreadableReport``."""
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
            return results
        read = True
    if not read:
        raise UnreadableReport("; ".join(problems) or "the Python package ncu-report is not installed")
    return []


def _modules(ncu: Path | None) -> Iterator[Any]:
    with contextlib.suppress(ImportError, OSError):
        yield importlib.import_module(MODULE)
    for folder in _beside(ncu):
        own = _load_from(folder)
        if own is not None:
            yield own


def _beside(ncu: Path | None) -> list[Path]:
    if ncu is None:
        return []
    homes = [ncu.resolve().parent, *([ncu.resolve().parent.parent] if ncu.resolve().parent.name == "bin" else [])]
    nearby = [home / place for home in homes for place in BESIDE]
    toolkit = [found for home in homes for found in sorted(home.glob("nsight-compute-*/extras/python"), reverse=True)]
    return [folder for folder in dict.fromkeys([*nearby, *toolkit]) if (folder / f"{MODULE}.py").exists()]


def _load_from(folder: Path) -> Any:
    """ncu's own module; None if it does not load in this Python."""
    sys.modules.pop(MODULE, None)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(MODULE)
    except (ImportError, OSError):
        return None
    finally:
        sys.path.remove(str(folder))


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
            word = name.partition(RANGE_PREFIX)[2]
            if name.startswith(RANGE_PREFIX) and word.isdigit():
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
