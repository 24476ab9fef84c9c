"""Processes that a run starts for itself get along with whatever flags the user's configuration gives every pytest."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest


def run(suite, *arguments):
    """As users do, with pytest's cache and without the temporary folder that ``pytester`` names."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=suite.path, capture_output=True, text=True, check=False)


def configure(suite, *lines):
    suite.write("pytest.ini", "\n".join(["[pytest]", *lines, ""]))


@pytest.mark.parametrize("flags", ["--ff", "--lf", "--nf", "--sw", "-x"])
def test_a_regression_is_confirmed_whatever_choice_of_tests_is_configured(recorded, flags):
    configure(recorded, f"addopts = {flags}")
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = run(recorded, "--gpuperf", "-k", "1024")
    assert result.returncode != 0, result.stdout
    assert "work  SLOWER  on simulated-gpu" in result.stdout


@pytest.mark.parametrize("plugin", ["logging", "cacheprovider", "junitxml", "xdist", "tmpdir"])
def test_a_regression_is_confirmed_without_plugins_of_pytest(recorded, plugin):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = run(recorded, "--gpuperf", "-k", "1024", "-p", f"no:{plugin}")
    assert result.returncode == 1, result.stdout
    assert ", in two processes; " in result.stdout


FIRST = """
import logging

def test_first(tmp_path):
    (tmp_path / "kept").touch()
    logging.getLogger().warning("of the run")
"""


def test_a_child_writes_none_of_the_runs_own_files(recorded):
    configure(recorded, "addopts = --junit-xml=junit.xml --basetemp=tmp", "log_file = run.log")
    recorded.write("test_first.py", FIRST)
    recorded.edit("test_suite.py", "gpu, gpuperf, size", "gpu, gpuperf, size, tmp_path")
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = run(recorded, "--gpuperf", "-k", "1024 or first")
    assert ", in two processes; " in result.stdout
    suite = ElementTree.parse(recorded.path / "junit.xml").getroot().find("testsuite")
    assert [case.get("name") for case in suite.iter("testcase")] == ["test_first", "test_work[1024]"]
    assert list((recorded.path / "tmp").glob("test_first*/kept"))
    assert "of the run" in (recorded.path / "run.log").read_text()


def test_nothing_of_a_child_stays_in_the_project(recorded):
    configure(recorded, "addopts = --lf")
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    before = {path.name for path in recorded.path.iterdir()}
    run(recorded, "--gpuperf", "-k", "1024")
    after = {path.name for path in recorded.path.iterdir()}
    assert after - before <= {".pytest_cache", ".gpuperf", "__pycache__"}
