"""The plugin that the sanitizer script adds to a run: it notes what was launched and what failed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def noted(gpu_suite, monkeypatch):
    """Runs the suite with the plugin, in a process of its own; what it left."""

    def run(*arguments):
        left = gpu_suite.path / "launches.json"
        monkeypatch.setenv("SANITIZING_LAUNCHES", str(left))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")]))
        gpu_suite.run("-p", "sanitizing.launches", *arguments, subprocess=True)
        return json.loads(left.read_text(encoding="utf-8"))

    return run


def test_launches_are_counted_by_kernel(noted):
    found = noted()
    assert found["launches"] == {"other": 1, "work": 2}
    assert found["gpu"] == "Simulated GPU"


def test_failed_tests_are_named_with_their_reason(noted, gpu_suite):
    gpu_suite.edit("test_suite.py", "gpu.assert_equal(b, a))\n    assert", "1 / 0)\n    assert")
    found = noted()
    assert found["failed"] == {
        "test_suite.py::test_work[1024]": "ZeroDivisionError: division by zero",
        "test_suite.py::test_work[2048]": "ZeroDivisionError: division by zero",
    }


def test_a_run_that_did_not_run_its_tests_says_so(noted, gpu_suite):
    assert noted()["status"] == 0
    gpu_suite.edit("test_suite.py", "assert", "assert )")
    assert noted()["status"] == pytest.ExitCode.INTERRUPTED


def test_without_a_gpu_nothing_was_launched(noted, gpu_suite):
    (gpu_suite.path / "conftest.py").unlink()
    assert noted() == {"status": 0, "gpu": None, "driver": None, "launches": {}, "failed": {}}
