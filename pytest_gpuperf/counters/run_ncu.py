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
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.counters.exchange import RANGE_PREFIX
from pytest_gpuperf.counters.failures import CountersUnavailable
from pytest_gpuperf.device.lock import LOCK_VARIABLE, lock_folder
from pytest_gpuperf.model.time_record import CacheMode

VARIABLES = ("CUDA_HOME", "CUDA_PATH")
FOLDERS = ("usr/local/cuda*/bin", "opt/nvidia/nsight-compute/*", "usr/local/NVIDIA-Nsight-Compute*")
"""Glob patterns from the root."""
OLDEST = (2022, 4)
"""Version of CUDA 12.0, the oldest CUDA that this plugin measures with; it knows every option that is used."""
VERSION_LIMIT_S = 30.0
INSTALL = "install Nsight Compute (part of the CUDA toolkit), or put the folder of ncu on PATH"
UPGRADE = "install a newer Nsight Compute, or put a newer one first on PATH"
TOO_LONG = "select fewer tests, or collect fewer metrics (--gpuperf-ncu=default)"
REPORT, LOG, OUTPUT = "report.ncu-rep", "ncu.log", "target.log"
TICK_S = 0.1


class Ncu(NamedTuple):
    """An ``ncu`` that runs."""

    path: Path
    version: tuple[int, ...]
    """Empty if it does not tell."""

    def __str__(self) -> str:
        return f"ncu {'.'.join(map(str, self.version)) or 'of unknown version'}"


def find_ncu() -> Ncu:
    """The ``ncu`` on PATH, else that of a CUDA toolkit, the newest first.

    Raises ``CountersUnavailable``: there is none, it does not run, or it is too old.
    """
    own = [f"{os.environ[name]}/bin" for name in VARIABLES if os.environ.get(name)]
    others = [str(one) for pattern in FOLDERS for one in sorted(Path("/").glob(pattern), reverse=True)]
    path = shutil.which("ncu", path=os.pathsep.join([os.environ.get("PATH", os.defpath), *own, *others]))
    if path is None:
        raise CountersUnavailable("ncu is neither on PATH nor in a CUDA toolkit", INSTALL)
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True,
                              timeout=VERSION_LIMIT_S, stdin=subprocess.DEVNULL)  # fmt: skip
    except (OSError, subprocess.SubprocessError) as problem:
        words = str(getattr(problem, "stderr", None) or "").strip()[:300]
        raise CountersUnavailable(f"{path} does not run ({problem} {words})", "repair its installation") from None
    said = re.search(r"Version (\d+(?:\.\d+)+)", done.stdout)
    found = Ncu(Path(path), tuple(map(int, said[1].split("."))) if said else ())
    if found.version and found.version < OLDEST:
        least = ".".join(map(str, OLDEST))
        raise CountersUnavailable(f"{path}: {found} is too old: {least} is needed", UPGRADE)
    return found


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


def environment(folder: Path) -> dict[str, str]:
    """The environment of ``ncu`` and of what it starts; this plugin's GPU locks stay where they are.

    ncu has one lock file for a whole machine in the temporary folder, and one left by another user blocks it for good.
    """
    own = folder / "tmp"
    own.mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(own), LOCK_VARIABLE: str(lock_folder())}


class Finished(NamedTuple):
    """Output of a finished run."""

    status: int
    words: str
    """ncu's own, wherever it put them."""
    target_words: str


def run(command: Sequence[str], folder: Path, working_folder: Path, *, limit_s: float) -> Finished:
    """Run to the end.

    Raises ``CountersUnavailable`` if it takes longer than ``limit_s``.  Then, and where an interrupt comes, it is
    ended with what it started.  Raises ``OSError`` if it cannot be started.
    """
    output, log = folder / OUTPUT, folder / LOG
    started = time.monotonic()
    with output.open("wb") as stream, subprocess.Popen(
        command, cwd=working_folder, env=environment(folder), stdin=subprocess.DEVNULL, stdout=stream,
        stderr=subprocess.STDOUT, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            while process.poll() is None:
                if time.monotonic() - started > limit_s:
                    raise CountersUnavailable(f"collecting counters was not done after {limit_s:.0f} s", TOO_LONG)
                time.sleep(TICK_S)
        finally:
            with contextlib.suppress(ProcessLookupError):  # all of them have ended
                os.killpg(process.pid, signal.SIGKILL)
    target_words = output.read_text(encoding="utf-8", errors="replace")
    early = [line for line in target_words.splitlines() if line.startswith("==")]  # before ncu had a log
    words = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return Finished(process.returncode, "\n".join([words, *early]), target_words)
