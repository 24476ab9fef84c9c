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
    return list(dict.fromkeys([*lines, *copies(imported(), others, tree, _package_roots(tree), installed_folders())]))


def foreign_here(config: pytest.Config) -> list[str]:
    """The same of a process that runs in the working tree around pytest's root.  Raises ``RevisionError``."""
    top = repository_of(config.rootpath).top
    return foreign_code(config, [one for one in working_trees(top) if one != top], top)


def _package_roots(tree: Path) -> set[Path]:
    """Folders of tracked packages that are in no package themselves, as seen from the top of ``tree``."""
    names = os.fsdecode(run_git(tree, "ls-files", "-z").stdout).split("\0")
    packages = {Path(name.removesuffix(_PACKAGE)) for name in names if name.endswith(_PACKAGE)}
    return {one.parent for one in packages if one.parent not in packages}
