"""Find ``ncu``, Nsight Compute's command line, start it with its target, and say why it failed.

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
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.counters.exchange import RANGE_PREFIX
from pytest_gpuperf.device.lock import LOCK_VARIABLE, lock_folder
from pytest_gpuperf.errors import GpuperfError
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


class CountersUnavailable(GpuperfError):
    """Counters cannot be collected here and now, for ``reason``; ``remedy`` says what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason, self.remedy = reason, remedy


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
        detail = str(getattr(problem, "stderr", None) or "").strip()[:300]
        raise CountersUnavailable(f"{path} does not run ({problem} {detail})", "repair its installation") from None
    version = re.search(r"Version (\d+(?:\.\d+)+)", done.stdout)
    found = Ncu(Path(path), tuple(map(int, version[1].split("."))) if version else ())
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
    output: str
    """ncu's own, wherever it put them."""
    target_output: str


def run(command: Sequence[str], folder: Path, working_folder: Path, *, limit_s: float) -> Finished:
    """Run to the end.

    Raises ``CountersUnavailable`` if it takes longer than ``limit_s``.  Then, and where an interrupt comes, it is
    ended with what it started.  Raises ``OSError`` if it cannot be started.
    """
    output, log = folder / OUTPUT, folder / LOG
    with output.open("wb") as stream, subprocess.Popen(
        command, cwd=working_folder, env=environment(folder), stdin=subprocess.DEVNULL, stdout=stream,
        stderr=subprocess.STDOUT, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise CountersUnavailable(f"collecting counters took more than {limit_s:.0f} s", TOO_LONG) from None
        finally:
            with contextlib.suppress(ProcessLookupError):  # all of them have ended
                os.killpg(process.pid, signal.SIGKILL)
    target_output = output.read_text(encoding="utf-8", errors="replace")
    early = [line for line in target_output.splitlines() if line.startswith("==")]  # before ncu had a log
    own_output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return Finished(process.returncode, "\n".join([own_output, *early]), target_output)


# --- what its words mean ---------------------------------------------------------------------------

# The words are those of Nsight Compute 2022 to 2026; a text that is not known yet is passed on as it is.

NEWEST_READER = "pip install 'pytest-gpuperf[ncu]', and the newest ncu-report: it has to be as new as ncu"
PERMISSION_REMEDY = (
    "on the host: 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in /etc/modprobe.d, then reload the driver "
    "(rebuild the initrd and reboot; afterwards /proc/driver/nvidia/params has RmProfilingAdminOnly: 0); in a "
    "container: start it with --cap-add=SYS_ADMIN; in a cloud that allows neither, counters are not available. "
    "Time and static evidence do not need this"
)
_KNOWN = (
    (r"ERR_NVGPUCTRPERM", "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
     PERMISSION_REMEDY),
    (r"driver resource was unavailable|CUPTI_ERROR_MULTIPLE_SUBSCRIBERS|already (?:being )?profiled",
     "another profiler holds the GPU's counters",
     "end other runs of ncu and nsys; pause DCGM's profiling (dcgmi profile --pause, or stop dcgm-exporter) and "
     "resume it afterwards"),
    (r"LibraryNotLoaded|stub libcuda|failed to connect to the CUDA driver|Failed to prepare kernel for profiling|"
     r"Windows Subsystem", "ncu cannot reach the driver from this sandbox",
     "run outside of the sandbox (gVisor, WSL and some containers have no profiling), or start the container "
     "with --gpus all and --cap-add=SYS_ADMIN"),
    (r"Profiling is not supported on (?:device|this)", "this ncu does not know this GPU",
     "install a newer Nsight Compute (ncu --list-chips names what it knows)"),
    (r"driver is not compatible with Nsight Compute", "this ncu is too new for the driver",
     "update the driver, or install the Nsight Compute that came with the driver's CUDA version"),
)  # fmt: skip
"""Pattern in ncu's words, reason and remedy."""
_UNKNOWN_METRIC = re.compile(r"Failed to find metric (?:regex:\^)?([A-Za-z_][\w\\.]*)")
_LINE = re.compile(r"^==(?:ERROR|WARNING)==[ \t]*(\S.*)$", re.MULTILINE)


def unknown_metrics(output: str) -> tuple[str, ...]:
    """Metrics that ncu says it does not know, as it was given them."""
    return tuple(name.replace("\\", "").rstrip(".") for name in _UNKNOWN_METRIC.findall(output))


def recognise(output: str, target_output: str, status: int, *, left_report: bool = False) -> CountersUnavailable:
    """Reason and remedy for a run without counters.

    ``output`` is ncu's own, ``target_output`` the profiled program's; ``status`` is ncu's exit status.
    """
    lines = _LINE.findall(output)
    for pattern, reason, remedy in _KNOWN:
        if any(re.search(pattern, line) for line in lines):
            return CountersUnavailable(reason, remedy)
    if left_report:
        return CountersUnavailable("the report of ncu has no readable result", NEWEST_READER)
    errors = [line for line in lines if "No kernels" not in line and "target-processes" not in line]
    why = errors[0] if errors else _last(target_output) if status else ""
    if len(errors) < len(lines):
        return CountersUnavailable(
            "ncu saw no kernel of any workload" + (f" ({why})" if why else ""),
            "check that the tests pass under plain pytest and launch on the current stream of this process",
        )
    return CountersUnavailable(
        f"ncu left no report, with exit status {status} ({why or 'no message'})",
        "run the same tests without --gpuperf-ncu first, then ncu by hand on any CUDA program",
    )


def _last(text: str) -> str:
    """The last error that pytest shows, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[-1]
