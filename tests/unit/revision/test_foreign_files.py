"""Paths turned towards a worktree, and files of the other side."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from git_samples import commit

from pytest_gpuperf.revision import foreign_files, imports
from pytest_gpuperf.revision.foreign_files import ForeignFiles
from pytest_gpuperf.revision.imports import enter


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Working tree and worktree, and this process's own path to go back to."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    top, tree = tmp_path / "top", tmp_path / "tree"
    for folder in (top / "src", tree / "src/pkg"):
        folder.mkdir(parents=True)
    return top, tree


def test_paths_turn_to_the_worktree(sides: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top, tree = sides
    venv = top / ".venv/lib/site-packages"
    (tmp_path / "link").symlink_to(top)
    monkeypatch.setattr(imports, "installed_folders", lambda: (str(venv),))
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


def foreign(sides: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, read: str = "", **modules: str) -> list[str]:
    """Why a process in the worktree does not run its own code, with these modules imported and this file read."""
    top, tree = sides
    files = {name.replace("__", "."): file.format(top=top, tree=tree) for name, file in modules.items()}
    monkeypatch.setattr(foreign_files, "imported", lambda _: files)
    found = ForeignFiles(tree, (), (top,), tree)
    found.note_reads()
    if read:
        (top / read).read_bytes()
    return list(found.lines())


@pytest.fixture
def compared(sides: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Both trees in git, with one file that is the same and one that differs; a library of the environment is none.

    ``link`` beside them leads to the working tree.
    """
    top, _ = sides
    monkeypatch.setattr(foreign_files, "installed_folders", lambda: (str(top / "venv"),))
    for side in sides:
        (side / "same.py").write_text("1")
        (side / "kern.cu.j2").write_text(str(side))
        commit(side)
    for name in ("top/venv/lib.py", "top/venv/lib.cuh", "tree/src/pkg/core.py", "tree/code/apart.py"):
        (top.parent / name).parent.mkdir(exist_ok=True)
        (top.parent / name).touch()
    (top.parent / "link").symlink_to(top)
    return sides


@pytest.mark.parametrize(("read", "modules", "said"), [
    ("", {"same": "{tree}/same.py", "re": "/usr/re.py", "lib": "{top}/venv/lib.py"}, ""),
    ("same.py", {}, ""),
    ("", {"same": "{top}/same.py"}, ""),
    ("kern.cu.j2", {}, "/top/kern.cu.j2, of another working tree, was read and differs from kern.cu.j2 of this"),
    ("", {"pkg__core": "{top}/core.so"}, "/core.so, of another working tree, was imported and is not in the tree"),
    (".git/HEAD", {}, ""),
    ("venv/lib.cuh", {}, ""),
    ("", {"kern": "{top}/../link/kern.cu.j2"}, "/top/kern.cu.j2, of another working tree, was imported and differs"),
    ("", {"same": "/site/same.py"}, "/site/same.py was imported as same, though this side has same.py"),
    ("", {"pkg__core": "/site/pkg/core.py"}, "was imported as pkg.core, though this side has src/pkg/core.py"),
    ("", {"apart": "/site/apart.py"}, ""),  # a copy that the repository keeps for other uses
])  # fmt: skip
def test_the_content_of_a_file_of_another_working_tree_decides(
    compared: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, read: str, modules: dict[str, str], said: str
) -> None:
    lines = foreign(compared, monkeypatch, read, **modules)
    assert len(lines) == (1 if said else 0)
    assert all(said in line for line in lines)


def test_the_plugins_own_source_is_of_neither_side(sides: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """In the plugin's own repository the working tree has the code that both processes run."""
    source = Path(foreign_files.__file__)
    monkeypatch.setattr(foreign_files, "imported", lambda _: {})
    found = ForeignFiles(sides[1], (), (source.parents[2],), sides[1])
    found.note_reads()
    source.read_bytes()
    (source.parents[2] / "README.md").read_bytes()
    (line,) = found.lines()
    assert "README.md, of another working tree, was read" in line
