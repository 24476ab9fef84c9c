"""Asks pytest, in a child process, which tests there are.

A process of its own because collecting imports the user's test modules, and because pytest can be
entered once per process only.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.cli.collection_plugin import FLAG
from pytest_gpuperf.cli.collection_plugin import __name__ as collecting_plugin
from pytest_gpuperf.context.tests_found import covers
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.safe_python import FOLDER_LAST


class CollectionError(GpuperfError):
    """pytest did not get as far as collecting; the message carries its own words."""


@dataclasses.dataclass(frozen=True)
class CollectedTests:
    """Tests that pytest collected.  Paths of modules are relative to ``root`` with forward slashes, as in node ids."""

    root: Path
    baselines: Path
    """Folder of the baselines under the user's configuration."""
    scope: tuple[str, ...]
    """Files and folders that were searched, relative to ``root``; ``.`` is all of it."""
    named_tests: tuple[str, ...]
    """Arguments that picked single tests out of a file."""
    tests: frozenset[str]
    """Node ids."""
    modules: frozenset[str]
    deselected: tuple[str, ...]
    failed: tuple[str, ...]
    skipped: tuple[str, ...]
    fixtures: frozenset[str] = frozenset()
    """Those with kernels that tests share, as they are called on record."""
    empty: frozenset[str] = frozenset()
    """Tests without parameters whose parameter set is empty here: on another machine they may have some."""

    def covers(self, module: str) -> bool:
        """True if the search would have met this test module if it existed."""
        return covers(self.scope, module)


def collect(arguments: Sequence[str], baselines: str | None = None) -> CollectedTests:
    """Collect from the current folder with these paths.  Raises ``CollectionError``."""
    with tempfile.TemporaryDirectory(prefix="gpuperf-") as folder:
        target = Path(folder) / "collected.json"
        flags = ["--collect-only", "-q", "-p", collecting_plugin, f"{FLAG}={target}"]
        command = [sys.executable, "-c", FOLDER_LAST, *flags]
        if baselines is not None:
            command.append(f"--gpuperf-baselines={Path(baselines).absolute()}")
        done = subprocess.run([*command, "--", *arguments], capture_output=True, text=True, check=False)
        if not target.exists():
            words = (done.stdout + done.stderr).strip()
            raise CollectionError(f"pytest could not collect tests (exit status {done.returncode}):\n{words[-2000:]}")
        return msgspec.json.decode(target.read_bytes(), type=CollectedTests, dec_hook=lambda kind, text: kind(text))
