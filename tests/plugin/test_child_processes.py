"""Processes that a run starts for itself: whatever the user's configuration; tests/unit/workload has their faults."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest


def run(suite, *arguments):
    """As users do, with pytest's cache and without the temporary folder that ``pytester`` names."""
    command = [sys.executable, "-m", "pytest", "--gpuperf", "-k", "1024 or first", *arguments]
    return subprocess.run(command, cwd=suite.path, capture_output=True, text=True, check=False)


WITHOUT = [f"-pno:{plugin}" for plugin in ("logging", "cacheprovider", "junitxml", "xdist", "tmpdir")]


@pytest.mark.parametrize(("configured", "flags"), [("--ff --nf -x --sw", ()), ("--lf", ()), ("", WITHOUT)])
def test_regression_is_confirmed_whatever_is_configured(slower, configured, flags):
    slower.write("pytest.ini", f"[pytest]\naddopts = {configured}\n")
    before = {path.name for path in slower.path.iterdir()}
    result = run(slower, *flags)
    assert result.returncode != 0, result.stdout
    assert "work  SLOWER  on simulated-gpu" in result.stdout
    assert ", in two processes; " in result.stdout
    after = {path.name for path in slower.path.iterdir()}
    assert after - before <= {".pytest_cache", ".gpuperf", "__pycache__"}, "nothing of a child stays in the project"


FIRST = """
import logging

def test_first(tmp_path):
    (tmp_path / "kept").touch()
    logging.getLogger().warning("of the run")
"""


def test_child_writes_none_of_the_runs_own_files(slower):
    slower.write("pytest.ini", "[pytest]\naddopts = --junit-xml=junit.xml --basetemp=tmp\nlog_file = run.log\n")
    slower.write("test_first.py", FIRST)
    slower.edit("test_suite.py", "gpu, gpuperf, size", "gpu, gpuperf, size, tmp_path")
    assert ", in two processes; " in run(slower).stdout
    suite = ElementTree.parse(slower.path / "junit.xml").getroot().find("testsuite")
    assert [case.get("name") for case in suite.iter("testcase")] == ["test_first", "test_work[1024]"]
    assert list((slower.path / "tmp").glob("test_first*/kept"))
    assert "of the run" in (slower.path / "run.log").read_text()
