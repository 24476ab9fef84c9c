"""What the process of another revision imports and reads: its own code, however the project was installed, or nothing.

Every kind of path and file has its row in tests/unit/revision/test_foreign_files.py.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import Suite

AGAINST = ("--gpuperf", "--gpuperf-arch=sm_90", "--gpuperf-against=HEAD")
USES = """
from whole import numbers

def test_work(cuda_kernel):
    cuda_kernel("work.cu", "work", options=[f"-DSTEPS={numbers.STEPS}"])
"""


@pytest.fixture
def project(suite: Suite) -> Suite:
    """A project in which 100 steps became 200."""
    suite.write("code/whole/__init__.py", "")
    suite.write("code/whole/numbers.py", "STEPS = 100\n")
    suite.write(".gitignore", "__pycache__\n.gpuperf\n*.so\n")
    suite.write("test_suite.py", USES)
    return suite


def on_path(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("GPUPERF_TESTS_COLD", "1")  # a process that starts by itself looks for installed packages
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def changed(project: Suite) -> None:
    commit(project.path)
    project.write("code/whole/numbers.py", "STEPS = 200\n")


def refused(project: Suite, said: str) -> None:
    """Nothing is compared, and the file that both sides would share is named."""
    result = project.run(*AGAINST, "--gpuperf-open=fail", subprocess=True)
    assert result.ret == 1, result.stdout.str()
    result.stdout.fnmatch_lines(["*NOT-COMPARABLE*", f"*used a file of the other side: {said}"])


def test_editable_installation_leads_each_side_to_its_own_code(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a path file in a folder that counts as one of installed packages."""
    start = project.path.with_name(f"{project.path.name}-start")
    (start / "installed").mkdir(parents=True)
    (start / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(start / 'installed')!r})\n")
    (start / "installed/__editable__.project.pth").write_text(f"{project.path / 'code'}\n")
    on_path(monkeypatch, start)
    changed(project)
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 0, f"{result.stdout.str()}{result.stderr.str()}"
    result.stdout.fnmatch_lines(["*SAME*"])  # of other machine code: each has compiled its own number of steps


def test_module_of_the_working_tree_is_refused(project: Suite) -> None:
    project.write("conftest.py", f"import sys\nsys.path.insert(0, {str(project.path / 'code')!r})\n")
    changed(project)
    refused(project, "*/code/whole/numbers.py, of another working tree, was imported and differs*--gpuperf-against-e*")


def test_module_of_a_third_worktree_is_refused_here_too(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(project.path)
    other = project.path.with_name(f"{project.path.name}-other")
    git(project.path, "worktree", "add", "-q", "--detach", str(other))
    project.write("code/whole/numbers.py", "STEPS = 200\n")
    on_path(monkeypatch, other / "code")
    refused(project, "*of another working tree, was imported and differs from code/whole/numbers.py of*")


def test_header_of_the_working_tree_is_refused(project: Suite) -> None:
    """By an absolute path of ``-I``, both sides would compile it."""
    project.write("code/factor.cuh", "#define FACTOR 1.5f\n")
    project.write(
        "work.cu", f'#include "factor.cuh"\n{(project.path / "work.cu").read_text()}'.replace("1.5f", "FACTOR")
    )
    options = f"options=['-DSTEPS=100', '-I{project.path / 'code'}']"
    project.write("test_suite.py", f"def test_work(cuda_kernel):\n    cuda_kernel('work.cu', 'work', {options})\n")
    commit(project.path)
    project.write("code/factor.cuh", "#define FACTOR 2.5\n")
    refused(project, "*/code/factor.cuh, of another working tree, was read and differs*")


def test_shared_library_of_the_working_tree_is_refused(project: Suite) -> None:
    """Git ignores what was built: the worktree has none of its own."""
    maps = Path("/proc/self/maps").read_text().split()
    shutil.copy(next(word for word in maps if "/libm" in word), project.path / "libkern.so")
    loads = f"import ctypes\nctypes.CDLL({str(project.path / 'libkern.so')!r})\n"
    project.write("test_suite.py", f"{loads}def test_other(cuda_kernel):\n    cuda_kernel('other.cu', 'other')\n")
    commit(project.path)
    refused(project, "*/libkern.so, of another working tree, was loaded and is not in the tree of this side*")
