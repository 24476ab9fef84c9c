"""Paths turned towards a worktree, leaks by name, the tests that a revision is asked for: the parts by themselves."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_gpuperf.context import revision_imports
from pytest_gpuperf.context.revision_imports import enter, leaks
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.revision import REVISION_FILE, Revision, read_revision
from pytest_gpuperf.model.task import RevisionTask


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Working tree and worktree, and this process's own path to go back to."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    top, tree = tmp_path / "top", tmp_path / "tree"
    for folder in (top / "src", tree / "src/pkg"):
        folder.mkdir(parents=True)
    return top, tree


def test_what_leads_into_the_working_tree_leads_into_the_worktree(
    sides: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, tree = sides
    venv = top / ".venv/lib/site-packages"
    (tmp_path / "link").symlink_to(top)
    monkeypatch.setattr(revision_imports, "installed_folders", lambda: (str(venv),))
    sys.path[:] = [str(top), str(top / "src"), str(tmp_path / "link/src"), str(venv), str(tree), "/usr/lib", ""]
    monkeypatch.setenv("PYTHONPATH", f"{top / 'src'}{os.pathsep}/opt")
    finder = ModuleType("__editable___pkg_finder")
    vars(finder).update(MAPPING={"pkg": str(top / "src/pkg")}, NAMESPACES={"ns": [str(top / "ns"), "/opt/ns"]})
    monkeypatch.setitem(sys.modules, finder.__name__, finder)
    enter([str(tmp_path / "other"), str(top)], str(tree))
    turned = [str(tree), str(tree / "src"), str(tree / "src")]
    assert sys.path == [*turned, str(venv), str(tree), "/usr/lib", ""]
    assert os.environ["PYTHONPATH"] == f"{tree / 'src'}{os.pathsep}/opt"
    assert vars(finder)["MAPPING"] == {"pkg": str(tree / "src/pkg")}
    assert vars(finder)["NAMESPACES"] == {"ns": [str(tree / "ns"), "/opt/ns"]}


def named(sides: tuple[Path, Path], **files: str) -> list[str]:
    top, tree = sides
    modules = {name.replace("__", "."): file.format(top=top, tree=tree) for name, file in files.items()}
    return leaks(modules, [top], tree, [tree, tree / "src"], [str(top / ".venv")])


def test_the_worktrees_own_modules_and_installed_ones_are_no_leak(sides: tuple[Path, Path]) -> None:
    (sides[1] / "src/pkg/__init__.py").write_text("")
    assert named(sides, pkg="{tree}/src/pkg/__init__.py", numpy="{top}/.venv/numpy/__init__.py", re="/usr/re.py") == []


def test_a_module_of_the_working_tree_is_one(sides: tuple[Path, Path]) -> None:
    python, compiled = named(sides, a="{top}/a.py", b__core="{top}/b/core.so")
    assert "a was imported from the working tree" in python
    assert "built in place" in compiled


def test_a_module_that_the_revision_has_and_that_came_from_elsewhere_is_one(sides: tuple[Path, Path]) -> None:
    (sides[1] / "src/pkg/deep.py").write_text("")
    (sides[1] / "types.py").write_text("")
    (leak,) = named(sides, pkg__deep="/site/pkg/deep.py", pkg__other="/site/pkg/other.py", types="/usr/types.py")
    assert leak.startswith("pkg.deep was imported from /site/pkg/deep.py, though the revision has src/pkg/deep.py")


@pytest.mark.parametrize(
    ("named", "node", "takes"),
    [
        ((), "test_a.py::test_b", True),
        ((".",), "test_a.py::test_b", True),
        (("test_a.py",), "test_a.py::test_b", True),
        (("test_a.py::test_b",), "test_a.py::test_b[1]", True),
        (("test_a.py::test_b",), "test_a.py::test_bc", False),
        (("test_a.py::TestC",), "test_a.py::TestC::test_b", True),
        (("test_a.py::test_b",), "folder/test_a.py::test_b", True),
        (("test_a.py::test_b",), "test_c.py::test_c", True),
        (("test_a.py::test_b", "test_a.py::test_d"), "test_a.py::test_d", True),
    ],
)
def test_the_revision_runs_what_the_run_was_given(named: tuple[str, ...], node: str, *, takes: bool) -> None:
    task = RevisionTask(folder=Path(), top=Path(), others=(), tree=Path(), named=named)
    assert task.takes(node) is takes


def test_a_revision_says_why_it_lacks_something(tmp_path: Path) -> None:
    assert read_revision(tmp_path) is None
    (tmp_path / REVISION_FILE).write_text(
        '{"commit":"a","name":"a","archs":[],"lacking":{"m.py":"why","n.py::t":"how"}}'
    )
    found = read_revision(tmp_path)
    assert isinstance(found, Revision)
    keys = [Key(module=module, test="t", workload="w") for module in ("m.py", "n.py", "o.py")]
    assert [found.why_lacking(key) for key in keys] == ["why", "how", ""]
