"""``gpuperf plot``: a sweep of a parametrised test as a table, and as curves on a page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_gpuperf.cli.report_command import PROBLEMS as REPORT_PROBLEMS
from pytest_gpuperf.cli.report_command import of_last_run, read_report
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.report.files import write_file
from pytest_gpuperf.report.sweep import sweeps_of


class PlotError(Exception):
    """There is nothing to draw; the message says why and what there is."""


PROBLEMS = (PlotError, OSError, *REPORT_PROBLEMS)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(
        parsed.node_id, x=parsed.x, y=parsed.y, report=parsed.report, output=parsed.output, start=Path.cwd(),
        write=write,
    )  # fmt: skip


def run(
    node_id: str, *, x: str, y: str, report: Path | None, output: Path | None, start: Path,
    write: Callable[[str], object],
) -> int:  # fmt: skip
    """Print the figures of each curve; write ``output``, if it is given.

    Returns the exit status, 0.  Raises one of ``PROBLEMS``.
    """
    document = read_report(report) if report is not None else of_last_run(start)
    tests = [one for one in document.report.tests if one.node_id.partition("[")[0] == node_id]
    sweeps = sweeps_of(tests, x, y)
    if not sweeps:
        raise PlotError(_why_none(tests, document.report.tests, node_id, x, y))
    for sweep in sweeps:
        write(f"{sweep.name or node_id}\n")
        for point in sweep.points:
            write(f"  {x}={point.label}  {point.shown}\n")
    if output is not None:
        from pytest_gpuperf.report.sweep_page import as_sweep_page  # noqa: PLC0415 Jinja is an extra

        write_file("plot", output, as_sweep_page(f"{node_id}: {y} over {x}", sweeps, x, y).encode())
        write(f"plot written to {output}\n")
    return 0


def _why_none(
    tests: Sequence[TestEvidence], everything: Sequence[TestEvidence], node_id: str, x: str, y: str
) -> str:  # fmt: skip
    name, bracket, _ = node_id.partition("[")
    if bracket:
        return f"name the test without its parameters, as all of them are drawn: gpuperf plot {name} --x {x}"
    if not tests:
        there = dict.fromkeys(one.node_id.partition("[")[0] for one in everything if one.parameters)
        return f"the run has no test {node_id}: parametrised ones are {', '.join(there) or 'not in it'}"
    names = dict.fromkeys(name for one in tests for name in one.parameters)
    if x not in names:
        return f"{node_id} has no parameter {x}: it has {', '.join(names) or 'none'}"
    what = {"bandwidth": ", or none that declares bytes=", "flops": ", or none that declares flops="}.get(y, "")
    return f"{node_id} has no workload with a time in this run{what}: run it on a GPU with --gpuperf --gpuperf-time=all"
