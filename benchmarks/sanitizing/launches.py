"""A pytest plugin that notes which kernels a run launches, and gives every array an allocation of its own.

    SANITIZING_LAUNCHES=launches.json python -m pytest -p sanitizing.launches ...

Arrays out of CuPy's pool lie next to each other in large allocations, where memcheck sees no end of them.
"""

from __future__ import annotations

import collections
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.device.launch import Launch

FILE = "SANITIZING_LAUNCHES"


class Launches:
    """Counts launches by kernel, and keeps why tests failed and with which status pytest ended."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._config = config
        self._file = file
        self._counts: collections.Counter[str] = collections.Counter()
        self._failed: dict[str, str] = {}

    def note(self, launch: Launch) -> None:
        self._counts[launch.kernel.name] += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._failed[report.nodeid] = str(crash.message if crash else report.longrepr).splitlines()[0]

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        worker = self._config.stash.get(stash.RUN, None)
        facts = worker.device.facts if worker is not None and worker.has_gpu else None
        found = {
            "status": int(exitstatus),
            "gpu": facts.name if facts else None,
            "driver": facts.driver if facts else None,
            "launches": dict(sorted(self._counts.items())),
            "failed": self._failed,
        }
        self._file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    launches = Launches(config, Path(os.environ[FILE]))
    config.pluginmanager.register(launches, "sanitizing-launches")
    run_with = Launch.run_with

    def noted(launch: Launch, *given: Any, **named: Any) -> None:
        run_with(launch, *given, **named)
        launches.note(launch)

    Launch.run_with = noted  # type: ignore[method-assign]
    if importlib.util.find_spec("cupy") is not None:
        import cupy

        cupy.cuda.set_allocator(None)
