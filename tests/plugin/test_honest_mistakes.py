"""Honest mistakes: each is red under CI; and what is no mistake is green.

One table of what must never turn a gate green, and one of the ways in which people run a part of their tests.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import warm_python
from evidence_tree import read_evidence
from suite_under_test import SIMULATED, Command, Suite

ONE = "def test_other(cuda_kernel, gpu, gpuperf):"
NOTHING_MEASURED = 10
WITH_AND_WITHOUT_GPU = (SIMULATED, "")
PLAIN = """
def test_plain(cuda_kernel):
    cuda_kernel('extern "C" __global__ void own(int *p) { *p = 7; }', "own")
"""
"""A test of a kernel that has no baseline."""


@pytest.fixture
def under_ci(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """The suite with its baselines under CI, on a simulated GPU."""
    monkeypatch.setenv("CI", "true")
    return recorded


# --- what is red ---------------------------------------------------------------------------------


def edit(old: str, new: str) -> Callable[[Suite], None]:
    return lambda suite: suite.edit("test_suite.py", old, new)


def mark(decorator: str) -> Callable[[Suite], None]:
    return edit(ONE, f"{decorator}\n{ONE}")


def begin(statement: str) -> Callable[[Suite], None]:
    return edit(f"{ONE}\n", f"{ONE}\n    {statement}\n")


def delete_test(suite: Suite) -> None:
    text = (suite.path / "test_suite.py").read_text()
    suite.write("test_suite.py", text[: text.index(ONE)])


def delete_file(suite: Suite) -> None:
    suite.write("test_plain.py", "def test_plain():\n    pass\n")
    (suite.path / "test_suite.py").unlink()


def rename_with_other_code(suite: Suite) -> None:
    rename_test(suite)
    suite.edit("other.cu", "* 2.0f", "* 2.0f + a[0]")


def no_kernel(suite: Suite) -> None:
    delete_test(suite)
    suite.edit("test_suite.py", "import pytest\n", "import pytest\ndef test_other():\n    pass\n")


rename_test = edit("def test_other(", "def test_others(")
MEASURING = "    gpuperf(kernel.launch(grid=2"
NOT_MEASURED = "ERROR: * NOT-MEASURED on *sm_90*: "
MISTAKES = {
    "deleted test": (delete_test, f"{NOT_MEASURED}its test was deleted or renamed: test_suite.py::test_other. *"),
    "deleted file": (delete_file, f"{NOT_MEASURED}*: test_suite.py (the file is missing). To do: restore it, *"),
    "renamed test": (
        rename_test,
        "*was test_suite.py::test_other *, with the same machine code: run `gpuperf baselines mv *",
    ),
    "renamed, other code": (rename_with_other_code, f"{NOT_MEASURED}*deleted or renamed: test_suite.py::test_other. *"),
    "renamed file": (
        lambda suite: shutil.move(suite.path / "test_suite.py", suite.path / "test_kernels.py"),
        "*: run `gpuperf baselines mv test_suite.py test_kernels.py` to move its baseline along",
    ),
    "renamed workload": (edit('name="doubling"', 'name="twice"'), "*was test_suite.py::test_other [[]doubling[]], *"),
    "skip": (mark("@pytest.mark.skip(reason='flaky')"), f"{NOT_MEASURED}*skipped*: test_suite.py::test_other (flaky)*"),
    "skip in its call": (begin("pytest.skip('flaky')"), f"{NOT_MEASURED}*skipped*::test_other (flaky). *"),
    "expected failure": (mark("@pytest.mark.xfail(run=False, reason='old')"), f"{NOT_MEASURED}*::test_other (*old). *"),
    "skipped module": (
        edit("import pytest\n", "import pytest\npytest.importorskip('no_such_module')\n"),
        "*NOT-MEASURED on *skipped*: test_suite.py::test_other (could not import *",
    ),
    "early return": (
        begin("return"),
        f"{NOT_MEASURED}its test did not reach it: test_suite.py::test_other [[]doubling[]]. *",
    ),
    "no kernel": (no_kernel, f"{NOT_MEASURED}its test did not reach it: test_suite.py::test_other [[]doubling[]]. *"),
    "exit": (
        begin("pytest.exit('enough', returncode=0)"),
        f"{NOT_MEASURED}*: test_suite.py::test_other * (the run ended before it). *",
    ),
    "removed target": (
        lambda suite: shutil.rmtree(suite.path / "baselines" / "sm_90"),
        "ERROR: * names sm_90, which has no baselines: NOT-MEASURED. To do: record them: *",
    ),
    "removed manifest": (
        lambda suite: (suite.path / "baselines" / "manifest.json").unlink(),
        "ERROR: missing records cannot be listed: *manifest.json*",
    ),
    "return before the measurement": (edit(MEASURING, f"    return\n{MEASURING}"), "*NOT-MEASURED *simulated-gpu*"),
    "skip before the measurement": (
        edit(MEASURING, f"    pytest.skip('flaky')\n{MEASURING}"),
        "*NOT-MEASURED *simulated-gpu*",
    ),
    "conflict": (lambda suite: suite.write("baselines/manifest.json", "<<<<<<< ours\n"), "*manifest.json*"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_red_under_ci(under_ci: Suite, mistake: str) -> None:
    change, line = MISTAKES[mistake]
    change(under_ci)
    nothing = mistake in ("deleted file", "skipped module")
    for conftest in WITH_AND_WITHOUT_GPU[: 1 if "before the measurement" in mistake else 2]:
        under_ci.write("conftest.py", conftest)
        result = under_ci.run("--gpuperf")
        assert result.ret == (NOTHING_MEASURED if nothing else pytest.ExitCode.TESTS_FAILED)
        result.stdout.fnmatch_lines([line])
        result.stdout.no_fnmatch_line("*  NOT-COMPARABLE  on*")


def test_mistakes_are_remarks_on_a_desk(recorded: Suite) -> None:
    delete_test(recorded)
    result = recorded.run("--gpuperf")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["1 workload NOT-MEASURED on sm_90, simulated-gpu: its test was deleted or renamed: *"])
    assert recorded.run("--gpuperf", "--gpuperf-open=fail").ret == 1
    assert recorded.run("--update-baselines", "--gpuperf-open=fail").ret == 0


# --- what is green -------------------------------------------------------------------------------

PARTS = {
    "all": ((), 0),
    "-k": (("-k", "other"), 2),
    "-m": (("-m", "not parametrize"), 2),
    "--deselect": (("--deselect", "test_suite.py::test_other"), 1),
    "a path": (("test_plain.py",), 3),
    "a node id": (("test_suite.py::test_other",), 2),
    "--ignore": (("--ignore", "test_suite.py"), 3),
}


@pytest.mark.parametrize("part", PARTS)
def test_part_of_the_tests_misses_nothing(under_ci: Suite, part: str) -> None:
    flags, left_out = PARTS[part]
    if left_out == 3:
        under_ci.write("test_plain.py", PLAIN)
    for conftest in WITH_AND_WITHOUT_GPU:
        under_ci.write("conftest.py", conftest)
        result = under_ci.run("--gpuperf", "--gpuperf-open=warn", *flags)
        assert result.ret == 0
        result.stdout.no_fnmatch_line("*NOT-MEASURED on*")
        said = [line for line in result.stdout.lines if line.startswith("partial run: ")]
        assert len(said) == bool(left_out)
        assert all(f"left out {left_out} of 3 workloads" in line for line in said)


def test_first_failure_and_last_failed_are_parts(under_ci: Suite) -> None:
    under_ci.edit("test_suite.py", "import pytest\n", "import pytest\ndef test_red():\n    assert False\n")
    for flag, left_out in (("-x", None), ("--lf", 3)):
        result = under_ci.pytester.runpytest_inprocess("-p", "cacheprovider", "--gpuperf", flag)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.no_fnmatch_line("*NOT-MEASURED on*")
        if left_out:
            result.stdout.fnmatch_lines([f"partial run: it left out {left_out} of 3 workloads *"])


def moved(suite: Suite, folder: str, *names: str) -> Path:
    """The folder with the tests and these files."""
    (suite.path / folder).mkdir(parents=True)
    for name in ("test_suite.py", "work.cu", "other.cu", "conftest.py", *names):
        shutil.move(suite.path / name, suite.path / folder / name)
    return suite.path / folder


def test_run_in_another_root_names_its_folder(under_ci: Suite) -> None:
    below = moved(under_ci, "below")
    result = under_ci.run("--gpuperf", "below", "--rootdir=below")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"there are no baselines in {below / 'baselines'} (rootdir {below}): *--rootdir *"])


@pytest.mark.parametrize("above", [True, False])
def test_run_beside_a_project_names_it(recorded: Suite, monkeypatch: pytest.MonkeyPatch, *, above: bool) -> None:
    """Pytest's root is above the project, or below: an ini file that came later moved it there."""
    project, root = recorded.path, recorded.path / "libs/kern"
    if above:
        project, root = moved(recorded, "libs/kern", "baselines"), project
    else:
        moved(recorded, "libs/kern")
        recorded.write("libs/kern/pytest.ini", "[pytest]\n")
        for file in (recorded.path / "baselines").glob("*/*.jsonl"):
            file.rename((file.parent / "libs/kern").mkdir(parents=True) or file.parent / "libs/kern" / file.name)
    line = f"*their baselines in {project / 'baselines'}. To do: for each, pytest --rootdir={project} {project}"
    for flag, status in (("--gpuperf", 0), ("--update-baselines=new", 1)):
        result = recorded.run(flag, "libs/kern")
        result.stdout.fnmatch_lines([line])
        assert (result.ret, (root / "baselines").exists()) == (status, False)
    monkeypatch.setenv("CI", "true")
    assert recorded.run("--gpuperf", "libs/kern", f"--rootdir={project}").ret == 0


# --- beside other plugins ------------------------------------------------------------------------

PLUGINS = {
    "pytest-xdist": ("xdist", ["-n", "2"]),
    "pytest-randomly": ("pytest_randomly", ["-p", "randomly"]),
    "pytest-rerunfailures": ("pytest_rerunfailures", ["--reruns=1"]),
    "pytest-subtests": ("pytest_subtests", []),
    "pytest-cov": ("pytest_cov", ["--cov=.", "--cov-report="]),
    "pytest-timeout": ("pytest_timeout", ["--timeout=120"]),
    "no terminal": ("pytest", ["-p", "no:terminal"]),
    "importlib": ("pytest", ["--import-mode=importlib"]),
}


@pytest.fixture(params=list(PLUGINS))
def beside(request: pytest.FixtureRequest) -> list[str]:
    """The flags of another plugin, which has to be there; it is first of all in a process that starts cold."""
    module, flags = PLUGINS[request.param]
    pytest.importorskip(module)
    if module.startswith("pytest_"):
        request.getfixturevalue("monkeypatch").setenv(warm_python.COLD, "1")
    return flags


def run(suite: Suite, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", *arguments]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=suite.path, capture_output=True, text=True, env=environment, timeout=120)


def test_loss_alone_is_red_and_update_records_beside_other_plugins(recorded: Suite, beside: list[str]) -> None:
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = run(recorded, "--gpuperf", "--gpuperf-report=report.json", *beside)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "no:terminal" in beside or "3 workloads: 2 SLOWER, 1 UNCHANGED" in result.stdout, result.stdout
    told = (recorded.path / "report.json").read_text(encoding="utf-8")
    assert told.count("proven to be more than 1 % slower, in two processes") == 2
    path: Path = recorded.path / "baselines" / "simulated-gpu" / "test_suite.jsonl"
    before = read_evidence(path)
    result = run(recorded, "--update-baselines", "--gpuperf-disturbed", *beside)
    assert result.returncode == 0, result.stdout + result.stderr
    assert read_evidence(path) != before


@pytest.mark.skipif(importlib.util.find_spec("pytest_split") is None, reason="pytest-split is not installed")
def test_splitter_divides_the_tests(under_ci: Suite, command: Command) -> None:
    split = ("--gpuperf", "-p", "no:randomly", "--splits=2")  # which would divide them anew on each host
    for group in ("1", "2"):
        result = run(under_ci, *split, f"--group={group}", f"--gpuperf-report={group}.json")
        assert result.returncode == 0, result.stdout + result.stderr
        assert "partial run: it left out " in result.stdout
    status, said, _ = command("report", "1.json", "2.json")
    assert (status, "3 UNCHANGED" in said) == (0, True)
    delete_test(under_ci)
    assert run(under_ci, *split, "--group=1").returncode == pytest.ExitCode.TESTS_FAILED


UNITTEST = """
import unittest

class Other(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def fixtures(self, cuda_kernel, gpu, gpuperf):
        self.of_test = cuda_kernel, gpu, gpuperf

    def test_it(self):
        other(*self.of_test)
"""


def test_unittest_is_gated_and_missing_like_others(under_ci: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (under_ci.path / "test_suite.py").read_text()
    monkeypatch.delenv("CI")
    under_ci.write("test_suite.py", f"{text.replace('def test_other(', 'def other(')}{UNITTEST}")
    shutil.rmtree(under_ci.path / "baselines")
    assert under_ci.run("--update-baselines=new", "--gpuperf-disturbed").ret == 0
    monkeypatch.setenv("CI", "true")
    assert under_ci.run("--gpuperf").ret == 0
    under_ci.edit("test_suite.py", "    def test_it", "    @unittest.skip('flaky')\n    def test_it")
    result = under_ci.run("--gpuperf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"{NOT_MEASURED}*skipped*: test_suite.py::Other::test_it (flaky). *"])
