"""Whether the tests of this process, in a comparison with another revision, ran the code of the tree they stand for."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.git_objects import run_git
from pytest_gpuperf.context.revision_imports import copies, foreign_imports, imported, installed_folders
from pytest_gpuperf.context.worktree import repository_of, working_trees

_PACKAGE = "/__init__.py"
_DEVICE_CODE = (".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ptx", ".cubin", ".fatbin")
"""How files end that hold nothing else, or that a kernel includes."""


def note_device_code(found: set[Path], trees: Sequence[Path]) -> None:
    """From now on, add the files of device code to ``found`` that this process opens in one of ``trees``.

    Sources, headers that their compilation reads, and text that a test hands over; links resolved.  An installed
    library is the same for all revisions, wherever its environment lies.  There is no end to it but the process's.
    """
    inside = tuple(f"{tree}{os.sep}" for tree in trees)
    installed = tuple(f"{folder}{os.sep}" for folder in installed_folders())

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str) or not arguments[0].endswith(_DEVICE_CODE):
            return
        real = os.path.realpath(arguments[0])
        if real.startswith(inside) and not real.startswith(installed):
            found.add(Path(real))

    sys.addaudithook(note)


def foreign_code(config: pytest.Config, others: Sequence[Path], tree: Path) -> list[str]:
    """Modules that this process imported from elsewhere than the working tree ``tree`` that it runs in, in words."""
    lines = foreign_imports(config.rootpath.resolve(), config.getini("pythonpath"), others, tree)
    lines += copies(imported(), others, tree, _packages(tree), installed_folders())
    return list(dict.fromkeys(lines))


def foreign_here(config: pytest.Config) -> list[str]:
    """The same of a process that runs in the working tree around pytest's root.  Raises ``RevisionError``."""
    top = repository_of(config.rootpath).top
    return foreign_code(config, [one for one in working_trees(top) if one != top], top)


def _packages(tree: Path) -> dict[str, set[Path]]:
    """Folders with a tracked package that is in no other, as seen from the top of ``tree``; by its name."""
    names = os.fsdecode(run_git(tree, "ls-files", "-z").stdout).split("\0")
    packages = {Path(name.removesuffix(_PACKAGE)) for name in names if name.endswith(_PACKAGE)}
    found: dict[str, set[Path]] = {}
    for one in packages:
        if one.parent not in packages:
            found.setdefault(one.name, set()).add(one.parent)
    return found
