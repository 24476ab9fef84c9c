"""Baselines that many tests start from: recorded once for all processes of a session, in a process of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock


def baselines_of(
    folder: Path, files: Mapping[str, str], *flags: str, before: Path | None = None, **environment: str
) -> Path:
    """The baselines that a suite of these files records with these flags; the first process that asks does it.

    One that fails leaves the words of its run, and the next that asks tries again.  ``before``: baselines that the
    suite has already.
    """
    baselines, done = folder / "baselines", folder / "done"
    with FileLock(folder.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name, text in {"pytest.ini": "", **files}.items():
                (folder / name).write_text(text, encoding="utf-8")
            if before is not None:
                shutil.copytree(before, baselines)
            run = subprocess.run(
                [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *flags], cwd=folder,
                env={**os.environ, **environment}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert run.returncode == 0, f"exit status {run.returncode} of {run.args}:\n{run.stdout}{run.stderr}"
            assert " refused" not in run.stdout, run.stdout
            done.touch()
    return baselines
