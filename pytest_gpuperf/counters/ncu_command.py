"""The command line of ``ncu``, and what its environment has to be.

Clocks are left alone, for locking them needs privileges and changes the machine for everybody.  The caches are
flushed before every replay pass where workloads start cold, so that several passes see the same memory traffic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_gpuperf.device.lock import LOCK_VARIABLE
from pytest_gpuperf.model.evidence import CacheMode

RANGE_PREFIX = "gpuperf:"
"""Before a workload's number in names of NVTX ranges: a test's id has characters that mean something in filters."""
REPORT = "report.ncu-rep"
LOG = "ncu.log"
TEMPORARY = "tmp"


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
    own = folder / TEMPORARY
    own.mkdir(exist_ok=True)
    return {**environ, "TMPDIR": str(own), LOCK_VARIABLE: str(locks)}
