"""Beside plugins that change how tests are run: the gate sees the same, and a loss is as red."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
import warm_python

BESIDE = {
    "pytest-cov": ("pytest_cov", ["--cov=.", "--cov-report="]),
    "pytest-randomly": ("pytest_randomly", ["-p", "randomly"]),
    "pytest-rerunfailures": ("pytest_rerunfailures", ["--reruns=1"]),
    "pytest-timeout": ("pytest_timeout", ["--timeout=120"]),
    "pytest-forked": ("pytest_forked", ["--forked"]),
    "no terminal": ("pytest", ["-p", "no:terminal"]),
    "importlib": ("pytest", ["--import-mode=importlib"]),
}


@pytest.fixture(params=list(BESIDE))
def beside(request):
    """The flags of another plugin, which has to be there."""
    module, flags = BESIDE[request.param]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{request.param} is not installed: make matrix has it")
    return flags


def run(suite, *arguments):
    command = [sys.executable, "-m", "pytest", *arguments]
    installed = not {"no:terminal", "--import-mode=importlib"} & set(arguments)  # is first of all where it starts
    cold = {warm_python.COLD: "1"} if installed else {}
    environment = {**os.environ, **cold, "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=suite.path, capture_output=True, text=True, env=environment, timeout=120)


def test_what_did_not_change_is_green(recorded, beside):
    result = run(recorded, "--gpuperf", *beside)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no:terminal" in beside or "3 workloads: 3 UNCHANGED" in result.stdout, result.stdout


def test_a_loss_is_red_and_confirmed(recorded, beside):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = run(recorded, "--gpuperf", "--gpuperf-report=report.json", *beside)
    assert result.returncode == 1, result.stdout + result.stderr
    told = (recorded.path / "report.json").read_text(encoding="utf-8")
    assert told.count("proven to be more than 0.5 % slower, in two processes") == 2


def test_an_update_records(recorded, beside):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    before = (recorded.path / "baselines" / "simulated-gpu" / "test_suite.jsonl").read_bytes()
    result = run(recorded, "--update-baselines",
                 "--gpuperf-force-update", *beside)  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert (recorded.path / "baselines" / "simulated-gpu" / "test_suite.jsonl").read_bytes() != before
