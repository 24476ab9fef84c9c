"""Find ``ncu``, Nsight Compute's command line, start it with its target, and end it when its time is up.

Clocks are left alone, for locking them needs privileges and changes the machine for everybody.  The caches are
flushed before every replay pass where workloads start cold, so that several passes see the same memory traffic.
``gpuperf doctor`` looks for ncu in the same places.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.counters.exchange import RANGE_PREFIX
from pytest_gpuperf.counters.failures import CountersUnavailable, timed_out
from pytest_gpuperf.device.lock import LOCK_VARIABLE
from pytest_gpuperf.model.evidence import CacheMode

VARIABLES = ("CUDA_HOME", "CUDA_PATH")
FOLDERS = ("/usr/local/cuda*/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/NVIDIA-Nsight-Compute*")
OLDEST = (2022, 4)
"""Version of CUDA 12.0, the oldest CUDA that this plugin measures with; it knows every option that is used."""
VERSION_LIMIT_S = 30.0
INSTALL = "install Nsight Compute (part of the CUDA toolkit), or put the folder of ncu on PATH"
UPGRADE = "install a newer Nsight Compute, or put a newer one first on PATH"
REPORT, LOG, OUTPUT = "report.ncu-rep", "ncu.log", "target.log"
TICK_S = 0.1
END_S = 5.0
"""Longest time that a run which is told to end may take to do so."""


class Ncu(NamedTuple):
    """An ``ncu`` that runs."""

    path: Path
    version: tuple[int, ...]
    """Empty if it does not tell."""

    def __str__(self) -> str:
        return f"ncu {'.'.join(map(str, self.version)) or 'of unknown version'}"


def folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Folders to search after PATH: glob patterns, in order."""
    own = tuple(f"{environ[name].rstrip('/')}/bin" for name in VARIABLES if environ.get(name))
    return (*own, *FOLDERS)


def find_program(program: str, patterns: Sequence[str], path: str | None = None) -> str | None:
    """A program on PATH or, newest name first, in folders given as glob patterns from the root."""
    found = shutil.which(program, path=path)
    if found:
        return found
    for pattern in patterns:
        for candidate in sorted(Path("/").glob(f"{pattern.lstrip('/')}/{program}"), reverse=True):
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return str(candidate)
    return None


def version_of(words: str) -> tuple[int, ...]:
    """The version that ``ncu --version`` prints; empty if its words have none."""
    found = re.search(r"Version (\d+(?:\.\d+)+)", words)
    return tuple(map(int, found[1].split("."))) if found else ()


def too_old(version: tuple[int, ...]) -> str:
    """Objection to a version; empty if there is none."""
    if not version or version >= OLDEST:
        return ""
    return f"version {'.'.join(map(str, version))} is too old: {'.'.join(map(str, OLDEST))} is needed"


def find_ncu(environ: Mapping[str, str] | None = None) -> Ncu:
    """The ``ncu`` to use.  Raises ``CountersUnavailable``: there is none, it does not run, or it is too old."""
    environ = os.environ if environ is None else environ
    path = find_program("ncu", folders(environ), environ.get("PATH", ""))
    if path is None:
        raise CountersUnavailable("no ncu", "ncu is neither on PATH nor in a CUDA toolkit", INSTALL)
    version = version_of(_words(path))
    if too_old(version):
        raise CountersUnavailable("too old", f"{path}: {too_old(version)}", UPGRADE)
    return Ncu(Path(path), version)


def _words(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False,
                              timeout=VERSION_LIMIT_S, stdin=subprocess.DEVNULL)  # fmt: skip
        if done.returncode == 0:
            return done.stdout
        why = f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()[:300]}"
    except (OSError, subprocess.TimeoutExpired) as problem:
        why = str(problem)
    raise CountersUnavailable("no ncu", f"{path} does not run ({why})", "repair its installation")


def command(ncu: Path, folder: Path, metrics: Sequence[str], cache: CacheMode, target: Sequence[str]) -> list[str]:
    """Profile the ranges of ``target``, by the chip's own names, and leave the report and ncu's log in ``folder``."""
    return [
        str(ncu), "--config-file", "off", "--target-processes", "all", "--replay-mode", "kernel",
        "--clock-control", "none",
        "--cache-control", "all" if cache == "cold" else "none",
        "--nvtx", "--nvtx-include", f"regex:{RANGE_PREFIX}.*/",
        "--metrics", ",".join(metrics), "--log-file", str(folder / LOG),
        "--force-overwrite", "--export", str(folder / REPORT), *target,
    ]  # fmt: skip


def environment(environ: Mapping[str, str], folder: Path, locks: Path) -> dict[str, str]:
    """The environment of ``ncu`` and of what it starts; ``locks`` is where this plugin keeps its GPU locks.

    ncu has one lock file for a whole machine in the temporary folder, and one left by another user blocks it for good.
    """
    own = folder / "tmp"
    own.mkdir(exist_ok=True)
    return {**environ, "TMPDIR": str(own), LOCK_VARIABLE: str(locks)}


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
