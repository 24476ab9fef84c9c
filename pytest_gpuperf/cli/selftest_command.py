"""``gpuperf selftest``: runs it, says how far it is, and prints what it found."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.formatting import indented_json
from pytest_gpuperf.model.limits import TIMERS
from pytest_gpuperf.selftest.run import run_selftest
from pytest_gpuperf.selftest.selftest_report import as_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="fewer comparisons: within a minute")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the report to this file, as JSON")
    parser.add_argument("--timer", choices=TIMERS, help="the clock (default: each that works here)")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Exit status 0; 1 if there was a false alarm.  Raises ``GpuperfError`` and ``OSError``."""
    report = run_selftest(
        quick=parsed.quick, timer_name=parsed.timer, progress=functools.partial(print, file=sys.stderr, flush=True)
    )
    if parsed.json is not None:
        parsed.json.write_bytes(indented_json(report))
    write(as_text(report))
    return 1 if report.false_alarms else 0
