"""The machine as the doctor's probes see it: packages, files, programs.

Probes ask only this class, so a test hands them a machine with a driver, without one, or with wrong answers.
"""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from types import ModuleType

from pytest_gpuperf.counters.run_ncu import find_program
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.options import USUAL_FOLDER

RUN_LIMIT_S = 30


class ProgramError(GpuperfError):
    """A program could not be started, did not end in time, or ended with an error; the message says which."""


class HostMachine:
    """The real one."""

    def python(self) -> str:
        return platform.python_version()

    def version(self, distribution: str) -> str | None:
        """Version of an installed Python distribution, None if it is not installed."""
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            return None

    def load(self, module: str) -> ModuleType:
        """Import a module.  Raises ``ImportError``, or ``OSError`` if a shared library of it is unusable."""
        return importlib.import_module(module)

    def read(self, path: str) -> str | None:
        """Text of a file, None if it is not there or not readable."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def baselines(self) -> Path | None:
        """The folder of the baselines in the current folder or above; None without one."""
        here = Path.cwd()
        return next((path for one in (here, *here.parents) if (path := one / USUAL_FOLDER).is_dir()), None)

    def environ(self, name: str) -> str | None:
        return os.environ.get(name)

    def find(self, program: str, folders: tuple[str, ...] = ()) -> str | None:
        """Path of a program on PATH or, newest name first, in folders given as glob patterns from the root."""
        return find_program(program, folders)

    def run(self, *command: str) -> str:
        """Standard output of a program.  Raises ``ProgramError``."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RUN_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise ProgramError(str(problem)) from problem
        if done.returncode != 0:
            raise ProgramError(f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()[:300]}")
        return done.stdout
