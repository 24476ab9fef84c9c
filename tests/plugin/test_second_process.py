"""The second process runs as the run does, whatever stands in its way; what keeps it silent keeps nothing green."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from warm_python import COLD

from pytest_gpuperf.model.safe_python import AS_COMMAND

ONE = ("-k", "1024")
UNHEARD = "*suspected slower, and no second process could say: "


@pytest.fixture
def slower(recorded):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    return recorded


def as_command(suite, *arguments, **more):
    """As the command ``pytest`` starts it: the current folder is not on the path."""
    command = [sys.executable, "-c", AS_COMMAND, "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=suite.path, capture_output=True, text=True, check=False, **more)


def test_a_module_in_the_root_that_is_called_like_one_of_the_library_is_in_nobodys_way(slower):
    slower.write("copy.py", "raise RuntimeError('this is not the library')")
    imports = {**os.environ, COLD: "1"}  # a fork has imported the library's before
    result = as_command(slower, "--gpuperf", *ONE, env=imports)
    assert result.returncode == 1, result.stdout
    assert "work  SLOWER  on simulated-gpu" in result.stdout
    assert ", in two processes; " in result.stdout


OWN_FLAG = """

def pytest_addoption(parser):
    parser.addoption("--licence", required=True)
"""


def test_a_flag_of_a_conftest_reaches_the_second_process(slower):
    conftest = (slower.path / "conftest.py").read_text()
    slower.write("conftest.py", conftest + OWN_FLAG)
    result = as_command(slower, "--gpuperf", *ONE, "--licence", "a key of several words", "test_suite.py")
    assert "work  SLOWER  on simulated-gpu" in result.stdout, result.stdout


def test_a_flag_of_another_folders_conftest_reaches_it_too(slower):
    """The second process reads that conftest only if it collects what the run does."""
    folder = slower.path / "beside"
    folder.mkdir()
    (folder / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--licence')\n")
    (folder / "test_beside.py").write_text("def test_beside(): pass\n")
    result = as_command(slower, "--gpuperf", "-k", "1024 or beside", "--licence=x", "beside", "test_suite.py")
    assert "work  SLOWER  on simulated-gpu" in result.stdout, result.stdout


def test_a_worker_hands_on_the_command_line_of_its_controller(slower):
    conftest = (slower.path / "conftest.py").read_text()
    slower.write("conftest.py", conftest + OWN_FLAG)
    result = as_command(slower, "--gpuperf", *ONE, "--licence=x", "-n", "1")
    assert "work  SLOWER  on simulated-gpu" in result.stdout, result.stdout


def test_paths_on_the_command_line_mean_what_they_mean_to_the_run(slower):
    """They are relative to the folder that pytest was started in, which need not be the root."""
    (slower.path / "pytest.ini").write_text("[pytest]\n")
    (slower.path / "below").mkdir()
    conftest = (slower.path / "conftest.py").read_text()
    own = OWN_FLAG.replace("required=True", "type=open")
    slower.write("conftest.py", conftest + own)
    (slower.path / "below" / "key").touch()
    command = [sys.executable, "-m", "pytest", "--gpuperf", *ONE, "..", "--licence=key"]
    result = subprocess.run(command, cwd=slower.path / "below", capture_output=True, text=True, check=False)
    assert "work  SLOWER  on simulated-gpu" in result.stdout, result.stdout


def test_what_it_left_in_part_is_not_taken_for_an_answer(slower):
    task = "__import__('simulated_gpu').task_of(item.config)"
    slower.in_second_process(
        f"import pathlib, os; (pathlib.Path({task}['folder']) / '0.json').write_text('{{'); os._exit(0)"
    )
    result = slower.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SUSPECT  on *", f"{UNHEARD}the second process did not come to this workload*"])


def test_it_ends_with_the_run_that_started_it(slower):
    slower.in_second_process(
        "import os, pathlib, time; pathlib.Path('second').write_text(str(os.getpid())); time.sleep(600)"
    )
    command = [sys.executable, "-m", "pytest", "--gpuperf", *ONE]
    real = {**os.environ, COLD: "1"}  # no forks of another process
    with subprocess.Popen(command, cwd=slower.path, stdout=subprocess.DEVNULL, env=real) as run:
        second = slower.path / "second"
        wait_until(lambda: second.exists() and second.read_text())
        os.kill(run.pid, signal.SIGKILL)
    process = int(second.read_text())
    wait_until(lambda: is_gone(process))


def wait_until(condition, seconds=60.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not come to that"
        time.sleep(0.05)


def is_gone(process):
    """Whether it has ended, and at most waits to be asked for its exit status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_the_memory_that_this_process_keeps_for_reuse_is_given_back_before(slower):
    watching = "class Watching(SimulatedGpu):\n    def release_unused(self): print('given back')\n\ndef work("
    slower.edit("conftest.py", "def work(", watching)
    slower.edit("conftest.py", "return SimulatedGpu(", "return Watching(")
    result = slower.run("--gpuperf", "-s", *ONE)
    result.assert_outcomes(failed=1)
    assert "given back" in result.stdout.str()
