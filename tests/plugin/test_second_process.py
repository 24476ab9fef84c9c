"""SLOWER is confirmed in a second process, which runs as the run does; what keeps that silent keeps nothing green."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from evidence_tree import read_evidence
from suite_under_test import CONFIRMS
from warm_python import COLD

from pytest_gpuperf.model.task import AS_COMMAND

ONE = ("-k", "1024")


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


# --- it says otherwise, or nothing ---------------------------------------------------------------


def test_kernel_slower_in_one_process_alone_is_inconclusive(recorded):
    content = read_evidence(recorded.path / "baselines/simulated-gpu/test_suite.jsonl")
    sha256 = content["tests"]["test_work[1024]"]["work"]["cubin"]
    here = f"float(one.cubin_hash != {sha256!r} and not confirms(config))"
    recorded.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(tail_of=lambda one: ({here}, 1.03), ")
    recorded.change_code()
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines(
        [
            r".*work  INCONCLUSIVE  on simulated-gpu \(time\) ",
            r" .* paired, \d+\+\d+ blocks",
            r" +proven to be more than 0.5 % slower in one process and not in a second: x1.0[23]\d and x(1.0|0.9)\d+;",
        ]
    )
    recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE).assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("import os; os._exit(3)", "the second process failed (pytest exit status 3)"),
        (
            "import shutil; shutil.rmtree(item.config.rootpath / 'baselines' / 'cubins')",
            "a second process could not pair the two: *the baseline's machine code is missing*",
        ),
        ("pytest.skip('not today')", "the second process did not reach this workload"),
    ],
    ids=["crashes", "cannot pair", "skips"],
)
def test_silent_second_process_leaves_the_test_slower(slower, statement, words):
    slower.in_second_process(statement)
    result = slower.run("--gpuperf", *ONE)
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER  on *", f"    not confirmed: {words.replace('(', '[(]')}*"])


def test_check_that_fails_in_the_second_process_is_shown_with_its_output(slower):
    slower.edit("test_suite.py", "check=lambda:", f"check=lambda: not {CONFIRMS} and")
    slower.edit("test_suite.py", "gpuperf, size)", "gpuperf, size, request)")
    slower.edit("test_suite.py", "gpu.assert_equal(b, a))\n    assert", "gpu.assert_equal(b, a) is None)\n    assert")
    result = slower.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "work  SLOWER  on simulated-gpu *",
            "*not confirmed: the second process failed [(]pytest exit status 1[)]: *the check of*",
            "*gpuperf confirmation*",
        ]
    )


# --- the test around it --------------------------------------------------------------------------


def test_rest_of_the_test_does_not_run_again(slower):
    slower.edit(
        "test_suite.py",
        "    assert result.time_ns > 0",
        "    with open('after', 'a') as file:\n        file.write('x')",
    )
    slower.run("--gpuperf", *ONE).assert_outcomes(failed=1)
    assert (slower.path / "after").read_text() == "x"


def test_test_that_fails_by_itself_is_not_confirmed(slower):
    slower.edit("test_suite.py", "    assert result.time_ns > 0", "    pytest.fail('not so')")
    result = slower.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["work  SLOWER  on *", "*not confirmed: the test was failed or stopped by pytest's own means; *"]
    )


def test_ini_file_that_asks_for_the_gate_does_not_reach_it(slower):
    slower.pytester.makeini("[pytest]\ngpuperf = true\ngpuperf_time = changed\n")
    slower.run(*ONE).assert_outcomes(failed=1)
