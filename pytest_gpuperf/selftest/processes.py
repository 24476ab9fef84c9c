"""Starts the self-test's child processes and collects what they took."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pytest_gpuperf.selftest.child import KernelSamples, Task
from pytest_gpuperf.selftest.child import __name__ as child_module

TIMEOUT_S = 120.0
_WORDS = 1500


class ChildFailed(Exception):
    """A child process did not do its task; the message carries its own words."""


def run_child(task: Task) -> list[KernelSamples]:
    """Run one task in a fresh process.  Raises ``ChildFailed``."""
    with tempfile.TemporaryDirectory(prefix="gpuperf-") as folder:
        task_file, result_file = Path(folder) / "task.json", Path(folder) / "result.json"
        task_file.write_bytes(msgspec.json.encode(task))
        command = [sys.executable, "-m", child_module, str(task_file), str(result_file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise ChildFailed(
                f"process {task.process} of the self-test was not done after {TIMEOUT_S:g} s: is another process "
                f"holding the GPU?"
            ) from None
        if done.returncode or not result_file.exists():
            words = (done.stderr or done.stdout).strip()[-_WORDS:]
            raise ChildFailed(f"process {task.process} of the self-test ended with status {done.returncode}:\n{words}")
        return msgspec.json.decode(result_file.read_bytes(), type=list[KernelSamples])


def by_kernel(processes: Sequence[Sequence[KernelSamples]]) -> dict[str, list[KernelSamples]]:
    """Measurements of each process, by kernel."""
    found: dict[str, list[KernelSamples]] = {}
    for taken in processes:
        for one in taken:
            found.setdefault(one.kernel, []).append(one)
    return found
