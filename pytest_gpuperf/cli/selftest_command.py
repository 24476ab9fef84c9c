"""``gpuperf selftest``: runs it, says how far it is, and prints what it found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.device.device_errors import (
    LoadError,
    LockTimeout,
    LockUnavailable,
    NoDevice,
    TimerError,
    TimerUnavailable,
)  # fmt: skip
from pytest_gpuperf.formatting import indented_json
from pytest_gpuperf.selftest.run import run_selftest
from pytest_gpuperf.selftest.selftest_report import as_text
from pytest_gpuperf.timing.samples import InvalidSampleError

PROBLEMS = (
    NoDevice, TimerError, TimerUnavailable, LoadError, LockTimeout, LockUnavailable, CompileProblem,
    InvalidSampleError, OSError,
)  # fmt: skip
"""Failures that keep the self-test from an answer."""


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Exit status 0; 1 if there was a false alarm.  Raises one of ``PROBLEMS``."""
    report = run_selftest(quick=parsed.quick, timer_name=parsed.timer, progress=_say)
    if parsed.json is not None:
        parsed.json.write_bytes(indented_json(report))
    write(as_text(report))
    return 1 if report.false_alarms else 0


def _say(stage: str) -> None:
    print(stage, file=sys.stderr, flush=True)
