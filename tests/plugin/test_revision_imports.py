"""What the process of another revision imports: its own code, however the project was installed, or nothing."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

import pytest
from git_samples import commit
from suite_under_test import Suite

AGAINST = ("--gpuperf", "--gpuperf-arch=sm_90", "--gpuperf-against=HEAD")
USES = """
from {package} import numbers

def test_work(cuda_kernel):
    cuda_kernel("work.cu", "work", options=[f"-DSTEPS={{numbers.STEPS}}"])
"""
FINDER = """
import importlib.util, os, sys

MAPPING = {mapping!r}
NAMESPACES = {{}}

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        place = MAPPING.get(name)
        if place is None:
            return None
        return importlib.util.spec_from_file_location(
            name, os.path.join(place, "__init__.py"), submodule_search_locations=[place])

def install():
    sys.meta_path.append(Finder)
"""
"""As setuptools makes it for an editable installation whose packages are no folders of the path."""
SITE = "import site\nsite.addsitedir({folder!r})\n"
"""Has the effect of a folder of installed packages, .pth files and all."""


@pytest.fixture
def project(suite: Suite) -> Suite:
    """A project in which 100 steps became 200."""
    for name in ("whole/__init__.py", "whole/numbers.py", "open/numbers.py"):
        (suite.path / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        suite.write(f"code/{name}", "STEPS = 100\n" if name.endswith("numbers.py") else "")
    suite.write(".gitignore", "__pycache__\n.gpuperf\n*.so\n")
    return suite


def changed(project: Suite, package: str) -> None:
    project.write("test_suite.py", USES.format(package=package))
    commit(project.path)
    project.write(f"code/{package}/numbers.py", "STEPS = 200\n")


@pytest.fixture
def installed(project: Suite, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that counts as one of installed packages in every process from now on."""
    start = project.path.parent / f"{project.path.name}-start"
    folder = start / "installed"
    folder.mkdir(parents=True)
    (start / "sitecustomize.py").write_text(SITE.format(folder=str(folder)))
    monkeypatch.setenv("GPUPERF_TESTS_COLD", "1")  # a process that starts by itself looks for installed packages
    monkeypatch.setenv("PYTHONPATH", f"{start}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return folder


def right(project: Suite) -> None:
    """Each side has compiled its own number of steps: the machine code differs."""
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 0, f"{result.stdout.str()}{result.stderr.str()}"
    result.stdout.fnmatch_lines(["*SAME*"])


def refused(project: Suite, said: str) -> None:
    """Nothing is compared, and the file that both sides would share is named."""
    result = project.run(*AGAINST, "--gpuperf-open=fail", subprocess=True)
    assert result.ret == 1, result.stdout.str()
    result.stdout.fnmatch_lines(["*NOT-COMPARABLE*", f"*used a file that is not its own: {said}"])


@pytest.mark.parametrize("package", ["whole", "open"])
def test_an_editable_installation_by_path(project: Suite, installed: Path, package: str) -> None:
    """``open`` is a namespace package."""
    (installed / "__editable__.project.pth").write_text(f"{project.path / 'code'}\n")
    changed(project, package)
    right(project)


def test_an_editable_installation_by_a_finder(project: Suite, installed: Path) -> None:
    finder = FINDER.format(mapping={"whole": str(project.path / "code/whole")})
    (installed / "__editable___project_finder.py").write_text(finder)
    (installed / "project.pth").write_text("import __editable___project_finder as f; f.install()\n")
    changed(project, "whole")
    right(project)


def test_another_kind_of_finder_is_refused(project: Suite, installed: Path) -> None:
    finder = FINDER.format(mapping={"whole": str(project.path / "code/whole")})
    (installed / "_own_redirect.py").write_text(finder)
    (installed / "project.pth").write_text("import _own_redirect as f; f.install()\n")
    changed(project, "whole")
    refused(project, "*/numbers.py, of another working tree, was imported and differs*--gpuperf-against-python*")


def test_an_installed_package_is_a_link(project: Suite, installed: Path) -> None:
    (installed / "whole").symlink_to(project.path / "code/whole")
    changed(project, "whole")
    refused(project, "*/code/whole/numbers.py, of another working tree, was imported and differs*")


def test_an_installed_copy_is_refused(project: Suite, installed: Path) -> None:
    """Both sides would run it, and neither its own."""
    (installed / "whole").mkdir()
    for name in ("__init__.py", "numbers.py"):
        (installed / "whole" / name).write_text("STEPS = 50\n")
    (project.path / "src").mkdir()
    (project.path / "code/whole").rename(project.path / "src/whole")
    project.write("test_suite.py", USES.format(package="whole"))
    commit(project.path)
    refused(project, "*/installed/whole/* was imported as whole, though this side has src/whole/__init__.py*")


def test_an_installed_package_of_a_name_that_the_repository_has_too_is_left_alone(
    project: Suite, installed: Path
) -> None:
    """A library beside the copy of it, of another version, that the repository keeps for other uses."""
    changed(project, "whole")
    (installed / "whole").mkdir()
    for name in ("__init__.py", "numbers.py"):
        (installed / "whole" / name).write_text("STEPS = 50\n")
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 0, result.stdout.str()


def test_a_pythonpath_into_the_working_tree(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{project.path / 'code'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    changed(project, "open")
    right(project)


def test_an_ini_pythonpath(project: Suite) -> None:
    project.write("pytest.ini", "[pytest]\npythonpath = code\n")
    changed(project, "whole")
    right(project)


def test_a_conftest_that_names_the_working_tree(project: Suite) -> None:
    project.write("conftest.py", f"import sys\nsys.path.insert(0, {str(project.path / 'code')!r})\n")
    changed(project, "whole")
    refused(project, "*/code/whole/numbers.py, of another working tree, was imported and differs*")


def test_an_extension_that_is_built_in_place(project: Suite, installed: Path) -> None:
    """Git ignores it: the worktree has none, and the finder leads to that of the working tree."""
    built = project.path / f"code/whole/_built{sysconfig.get_config_var('EXT_SUFFIX')}"
    built.write_bytes(b"")
    project.write("conftest.py", LOADS.format(file=str(built)))
    changed(project, "open")
    (installed / "project.pth").write_text(f"{project.path / 'code'}\n")
    refused(project, "*/code/whole/_built*, of another working tree, was imported and is not in the tree of this side*")


LOADS = """
import sys
module = type(sys)("whole._built")
module.__file__ = {file!r}
sys.modules["whole._built"] = module
"""


@pytest.mark.parametrize("own", [False, True], ids=["into the working tree", "to its own folder"])
def test_a_conftest_that_changes_the_current_folder(project: Suite, *, own: bool) -> None:
    where = "__import__('pathlib').Path(__file__).parent" if own else repr(str(project.path))
    project.write("conftest.py", f"import os\nos.chdir({where})\n")
    project.write("pytest.ini", "[pytest]\npythonpath = code\n")
    changed(project, "whole")
    right(project)  # nothing is read there


def test_a_kernel_of_the_working_tree(project: Suite) -> None:
    project.edit("test_suite.py", '"other.cu"', repr(str(project.path / "other.cu")))
    commit(project.path)
    assert project.run(*AGAINST, subprocess=True).ret == 0  # the same on both sides
    project.edit("other.cu", "2.0f", "3.0f")
    refused(project, "*/other.cu, of another working tree, was read and differs from other.cu of this side*")


OPTION = 'options=["-DSTEPS=100", "-I" + {folder!r}]'


def test_a_header_of_the_working_tree(project: Suite) -> None:
    """By an absolute path of ``-I``, both sides would compile what the working tree has."""
    (project.path / "include").mkdir()
    project.write("include/factor.cuh", "#define FACTOR 1.5f\n")
    project.edit("work.cu", "x * 1.5f", "x * FACTOR")
    project.write("work.cu", f'#include "factor.cuh"\n{(project.path / "work.cu").read_text()}')
    project.edit("test_suite.py", 'options=["-DSTEPS=100"]', OPTION.format(folder=str(project.path / "include")))
    commit(project.path)
    project.write("include/factor.cuh", "#define FACTOR 2.5\n")
    refused(project, "*/include/factor.cuh, of another working tree, was read and differs*")


@pytest.mark.parametrize("name", ["other.cu", "other.cu.j2"])
def test_text_that_a_test_reads_out_of_the_working_tree(project: Suite, name: str) -> None:
    """Its content decides, whatever it is called."""
    text = (project.path / "other.cu").read_text()
    project.write(name, text)
    project.edit("test_suite.py", '"other.cu"', f"open({str(project.path / name)!r}).read()")
    commit(project.path)
    assert project.run(*AGAINST, subprocess=True).ret == 0
    project.write(name, text.replace("2.0f", "3.0f"))
    refused(project, f"*/{name}, of another working tree, was read and differs from {name} of this side*")


def test_a_shared_library_of_the_working_tree(project: Suite) -> None:
    """Git ignores what was built: the worktree has none of its own."""
    maps = Path("/proc/self/maps").read_text().split()
    shutil.copy(next(word for word in maps if "/libm" in word), project.path / "libkern.so")
    loads = f"import ctypes\nctypes.CDLL({str(project.path / 'libkern.so')!r})\n"
    project.write("test_suite.py", loads + (project.path / "test_suite.py").read_text())
    commit(project.path)
    refused(project, "*/libkern.so, of another working tree, was loaded and is not in the tree of this side*")


def test_headers_of_an_environment_in_the_working_tree_are_nobody_s(project: Suite, installed: Path) -> None:
    """An installed library is the same for both sides, wherever its environment lies."""
    inside = project.path / ".venv"
    inside.mkdir()
    (inside / "library.cuh").write_text("#define FACTOR 1.5f\n")
    project.write(".gitignore", f"{(project.path / '.gitignore').read_text()}.venv\n")
    project.edit("work.cu", "x * 1.5f", "x * FACTOR")
    project.write("work.cu", f'#include "library.cuh"\n{(project.path / "work.cu").read_text()}')
    project.edit("test_suite.py", 'options=["-DSTEPS=100"]', OPTION.format(folder=str(inside)))
    commit(project.path)
    site = installed.parent / "sitecustomize.py"
    site.write_text(
        f"{site.read_text()}usual = site.getsitepackages()\nsite.getsitepackages = lambda: [*usual, {str(inside)!r}]\n"
    )
    assert project.run(*AGAINST, subprocess=True).ret == 0
