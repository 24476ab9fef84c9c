"""``gpuperf plot``: a sweep of a parametrised test as a table, and as curves on a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.cli.report_command import PROBLEMS as REPORT_PROBLEMS
from pytest_gpuperf.cli.report_command import of_last_run, read_report
from pytest_gpuperf.formatting import duration, rate
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.report.sweep import Sweep, SweepPoint
from pytest_gpuperf.report.tables import mean_time_ns


class PlotError(Exception):
    """There is nothing to draw; the message says why and what there is."""


PROBLEMS = (PlotError, OSError, *REPORT_PROBLEMS)


def run(
    node_id: str, *, x: str, y: str, report: Path | None, output: Path | None, start: Path,
    write: Callable[[str], object],
) -> int:  # fmt: skip
    """Print the figures of each curve; write ``output``, if it is given.

    Returns the exit status, 0.  Raises one of ``PROBLEMS``.
    """
    document = read_report(report) if report is not None else of_last_run(start)
    tests = [one for one in document.report.tests if f"{one.module}::{one.test}".partition("[")[0] == node_id]
    sweeps = sweeps_of(tests, x, y)
    if not sweeps:
        raise PlotError(_why_none(tests, document.report.tests, node_id, x, y))
    for sweep in sweeps:
        write(f"{sweep.name or node_id}\n")
        for point in sweep.points:
            write(f"  {x}={point.label}  {point.shown}\n")
    if output is not None:
        from pytest_gpuperf.report.sweep_page import as_sweep_page  # noqa: PLC0415 Jinja is an extra

        write_whole(output, as_sweep_page(f"{node_id}: {y} over {x}", sweeps, x, y).encode())
        write(f"plot written to {output}\n")
    return 0


def sweeps_of(tests: Sequence[TestEvidence], x: str, y: str) -> list[Sweep]:
    """A curve for each workload and each choice of the other parameters, by the size of ``x``."""
    curves: dict[str, list[SweepPoint]] = {}
    for one in tests:
        if x not in one.parameters:
            continue
        others = ", ".join(f"{name}={value}" for name, value in sorted(one.parameters.items()) if name != x)
        for work in one.workloads:
            value = _value(work, y)
            if value is not None:
                name = f"{work.key.workload}{f' ({others})' if others else ''}"
                label = one.parameters[x]
                curves.setdefault(name, []).append(SweepPoint(_number(label), label, value, _shown(value, y)))
    return [Sweep(name, tuple(sorted(points, key=_place))) for name, points in curves.items()]


def _place(point: SweepPoint) -> tuple[float, str]:
    return (point.x if point.x is not None else 0.0), point.label


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _value(work: WorkloadEvidence, y: str) -> float | None:
    """Nanoseconds, or bytes or operations per second; None for a workload that has none."""
    if work.time is None:
        return None
    time_ns = mean_time_ns(work.time)
    amount = {"time": None, "bandwidth": work.time.bytes, "flops": work.time.flops}[y]
    if y == "time":
        return time_ns
    return None if amount is None else amount / time_ns * 1e9


def _shown(value: float, y: str) -> str:
    return duration(value) if y == "time" else rate(value, {"bandwidth": "B/s", "flops": "FLOP/s"}[y])


def _why_none(
    tests: Sequence[TestEvidence], everything: Sequence[TestEvidence], node_id: str, x: str, y: str
) -> str:  # fmt: skip
    if not tests:
        there = dict.fromkeys(f"{one.module}::{one.test}".partition("[")[0] for one in everything if one.parameters)
        return f"the run has no test {node_id}: parametrised ones are {', '.join(there) or 'not in it'}"
    names = dict.fromkeys(name for one in tests for name in one.parameters)
    if x not in names:
        return f"{node_id} has no parameter {x}: it has {', '.join(names) or 'none'}"
    what = {"bandwidth": ", or none that declares bytes=", "flops": ", or none that declares flops="}.get(y, "")
    return f"{node_id} has no workload with a time in this run{what}: run it on a GPU with --gpuperf --gpuperf-all"
