"""Find Nsight Compute's command line, ``ncu``, and know its version.

``gpuperf doctor`` looks in the same places.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.counters.unavailable import CountersUnavailable

VARIABLES = ("CUDA_HOME", "CUDA_PATH")
FOLDERS = ("/usr/local/cuda*/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/NVIDIA-Nsight-Compute*")
OLDEST = (2022, 4)
"""Version of CUDA 12.0, the oldest CUDA that this plugin measures with; it knows every option that is used."""
VERSION_LIMIT_S = 30.0
INSTALL = "install Nsight Compute (part of the CUDA toolkit), or put the folder of ncu on PATH"
UPGRADE = "install a newer Nsight Compute, or put a newer one first on PATH"


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
