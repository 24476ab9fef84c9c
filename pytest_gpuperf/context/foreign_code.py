"""Whether the tests of this process, in a comparison with another revision, ran the code of the tree they stand for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.git_objects import run_git
from pytest_gpuperf.context.revision_imports import copies, foreign_imports, imported, installed_folders
from pytest_gpuperf.context.worktree import repository_of, working_trees

_PACKAGE = "/__init__.py"


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
