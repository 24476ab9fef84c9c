"""Start ``ncu`` with its target, watch it, and end it when its time is up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.counters.ncu_command import LOG
from pytest_gpuperf.counters.ncu_failures import timed_out
from pytest_gpuperf.counters.unavailable import CountersUnavailable

OUTPUT = "target.log"
TICK_S = 0.1
END_S = 5.0
"""Longest time that a run which is told to end may take to do so."""


class Finished(NamedTuple):
    """Output of a finished run."""

    status: int
    words: str
    """ncu's own, wherever it put them."""
    target_words: str


def run(
    command: Sequence[str], folder: Path, working_folder: Path, environ: Mapping[str, str], *,
    limit_s: float, watch: Callable[[float], None],
) -> Finished:  # fmt: skip
    """Run to the end; ``watch`` is called ten times a second with the seconds so far.

    Raises ``CountersUnavailable`` if it cannot be started or takes longer than ``limit_s``, and is ended then.
    """
    output = folder / OUTPUT
    started = time.monotonic()
    with output.open("wb") as stream:
        try:
            process = subprocess.Popen(command, cwd=working_folder, env=dict(environ), stdin=subprocess.DEVNULL,
                                       stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        except OSError as problem:
            raise CountersUnavailable("no ncu", f"{command[0]} cannot be started ({problem})", "repair it") from None
        try:
            while process.poll() is None:
                spent = time.monotonic() - started
                if spent > limit_s:
                    raise timed_out(limit_s)
                watch(spent)
                time.sleep(TICK_S)
        finally:
            _end(process)
    target_words = _read(output)
    early = "\n".join(line for line in target_words.splitlines() if line.startswith("=="))  # before ncu had a log
    return Finished(process.returncode, f"{_read(folder / LOG)}\n{early}", target_words)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it started, if it has not ended by itself."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    with contextlib.suppress(ProcessLookupError):  # all of them have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
