"""``gpuperf selftest``: runs it, shows how far it is, prints what it found and keeps the machine profile."""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

import msgspec

from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.device.device_errors import LoadError, LockTimeout, LockUnavailable, NoDevice
from pytest_gpuperf.device.timers.timer_errors import TimerError, TimerUnavailable
from pytest_gpuperf.selftest import run as selftest
from pytest_gpuperf.selftest.child import ChildFailed
from pytest_gpuperf.selftest.known_slowdowns import NotLinear
from pytest_gpuperf.selftest.report_text import as_text
from pytest_gpuperf.selftest.sass_loop import UnexpectedCode
from pytest_gpuperf.selftest.selftest_report import SelftestReport
from pytest_gpuperf.selftest.trials import BrokenProbe
from pytest_gpuperf.timing.machine_profile import ProfileError, save_profile

PROBLEMS = (
    NoDevice, TimerError, TimerUnavailable, LoadError, LockTimeout, LockUnavailable, CompileProblem, ChildFailed,
    NotLinear, UnexpectedCode, BrokenProbe, ProfileError, OSError,
)  # fmt: skip
"""Failures that keep the self-test from an answer."""
BAR_WIDTH = 30
WIPE = "\r\x1b[K"
"""Back to the start of the line, and clear it."""


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Exit status 0; 1 if there was a false alarm.  Raises one of ``PROBLEMS``."""
    extent = selftest.QUICK if parsed.quick else selftest.FULL
    with shown(sys.stderr) as progress:
        report = selftest.run_selftest(extent, timer_name=parsed.timer, progress=progress)
    report = _with_profile_kept(report)
    document = msgspec.json.format(msgspec.json.encode(report)).decode() + "\n"
    if parsed.output is not None:
        parsed.output.write_text(document, encoding="utf-8")
    if parsed.json:
        sys.stdout.write(document)
    else:
        write(as_text(report))
    return 1 if report.false_alarms else 0


def _with_profile_kept(report: SelftestReport) -> SelftestReport:
    if not report.uuid:
        note = "The driver does not tell this GPU's UUID, so no machine profile was kept."
    else:
        note = f"Machine profile kept in {save_profile(report.profile)}; the screen of pytest --gpuperf uses it."
    return msgspec.structs.replace(report, notes=(*report.notes, note))


@contextlib.contextmanager
def shown(err: TextIO) -> Iterator[Callable[[str, float], None]]:
    """A bar on a terminal, which is wiped out at the end; else a line per stage."""
    if not err.isatty():
        yield _Lines(err)
        return
    try:
        yield functools.partial(_draw, err)
    finally:
        _write(err, WIPE)


def _draw(err: TextIO, stage: str, share: float) -> None:
    full = round(share * BAR_WIDTH)
    _write(err, f"{WIPE}[{'#' * full}{'.' * (BAR_WIDTH - full)}] {share:4.0%} {stage}")


def _write(err: TextIO, text: str) -> None:
    err.write(text)
    err.flush()


class _Lines:
    """Says each stage once."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._last = ""

    def __call__(self, stage: str, share: float) -> None:
        if stage != self._last:
            _write(self._err, f"[{share:4.0%}] {stage}\n")
        self._last = stage
