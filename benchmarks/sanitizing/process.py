"""One process of compute-sanitizer: its command, how long it may take, and what its log says when it is over.

What the process runs, and what becomes of several of them, is for ``tools`` to say.
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SUMMARY = re.compile(r"=+ (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards? displayed)[^\n]*")
_INTERNAL = re.compile(r"Internal (?:Sanitizer|Memcheck|Racecheck|Synccheck) Error[^\n]*")


@dataclasses.dataclass(frozen=True)
class Setting:
    """Which compute-sanitizer, with what, for how long."""

    sanitizer: str
    options: Sequence[str] = ()
    limit_s: float = 1800.0
    """Of a tool, over all its processes."""

    def version(self) -> str:
        done = subprocess.run([self.sanitizer, "--version"], capture_output=True, text=True, check=True)
        found = re.search(r"Version \S+", done.stdout)
        return found[0].removeprefix("Version ") if found else done.stdout.strip().splitlines()[-1]

    def command(self, tool: str, log: Path, *target: str) -> list[str]:
        """API errors are left to the suite's own checks: CuPy asks for what a driver may not have."""
        return [
            self.sanitizer, f"--tool={tool}", "--target-processes=application-only", "--report-api-errors=no",
            f"--log-file={log}", *self.options, sys.executable, *target,
        ]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Watched:
    """What a process left."""

    errors: int | None
    """By the tool's own count; None if it left no summary."""
    internal: tuple[str, ...]
    """Errors of the tool itself, each with its log's name: it went on without tracking what it was about to."""


def watch(
    setting: Setting, tool: str, stem: Path, target: Sequence[str], limit_s: float, more: Mapping[str, str]
) -> Watched:
    """Run Python on ``target`` under the tool, with ``more`` in its environment.

    The tool's log is ``stem`` with ``.log`` after it, and all that is printed goes to ``.out``.  A process that takes
    longer than ``limit_s`` is ended; where nothing is left of the limit none is started.
    """
    log, out = (stem.with_name(f"{stem.name}{ending}") for ending in (".log", ".out"))
    for file in (log, out):
        file.unlink(missing_ok=True)
    if limit_s <= 0:
        return Watched(None, ())
    paths = [str(Path(__file__).parents[1]), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **more, "PYTHONPATH": os.pathsep.join(paths)}
    with out.open("wb") as printed:
        child = subprocess.Popen(
            setting.command(tool, log, *target), cwd=ROOT, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
        )  # fmt: skip
        ended = wait_for_end(child, limit_s)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    counts = _SUMMARY.findall(text) if ended else []
    return Watched(
        int(counts[-1]) if counts else None, tuple(f"{log.name}: {line}" for line in _INTERNAL.findall(text))
    )


def wait_for_end(child: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Whether it came to its end in time; it is over in any case, with all that it started."""
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        return False
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return True
