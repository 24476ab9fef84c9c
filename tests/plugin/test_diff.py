"""``gpuperf diff`` on what a suite recorded: two commits of a repository, a change of a kernel between them."""

from __future__ import annotations

import pytest
from git_samples import commit
from suite_under_test import HOG

from pytest_gpuperf.cli.command_line import main

TESTS = """
import pytest

@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_hog(cuda_kernel, gpu, gpuperf, size):
    kernel = cuda_kernel("hog.cu", "hog", options=[])
    a, b = gpu.random(4096, seed=1), gpu.empty(32)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, b)))
"""


@pytest.fixture
def diff(suite, capsys, monkeypatch):
    """``gpuperf diff`` on the suite's repository, whose first commit has its baselines; returns status and lines."""
    suite.write("hog.cu", HOG)
    suite.write("test_hog.py", TESTS)
    suite.write(".gitignore", ".gpuperf\n")
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90")
    commit(suite.path)
    monkeypatch.chdir(suite.path)

    def run(*arguments):
        capsys.readouterr()
        status = main(["diff", *arguments])
        return status, capsys.readouterr().out.splitlines()

    return run


def test_a_kernel_that_spills_is_told_as_what_it_is(suite, diff):
    suite.edit("test_hog.py", "options=[]", 'options=["-maxrregcount=32"]')
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90")
    commit(suite.path)
    status, lines = diff("HEAD~1")
    assert status == 0
    assert lines[:4] == ["Baselines of HEAD~1 -> the working tree", "", "test_hog.py", "  hog"]
    first = " ".join(" ".join(lines[4:6]).split())
    assert first.startswith("4 workloads of test_hog[...] on sm_80: registers ")
    assert "-> 32" in first
    assert "spill stores 0 -> " in first
    assert lines[-1] == "1 kernel changed"
    assert not any("test_suite.py" in line for line in lines), "nothing of it differs"


def test_a_comment_changes_no_figure(suite, diff):
    suite.write("hog.cu", f"// Holds much.\n{HOG}")
    suite.run("--update-baselines=all", "--gpuperf-arch=sm_80,sm_90")
    assert diff() == (0, ["Baselines of HEAD -> the working tree", "", "No figure differs"])


def test_a_renamed_test_is_told_as_moved(suite, diff):
    suite.edit("test_hog.py", "def test_hog", "def test_many_values")
    assert main(["baselines", "mv", "test_hog.py::test_hog", "test_hog.py::test_many_values"]) == 0
    assert diff()[1][2:] == [
        "test_hog.py", "  hog", "    4 workloads of test_many_values[...]: moved from test_hog.py::test_hog", "",
        "4 workloads moved",
    ]  # fmt: skip


def test_an_architecture_more_is_told_as_such(suite, diff):
    suite.run("--update-baselines=new", "--gpuperf-arch=sm_80,sm_90,sm_120")
    status, lines = diff("--markdown")
    assert status == 0
    assert "* manifest: architectures: sm\\_80, sm\\_90 -&gt; sm\\_80, sm\\_90, sm\\_120" in lines
    assert not any("test_hog" in line for line in lines)
