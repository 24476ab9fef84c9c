"""One tool of compute-sanitizer over the example suite: its command, its log, and what it leaves open."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sanitizing.kernels import SUITE, shared_kernels, timed_kernels
from sanitizing.launches import FILE

TOOLS = ("memcheck", "racecheck", "synccheck")
ROOT = Path(__file__).parents[2]
BASELINES = ROOT / "baselines"
BY_THE_CLOCK = frozenset(
    f"{SUITE}/{test}"
    for test in (
        "test_bank_conflicts.py::test_cycles_of_a_load",
        "test_hardware_facts.py::test_lanes_of_an_sm",
        "test_hardware_facts.py::test_what_a_load_costs",
        "test_kernel_a_latency.py::test_cycles_of_an_addition",
        "test_latency_hiding_chart.py::test_warps_or_chains_keep_a_scheduler_busy",
    )
)
"""Tests that read the SM's clock, which a tool slows down: they may fail by their own assertions."""
_SUMMARY = re.compile(r"=+ (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards? displayed)[^\n]*")
_CONTROL_LIMIT_S = 120.0


@dataclasses.dataclass(frozen=True)
class Setting:
    """Which compute-sanitizer, with what, for how long."""

    sanitizer: str
    options: Sequence[str] = ()
    limit_s: float = 1800.0

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
class Outcome:
    """What a tool said of the suite."""

    tool: str
    version: str
    seconds: float
    control: int | None
    """Errors reported of a kernel that is wrong; None if the tool did not end."""
    errors: int | None
    """Errors reported of the suite; None if the tool did not end."""
    gpu: str | None
    driver: str | None
    launches: dict[str, int]
    """By kernel."""
    missed: tuple[str, ...]
    """Kernels that it had to see, and that were not launched."""
    failed: dict[str, str]
    """Tests that failed under the tool though they do not read a clock, with the reason."""

    @property
    def problems(self) -> list[str]:
        """Why this is no clean bill; empty if it is one."""
        found = []
        if not self.control:
            found.append("reports nothing of a kernel that is wrong: its word means nothing here")
        if self.errors is None:
            found.append(f"did not come to its summary within {self.seconds:.0f} s")
        elif self.errors:
            found.append(f"reports {self.errors} errors")
        if self.gpu is None:
            found.append("there was no GPU")
        if self.missed:
            found.append(f"did not see {', '.join(self.missed)}")
        found += [f"{test} failed: {reason}" for test, reason in self.failed.items()]
        return found


def check(tool: str, setting: Setting, folder: Path, baselines: Path = BASELINES) -> Outcome:
    """Run one tool over a kernel that is wrong, and then over the suite; its log stays in ``folder``."""
    shared = shared_kernels(baselines)
    if tool == "memcheck":
        tests, wanted = [SUITE], timed_kernels(baselines)
    else:
        tests, wanted = list(dict.fromkeys(test for one in shared for test in one.tests)), {one.name for one in shared}
    control = _run(setting, tool, folder / f"{tool}-control.log", ["-m", "sanitizing.control", tool], {})
    launches = folder / f"{tool}-launches.json"
    start = time.monotonic()
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "sanitizing.launches", *tests]
    errors = _run(setting, tool, folder / f"{tool}.log", pytest, {FILE: str(launches)})
    seen = json.loads(launches.read_text(encoding="utf-8")) if launches.exists() else _nothing()
    return Outcome(
        tool=tool, version=setting.version(), seconds=time.monotonic() - start, control=control, errors=errors,
        gpu=seen["gpu"], driver=seen["driver"], launches=seen["launches"],
        missed=_missed(wanted, seen["launches"]),
        failed={test: reason for test, reason in seen["failed"].items() if test not in BY_THE_CLOCK},
    )  # fmt: skip


def _nothing() -> dict[str, Any]:
    return {"gpu": None, "driver": None, "launches": {}, "failed": {}}


def _missed(wanted: Collection[str], launches: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(set(wanted) - set(launches)))


def _run(setting: Setting, tool: str, log: Path, target: Sequence[str], more: dict[str, str]) -> int | None:
    """Errors by the tool's own count; None if it left no summary.  A child that takes too long is ended."""
    log.unlink(missing_ok=True)
    paths = [str(Path(__file__).parents[1]), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **more, "PYTHONPATH": os.pathsep.join(paths)}
    limit_s = setting.limit_s if more else min(setting.limit_s, _CONTROL_LIMIT_S)
    child = subprocess.Popen(setting.command(tool, log, *target), cwd=ROOT, env=environment, start_new_session=True)
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return None
    found = _SUMMARY.findall(log.read_text(encoding="utf-8", errors="replace")) if log.exists() else []
    return int(found[-1]) if found else None
