"""Find Nsight Compute's command line, ``ncu``, and know its version.

Looked for on PATH, then in ``CUDA_HOME`` and ``CUDA_PATH``, then where CUDA toolkits and Nsight Compute install
themselves, the newest first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.counters.errors import CountersUnavailable

VARIABLES = ("CUDA_HOME", "CUDA_PATH")
FOLDERS = ("/usr/local/cuda*/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/NVIDIA-Nsight-Compute*")
OLDEST = (2022, 2)
"""The first version whose manual has regular expressions in NVTX filters, which the command line needs."""
VERSION_LIMIT_S = 30.0
INSTALL = "install Nsight Compute (part of the CUDA toolkit), or put the folder of ncu on PATH"


class Ncu(NamedTuple):
    """An ``ncu`` that runs."""

    path: Path
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"ncu {'.'.join(map(str, self.version))}"


def folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Where to look beside PATH: glob patterns of folders, in order."""
    own = tuple(f"{environ[name].rstrip('/')}/bin" for name in VARIABLES if environ.get(name))
    return (*own, *FOLDERS)


def version_of(words: str) -> tuple[int, ...] | None:
    """The version that ``ncu --version`` prints; None if its words have none."""
    found = re.search(r"Version (\d+(?:\.\d+)+)", words)
    return tuple(map(int, found[1].split("."))) if found else None


def too_old(version: tuple[int, ...]) -> bool:
    return version < OLDEST


def find_ncu(environ: Mapping[str, str] | None = None) -> Ncu:
    """The ``ncu`` to use.  Raises ``CountersUnavailable``: there is none, it does not run, or it is too old."""
    environ = os.environ if environ is None else environ
    path = _path(environ)
    if path is None:
        raise CountersUnavailable("no ncu", "ncu is neither on PATH nor in a CUDA toolkit", INSTALL)
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False,
                              timeout=VERSION_LIMIT_S, stdin=subprocess.DEVNULL)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CountersUnavailable("no ncu", f"{path} does not run ({problem})", "repair its installation") from None
    version = version_of(done.stdout)
    if version is None:
        words = (done.stderr or done.stdout).strip().splitlines()[:1]
        raise CountersUnavailable(
            "no ncu", f"{path} --version does not tell its version (exit status {done.returncode}: {words})",
            "repair its installation",
        )  # fmt: skip
    if too_old(version):
        oldest = ".".join(map(str, OLDEST))
        raise CountersUnavailable(
            "too old", f"{path} is version {'.'.join(map(str, version))}, and {oldest} is needed",
            "install a newer Nsight Compute, or put a newer one first on PATH",
        )  # fmt: skip
    return Ncu(Path(path), version)


def _path(environ: Mapping[str, str]) -> str | None:
    found = shutil.which("ncu", path=environ.get("PATH", ""))
    if found:
        return found
    for pattern in folders(environ):
        for candidate in sorted(Path("/").glob(f"{pattern.lstrip('/')}/ncu"), reverse=True):
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return str(candidate)
    return None
