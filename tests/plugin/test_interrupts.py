"""A run that is interrupted, ended or killed leaves no process, folder or half-written baseline, and is not green."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import warm_python
from git_samples import commit
from suite_under_test import until

WAITS = """

def pytest_runtest_setup(item):
    if {where}:
        __import__("pathlib").Path("there").touch()
        __import__("time").sleep(60)
"""
MAIN = "not task_of(item.config) and '2048' in item.nodeid"
CONFIRMING = "task_of(item.config).get('type') == 'confirm'"


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A machine's folder for what is put down for a while."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv(warm_python.COLD, "1")  # a forked process knows of another one
    return tmp_path


def left_in(temporary):
    return sorted(path.name for path in temporary.glob("gpuperf-*"))


def end(suite, where, number, *arguments):
    """Run until a process of the run is at a place, and send the run a signal: its end and its output."""
    suite.append("conftest.py", WAITS.format(where=where))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    process = subprocess.Popen(
        command, cwd=suite.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    until((suite.path / "there").exists)
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    return process.returncode, output


def test_run_that_is_ended_says_what_it_found(recorded, temporary):
    status, output = end(recorded, MAIN, signal.SIGTERM, "--gpuperf", "--gpuperf-report=report.json")
    assert status == pytest.ExitCode.INTERRUPTED, output
    assert "1 workload: 1 UNCHANGED" in output
    assert (recorded.path / "report.json").exists()
    assert left_in(temporary) == []


def test_update_that_is_ended_says_so_and_writes_nothing(recorded, temporary):
    before = recorded.baseline_files()
    status, output = end(recorded, MAIN, signal.SIGINT, "--update-baselines=all")
    assert status == pytest.ExitCode.INTERRUPTED, output
    assert "INTERNALERROR" not in output
    assert "ERROR: the run was interrupted: no baseline was written" in output
    assert recorded.baseline_files() == before
    assert left_in(temporary) == []


def test_killed_run_takes_its_children_with_it(recorded, temporary):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    status, _ = end(recorded, CONFIRMING, signal.SIGKILL, "--gpuperf", "-k", "1024")
    assert status == -signal.SIGKILL
    until(lambda: children_in(recorded.path) == [], 5)


def children_in(folder):
    """Processes that work in a folder or below."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").resolve().is_relative_to(folder.resolve()):
                found.append(int(entry.name))
        except OSError:
            continue
    return [number for number in found if number != os.getpid()]


SLEEPS = """
def test_it(cuda_kernel, gpuperf):
    __import__("pathlib").Path({there!r}).touch()
    __import__("time").sleep(60)
"""


def test_bisection_that_is_ended_leaves_no_process_and_no_folder(temporary, monkeypatch):
    """The test that sleeps is that of the good end, in a child of the child."""
    project, cache, there = (temporary / name for name in ("project", "cache", "there"))
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(cache))
    project.mkdir()
    (project / "test_it.py").write_text(SLEEPS.format(there=str(there)))
    good = commit(project)
    commit(project)
    program = "import sys; from pytest_gpuperf.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "bisect", "--good", good, "test_it.py"]
    process = subprocess.Popen(
        command, cwd=project, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    until(there.exists)
    assert len(children_in(cache)) == 2
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM, output
    assert "Traceback" not in output
    assert children_in(cache) == []
    assert left_in(temporary) == []
