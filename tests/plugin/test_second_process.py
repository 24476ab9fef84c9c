"""SLOWER is confirmed in a second process, which runs as the run does; what keeps that silent keeps nothing green."""

from __future__ import annotations

import os
import subprocess
import sys

from evidence_tree import read_evidence
from warm_python import COLD

from pytest_gpuperf.model.task import AS_COMMAND

ONE = ("-k", "1024")


def as_command(folder, *arguments, **environment):
    """The output of a run, as the command ``pytest`` starts it: the current folder is not on the path."""
    command = [sys.executable, "-c", AS_COMMAND, "-p", "no:cacheprovider", "--gpuperf", *arguments]
    run = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


LICENCE = """

def pytest_addoption(parser):
    parser.addoption("--licence", required=True, type=open)
"""


def test_it_starts_where_the_run_did_and_no_module_of_the_root_is_in_its_way(slower):
    """Paths are relative to that folder, which need not be the root."""
    slower.write("copy.py", "raise RuntimeError('this is not the library')")
    (slower.path / "pytest.ini").write_text("[pytest]\n")
    slower.append("conftest.py", LICENCE)
    (slower.path / "below").mkdir()
    (slower.path / "below" / "key").touch()
    imports = {COLD: "1"}  # a fork has imported the library's before
    printed = as_command(slower.path / "below", *ONE, "..", "--licence=key", **imports)
    assert "work  SLOWER  on simulated-gpu" in printed, printed
    assert ", in two processes; " in printed


def test_worker_hands_on_the_command_line_of_its_controller(slower):
    slower.append("conftest.py", LICENCE)
    printed = as_command(slower.path, *ONE, "--licence=work.cu", "-n", "1")
    assert ", in two processes; " in printed, printed


FOLDER = """
import os, pytest
from simulated_gpu import confirms
@pytest.fixture
def set_once(monkeypatch):
    assert "OF_ONE_TEST" not in os.environ
    monkeypatch.setenv("OF_ONE_TEST", "1")

def pytest_collection_modifyitems(config, items):
    del items[4 - confirms(config):]  # as a splitter does

def pytest_sessionfinish(session):
    with open("ended", "a") as file:
        file.write(f"{confirms(session.config)} ")
"""


def test_one_process_confirms_the_tests_of_all_files(recorded):
    """It ends before this one, for files that both write; it has fixtures of folders, and no variables of one test."""
    tests = recorded.path.joinpath("test_suite.py").read_text().partition("def test_other")[0]
    tests = tests.replace("work.cu", "../work.cu").replace("gpu,", "gpu, set_once,")
    recorded.write("below/conftest.py", FOLDER)
    for steps, flags in ((100, ("--update-baselines", "--gpuperf-disturbed")), (120, ("--gpuperf",))):
        for name in ("below/test_a.py", "below/test_b.py"):
            recorded.write(name, tests.replace("=100", f"={steps}"))
        printed = recorded.run("below", *flags).stdout.str()
    assert printed.count(", in two processes; ") == 4, printed
    assert (recorded.path / "ended").read_text() == "False True False "


# --- it says otherwise, or nothing ---------------------------------------------------------------


def test_kernel_slower_in_one_process_alone_is_inconclusive(recorded):
    content = read_evidence(recorded.path / "baselines/simulated-gpu/test_suite.jsonl")
    sha256 = content["tests"]["test_work[1024]"]["work"]["cubin"]
    here = f"float(one.cubin_hash != {sha256!r} and not confirms(config))"
    recorded.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(tail_of=lambda one: ({here}, 1.03), ")
    recorded.change_code()
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([
        r".*work  INCONCLUSIVE  on simulated-gpu \(time\) ",
        r" .* paired, \d+\+\d+ blocks",
        r" +proven to be more than 1 % slower in one process, not reproduced in a second: "
        r"x1.0[23]\d and x(1.0|0.9)\d+;",
    ])  # fmt: skip
    recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE).assert_outcomes(failed=1)


SILENT = """{
        "test_work[1024]": lambda: __import__("os")._exit(3),
        "test_work[2048]": lambda: pytest.skip("not today"),
        "test_other": lambda: __import__("shutil").rmtree(item.config.rootpath / "baselines" / "cubins"),
    }[item.name]()"""


def test_silent_second_process_leaves_the_test_slower(slower):
    slower.edit("other.cu", "a[i] * 2.0f", "sinf(a[i]) / cosf(a[i])")
    slower.in_second_process(SILENT.replace("\n    ", "\n            "))
    result = slower.run("--gpuperf")
    result.assert_outcomes(failed=3)
    for name, words in (
        ("work", "a second process: the other process has ended (pytest exit status 3)"),
        ("work", "in a second process: its test is skipped there: not today"),
        ("doubling", "a second process could not pair the two: *the baseline's machine code is missing*"),
    ):
        result.stdout.fnmatch_lines([f"{name}  SLOWER  on *", f"    not confirmed: {words}*"])


# --- the test around it --------------------------------------------------------------------------


def test_rest_of_the_test_does_not_run_again(slower):
    """Nor does an ini file that asks for the gate reach the second process."""
    slower.pytester.makeini("[pytest]\ngpuperf = true\ngpuperf_time = changed\n")
    after = "    with open('after', 'a') as file:\n        file.write('x')"
    slower.edit("test_suite.py", "    assert result.time_ns > 0", after)
    slower.run(*ONE).assert_outcomes(failed=1)
    assert (slower.path / "after").read_text() == "x"
